#!/usr/bin/env python3
"""Rewrites the tables of docs/language.md from the tables of the source; with --check only says whether they are current."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "language.md"


def rows(path, macro):
    """The arguments of each macro(...) row of a .def file, strings joined and unquoted."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)
    found = []
    for match in re.finditer(rf"^\s*{macro}\(", text, flags=re.M):
        at, depth, item, items, quoted = match.end(), 1, "", [], False
        while depth:
            c = text[at]
            if c == '"' and text[at - 1] != "\\":
                quoted = not quoted
            if not quoted and c in "()":
                depth += 1 if c == "(" else -1
            if not quoted and (depth == 0 or (depth == 1 and c == ",")):
                items.append(item.strip())
                item = ""
            else:
                item += c
            at += 1
        found.append(["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', i)) if i.startswith('"') else i for i in items])
    return found


def table(head, lines):
    bar = "|".join("---" for _ in head)
    return "\n".join(["| " + " | ".join(head) + " |", f"|{bar}|"] + ["| " + " | ".join(line) + " |" for line in lines])


def cell(text):
    return text.replace("|", "\\|")


def attributes():
    return table(["annotation", "Metal", "type", "meaning"],
                 [[f"`sk.{python}`", f"`{metal}`", "integer or vector" if vec == "1" else "integer", cell(doc)]
                  for _, metal, python, vec, _, _, doc in rows("src/ir/attributes.def", "ATTR")])


def types():
    names = {"BOOL": "bool_", "BF16": "bfloat16"}
    kinds = {"I": "int", "U": "uint", "F": "float"}

    def dtype(i):
        return names.get(i) or re.sub(r"^[IUF]", lambda m: kinds[m[0]], i)

    return table(["dtype", "IR", "Metal", "bytes"],
                 [[f"`sk.dt.{dtype(i)}`", f"`{name}`", f"`{msl}`", size]
                  for i, name, msl, size, *_ in rows("src/ir/types.def", "SCALAR")])


def math():
    lines = []
    for _, name, arity, classes, python, fast, ulp, fast_ulp, doc in rows("src/ir/math.def", "MATH"):
        accuracy = "exact" if ulp == "0" else f"{ulp} ulp"
        operands = "floats" if classes == "F" else "floats and integers"
        lines.append([f"`sk.{python}`", arity, operands, accuracy, f"{fast_ulp} ulp" if fast == "1" else "", cell(doc)])
    return table(["function", "operands", "of", "largest error (f32)", "fast form", "meaning"], lines)


def simd_text():
    text = (ROOT / "src/ir/ops.def").read_text()
    body = text[text.index("#define SIMD_OPS"):text.index("SIMD_OPS(SIMD")]
    return re.findall(r'OP\(W##_\w+, w "(\w+)", (\d), (\w+).*?"([^"]*)"\)', body.replace("\\\n", " "))


def simd():
    return table(["operation", "operands", "meaning"],
                 [[f"`simd{name}`, `quad{name}`", n, cell(doc)] for name, n, _, doc in simd_text()])


def ops():
    text = (ROOT / "src/ir/ops.def").read_text()
    plain = text[:text.index("#define SIMD_OPS")] + text[text.index("#undef SIMD_OPS"):]
    found = []
    for match in re.finditer(r'^OP\((\w+), "(\w+)", (\w+), (\w+), (\w+), (\w+), "[^"]*",\s*(.*?)\)$', plain,
                             flags=re.M | re.S):
        doc = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[7]))
        found.append([f"`{match[2]}`", "any" if match[3] == "V" else match[3], match[6].lower(), cell(doc)])
    return table(["operation", "operands", "effect", "meaning"], found)


TABLES = {"attributes": attributes, "types": types, "math": math, "simd": simd, "ops": ops}


def main():
    old = PAGE.read_text()
    new = re.sub(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)",
                 lambda m: m[1] + TABLES[m[2]]() + "\n" + m[3], old, flags=re.S)
    if "--check" in sys.argv[1:]:
        if new != old:
            sys.exit("docs/language.md is not current; run `make docs`")
    else:
        PAGE.write_text(new)


if __name__ == "__main__":
    main()
