"""The `spork` command: arguments, files, exit codes, the form of its errors."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPORK_BUILD", ROOT / "build"))
SPORK = BUILD / "spork"
COMMANDS = ["run", "emit", "ir", "devices", "cache"]
DTYPES = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32,
    "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32,
}  # fmt: skip
INTEGERS = [name for name in DTYPES if name[0] in "iu"]

COPY = """kernel copy(out: device {0}, a: device {0}, i: u32 [thread_position_in_grid]) {{
  %0 = index ptr.device %a, %i of {0}
  %1 = load {0} %0
  %2 = index ptr.device %out, %i of {0}
  store %2, %1
}}
"""
# Every kind of parameter; does nothing that depends on the launch.
KINDS = """kernel kinds(out: device f32, v: f32x3, n: u8, m: threadgroup f32) {
  %0 = extract f32 %v [0]
  %1 = extract f32 %v [1]
  %2 = extract f32 %v [2]
  %3 = convert f32 %n
  %4 = make f32x4 %0, %1, %2, %3
  store %out, %4
}
"""


def spork(*words, cwd=None, **env):
    """(exit code, stdout, stderr) of the command."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    full = {**os.environ, "PATH": path, **env}
    if "SPORK_DEVICE" not in env:
        full.pop("SPORK_DEVICE", None)
    done = subprocess.run(
        [str(SPORK), *map(str, words)], cwd=cwd, env=full, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def fine(*words, **env):
    code, out, err = spork(*words, **env)
    assert (code, err) == (0, "")
    return out


def fails(code, *words, match="", **env):
    """The command exits with this code, prints nothing on stdout, and its one line on stderr matches."""
    got, out, err = spork(*words, **env)
    assert got == code, err
    assert out == ""
    assert err.endswith("\n") and err.count("\n") == 1
    assert re.search(match, err), err
    return err.rstrip("\n")


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def copy(write):
    """Runs a kernel that copies array to array; returns what it wrote to a file."""

    def copy(name, array_path, n):
        ir = write("copy.ir", COPY.format(name))
        out = ir.with_name("out.npy")
        fine("run", ir, "copy", "--threads", n, f"out={array_path}", f"a={array_path}", "--out", f"out={out}")
        return out

    return copy


# ---- help, versions, exit codes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, flag):
    text = fine(command, flag)
    assert text.startswith(f"usage: spork {command}")
    assert max(map(len, text.splitlines())) <= 120
    for option in set(re.findall(r"--[a-z]+", text)) - {"--help", "--clear"}:
        assert spork(command, option)[0] != 0, f"{option} is documented"


def test_help_of_all():
    text = fine("--help")
    assert text == fine("-h") == fine("help")
    assert all(f"  {command} " in text for command in COMMANDS)
    assert "exit codes" in text
    code, out, _ = spork()
    assert (code, out) == (2, text)
    assert re.fullmatch(r"spork \d+\.\d+\.\d+\n", fine("--version"))


def test_help_of_run_and_ir_names_all(write):
    text = fine("run", "x.ir", "--help")
    for word in ["zeros:", "full:", "range:", "random:", ".npy", "--threads", "--grid", "--out", "--print", "--device"]:
        assert word in text
    letters = re.findall(r"^ +([A-Z])  ", fine("ir", "--help"), re.M)
    path = write("a.ir", COPY.format("f32"))
    assert letters and fine("ir", path, "-p", "".join(letters))


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["frob"], "no command 'frob'"),
        (["run"], "which file"),
        (["run", "a.ir"], "which file and kernel"),
        (["run", "a.ir", "k"], "how many threads"),
        (["run", "a.ir", "k", "--threads"], "--threads"),
        (["run", "a.ir", "k", "--frob", "1"], "--frob"),
        (["run", "a.ir", "k", "--threads", "4", "--grid", "2"], "--threads or --grid"),
        (["run", "a.ir", "k", "--grid", "4", "--threads", "2"], "--threads or --grid"),
        (["run", "a.ir", "k", "--threads", "4", "--threads", "4"], "once"),
        (["ir"], "which file"),
        (["ir", "a.ir", "-p"], "-p"),
        (["ir", "a.ir", "b.ir"], "b.ir"),
        (["ir", "a.ir", "--frob"], "--frob"),
        (["emit"], "which kernel"),
        (["emit", "a.ir", "--as"], "--as"),
        (["emit", "a.ir", "--as", "cuda"], "cuda"),
        (["emit", "a.ir", "b.ir"], "b.ir"),
        (["devices", "cpu"], "cpu"),
    ],
)
def test_wrong_usage(words, match):
    err = fails(2, *words, match=match)
    assert err.startswith("spork") and "--help" in err


SIZES = ["", "x", "-1", "1.5", "1e3", "3x", "x3", "1x2x3x4", "4294967296", "0x10x", "1 2", "99999999999999999999"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("option", ["--threads", "--grid", "--threadgroup"])
def test_wrong_sizes(write, option, size):
    path = write("a.ir", COPY.format("f32"))
    words = ["--threads", "1"] if option == "--threadgroup" else []
    fails(2, "run", path, "copy", *words, option, size, "out=zeros:1:f32", "a=zeros:1:f32", match="size")


# ---- errors in files -------------------------------------------------------------------------------------------------


def test_places_of_errors(write):
    path = write("bad.ir", "kernel k(out: device f32) {\n  store %out, %nothing\n}\n")
    for words in [["ir", path], ["emit", path], ["run", path, "k", "--threads", "1", "out=zeros:1:f32"]]:
        assert re.match(rf"{re.escape(str(path))}:2:\d+: error: ", fails(1, *words))
    path = write("invalid.ir", "kernel k(out: device f32) {\n  %0 = add f32 1.0:f32, 2:i32\n  store %out, %0\n}\n")
    assert fails(1, "ir", path).startswith(f"{path}:2:3: error: ")
    path = write("fault.ir", COPY.format("f32"))
    words = ["run", path, "copy", "--threads", "4", "--threadgroup", "2", "out=full:7:3:f32", "a=full:2:4:f32"]
    code, out, err = spork(*words, "--print", "out")
    assert (code, out) == (1, "out = 2.0 2.0 2.0\n")
    assert err.startswith(f"{path}:5:3: error: kernel 'copy' writes 'out' out of bounds: index 3")


def test_files_that_cannot_be_read(tmp_path):
    for words in [["ir"], ["emit"]]:
        assert fails(1, *words, tmp_path / "none.ir").startswith(f"{tmp_path}/none.ir: error: cannot read the file: ")
        assert fails(1, *words, tmp_path).startswith(f"{tmp_path}: error: cannot read the file: ")
    fails(1, "run", tmp_path / "none.ir", "k", "--threads", "1", match=r"none\.ir: error: cannot read")


def test_hostile_text(write, tmp_path):
    for name, data in {"zero": b"kernel k() {\0}\n", "latin": b"# \xe9\n", "binary": bytes(range(256)) * 40}.items():
        path = tmp_path / f"{name}.ir"
        path.write_bytes(data)
        assert re.match(rf"{re.escape(str(path))}:\d+:\d+: error: ", fails(1, "ir", path))
    assert fine("ir", write("empty.ir", "")) == ""


def test_ir_round_trip(write):
    for text in sorted((ROOT / "tests/run").glob("*.ir"))[:20]:
        once = fine("ir", text)
        assert fine("ir", write("again.ir", once)) == once
        places = fine("ir", text, "--places")
        assert fine("ir", write("places.ir", places), "--places") == places


def test_ir_passes(write):
    path = write("a.ir", "kernel k(out: device i32) {\n  %0 = add i32 1:i32, 2:i32\n  store %out, %0\n}\n")
    assert "add" in fine("ir", path) and "add" not in fine("ir", path, "-p", "S")
    for letters in ["?", "Sé", "S q", "0"]:
        code, out, err = spork("ir", path, "-p", letters)
        assert code in (1, 2) and out == "" and "pass" in err
    assert fine("ir", path, "-p", "") == fine("ir", path)


# ---- .npy ------------------------------------------------------------------------------------------------------------


def samples(name):
    dtype = np.dtype(DTYPES[name])
    if name == "bool":
        return np.array([True, False, True])
    if name in INTEGERS:
        info = np.iinfo(dtype)
        return np.array([info.min, 0, 1, info.max], dtype)
    info = np.finfo(dtype)
    return np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, info.max, info.smallest_subnormal], dtype)


@pytest.mark.parametrize("name", DTYPES)
def test_npy_of_each_dtype(tmp_path, copy, name):
    a = samples(name)
    np.save(tmp_path / "a.npy", a)
    result = np.load(copy(name, tmp_path / "a.npy", a.size))
    assert result.dtype == a.dtype
    assert result.tobytes() == a.tobytes()


def test_npy_of_bfloat16(tmp_path, copy):
    """ml_dtypes writes '<V2', of which NumPy without it makes two bytes of anything."""
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x8000], np.uint16)
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<V2", "fortran_order": False, "shape": (4,)})
        file.write(bits.tobytes())
    out = copy("bf16", tmp_path / "a.npy", 4)
    assert out.read_bytes().endswith(bits.tobytes())
    assert b"'descr': '<V2'" in out.read_bytes()
    words = ["run", tmp_path / "copy.ir", "copy", "--threads", "4", "out=zeros:4:bf16", f"a={tmp_path}/a.npy"]
    text = fine(*words, "--print", "out")
    assert text == "out = 1.0 -2.0 inf -0.0\n"


SHAPES = [(), (1,), (5,), (2, 3), (1, 1), (2, 1, 3), (2, 1, 1, 2, 1, 1, 1, 2), (0,), (3, 0), (0, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_npy_shapes(tmp_path, copy, shape):
    a = np.arange(np.prod(shape, dtype=int), dtype=np.int16).reshape(shape)
    np.save(tmp_path / "a.npy", a)
    result = np.load(copy("i16", tmp_path / "a.npy", a.size))
    assert result.shape == shape
    assert np.array_equal(result, a)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(tmp_path, copy, version):
    a = np.arange(6, dtype=np.uint32).reshape(2, 3)
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, a, version=version)
    assert np.array_equal(np.load(copy("u32", tmp_path / "a.npy", 6)), a)


def refuse(tmp_path, write, data, match, name="f32"):
    path = tmp_path / "bad.npy"
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        np.save(path, data)
    ir = write("copy.ir", COPY.format(name))
    err = fails(1, "run", ir, "copy", "--threads", "0", "out=zeros:1:" + name, f"a={path}", match=match)
    assert err.startswith(f"{path}: error: ")


def test_npy_orders(tmp_path, write, copy):
    refuse(tmp_path, write, np.asfortranarray(np.zeros((2, 3), np.float32)), "Fortran order.*ascontiguousarray")
    a = np.asfortranarray(np.arange(4, dtype=np.float32))  # one dimension has no order
    np.save(tmp_path / "a.npy", a)
    assert np.array_equal(np.load(copy("f32", tmp_path / "a.npy", 4)), a)
    for dtype in [">f4", ">i2", ">u8", ">f2"]:
        refuse(tmp_path, write, np.zeros(3, dtype), f"'{dtype}'.*little-endian")


@pytest.mark.parametrize("dtype", ["f8", "c8", "S4", "U2", "M8[s]", "V3"])
def test_npy_dtypes_that_metal_lacks(tmp_path, write, dtype):
    refuse(tmp_path, write, np.zeros(2, dtype), "dtype")


def test_npy_damaged(tmp_path, write):
    np.save(tmp_path / "good.npy", np.arange(5, dtype=np.float32))
    good = (tmp_path / "good.npy").read_bytes()
    for n in [0, 1, 5, 6, 8, 9, 10, 11, 12, 60, 127]:
        refuse(tmp_path, write, good[:n], "not an .npy file|bytes")
    for n in [128, 129, 147]:
        refuse(tmp_path, write, good[:n], f"holds {n - 128} bytes where its shape needs 20")
    refuse(tmp_path, write, good + b"\0", "holds 21 bytes where its shape needs 20")
    refuse(tmp_path, write, b"\x93NUMPX" + good[6:], "not an .npy")
    refuse(tmp_path, write, b"PK\3\4" + bytes(100), "not an .npy")
    refuse(tmp_path, write, good[:8] + b"\xff\xff" + good[10:], "not an .npy")
    refuse(tmp_path, write, b"\x93NUMPY\2\0\xff\xff\xff\xff" + good[10:], "not an .npy")
    for old, new in [
        (b"(5,)", b"(6,)"), (b"(5,)", b"(-5)"), (b"(5,)", b"(5,7"), (b"(5,)", b"5   "), (b"(5,)", b"()  "),
        (b"(5,)", b"(x,)"), (b"'descr'", b"'DESCR'"), (b"'shape'", b"'Shape'"), (b"'<f4'", b"<f4  "),
        (b"'fortran_order'", b"'fortran-order'"), (b"(5,), }" + b" " * 20, b"(4294967296, 4294967296,),}"),
        (b"(5,), }" + b" " * 20, b"(18446744073709551621,), } "),
    ]:  # fmt: skip
        assert old in good and len(old) == len(new)
        refuse(tmp_path, write, good.replace(old, new), "")


def test_npy_damaged_at_random(tmp_path, write):
    """Any byte of the header may be any other: an error or another array, never a crash."""
    np.save(tmp_path / "good.npy", np.arange(3, dtype=np.float32))
    good = (tmp_path / "good.npy").read_bytes()
    ir = write("copy.ir", COPY.format("f32"))
    random = np.random.default_rng(1)
    for _ in range(60):
        data = bytearray(good)
        for at in random.integers(0, 80, random.integers(1, 4)):
            data[at] = random.integers(0, 256)
        (tmp_path / "bad.npy").write_bytes(data)
        code, _, err = spork("run", ir, "copy", "--threads", "0", "out=zeros:1:f32", f"a={tmp_path}/bad.npy")
        assert code in (0, 1, 2), err
        assert (code != 0) == (err.count("\n") == 1)


def test_npy_of_another_dtype(tmp_path, write):
    np.save(tmp_path / "a.npy", np.zeros(2, np.int32))
    ir = write("copy.ir", COPY.format("f32"))
    code, out, err = spork("run", ir, "copy", "--threads", "2", "out=zeros:2:f32", f"a={tmp_path}/a.npy")
    assert code in (1, 2) and out == ""
    assert "'a'" in err and "f32" in err and "i32" in err


def test_npy_input_is_not_written(tmp_path, write):
    np.save(tmp_path / "a.npy", np.arange(3, dtype=np.float32))
    before = (tmp_path / "a.npy").read_bytes()
    ir = write("copy.ir", COPY.format("f32"))
    fine("run", ir, "copy", "--threads", "3", f"out={tmp_path}/a.npy", "a=full:9:3:f32")
    assert (tmp_path / "a.npy").read_bytes() == before


# ---- arrays and values made here -------------------------------------------------------------------------------------


def made(write, name, what, n):
    """The elements of an array that the command makes, as text."""
    ir = write("copy.ir", COPY.format(name))
    text = fine("run", ir, "copy", "--threads", n, f"out=zeros:{n}:{name}", f"a={what}", "--print", "out")
    return text.removeprefix("out =").split()


@pytest.mark.parametrize("name", [*DTYPES, "bf16"])
def test_made_arrays(write, name):
    number = (lambda x: f"{x}.0") if name[-3:] in ("f16", "f32") else str
    if name == "bool":
        assert made(write, name, "zeros:3:bool", 3) == ["false"] * 3
        assert made(write, name, "full:true:2:bool", 2) == made(write, name, "full:1:2:bool", 2) == ["true"] * 2
        assert made(write, name, "range:2:bool", 2) == ["false", "true"]
        assert set(made(write, name, "random:64:bool", 64)) == {"false", "true"}
        return
    assert made(write, name, f"zeros:3:{name}", 3) == [number(0)] * 3
    assert made(write, name, f"full:7:2:{name}", 2) == [number(7)] * 2
    assert made(write, name, f"range:100:{name}", 100) == [number(k) for k in range(100)]
    random = made(write, name, f"random:1000:{name}", 1000)
    assert random == made(write, name, f"random:1000:{name}", 1000)
    values = np.array([float(x) for x in random])
    if name in INTEGERS:
        info = np.iinfo(DTYPES[name])
        assert info.min <= values.min() < info.min + (info.max - info.min) * 0.02
        assert info.max >= values.max() > info.max - (info.max - info.min) * 0.02
    else:
        assert 0 <= values.min() < 0.02 and 0.98 < values.max() <= 1 and abs(values.mean() - 0.5) < 0.03


@pytest.mark.parametrize(
    ("name", "what", "shown"),
    [
        ("f32", "full:-0.0:1:f32", "-0.0"), ("f32", "full:nan:1:f32", "nan"), ("f32", "full:-inf:1:f32", "-inf"),
        ("f32", "full:1e-45:1:f32", "1e-45"), ("f32", "full:0.1:1:f32", "0.1"),
        ("f32", "full:16777217:1:f32", "16777216.0"), ("f16", "full:0.1:1:f16", "0.099975586"),
        ("bf16", "full:3.14159:1:bf16", "3.140625"),
        ("i64", "full:-9223372036854775808:1:i64", "-9223372036854775808"), ("u8", "full:0xff:1:u8", "255"),
        ("u64", "full:18446744073709551615:1:u64", "18446744073709551615"), ("i8", "full:+5:1:i8", "5"),
    ],
)  # fmt: skip
def test_full(write, name, what, shown):
    assert made(write, name, what, 1) == [shown]


@pytest.mark.parametrize(
    "what",
    [
        "zeros", "zeros:4", "zeros::f32", "zeros:4:f64", "zeros:4:float", "zeros:-1:f32", "zeros:1.5:f32",
        "zeros:4:f32:1", "full:4:f32", "full:x:4:f32", "full::4:f32", "full:1:x:f32", "range:4", "random:4",
        "zeros:99999999999999999999:f32",
    ],
)  # fmt: skip
def test_made_arrays_refused(write, what):
    ir = write("copy.ir", COPY.format("f32"))
    fails(2, "run", ir, "copy", "--threads", "1", "out=zeros:1:f32", f"a={what}", match="'a'")


def test_made_arrays_of_another_type(write):
    ir = write("copy.ir", COPY.format("f32"))
    code, out, err = spork("run", ir, "copy", "--threads", "1", "out=zeros:1:f32", "a=zeros:1:i32")
    assert code in (1, 2) and out == "" and "f32" in err and "i32" in err
    for name, value in [
        ("u8", "256"), ("u8", "-1"), ("i8", "-129"), ("u64", "18446744073709551616"), ("i32", "1.5"), ("bool", "2"),
    ]:  # fmt: skip
        ir = write("copy.ir", COPY.format(name))
        fails(2, "run", ir, "copy", "--threads", "1", f"out=zeros:1:{name}", f"a=full:{value}:1:{name}", match="'a'")


def run_kinds(write, *words, code=2, match=""):
    return fails(code, "run", write("kinds.ir", KINDS), "kinds", "--threads", "1", *words, match=match)


def test_values(write):
    ir = write("kinds.ir", KINDS)
    words = ["run", ir, "kinds", "--threads", "1", "out=zeros:4:f32", "--print", "out"]
    assert fine(*words, "v=1,2,3", "n=4", "m=1") == "out = 1.0 2.0 3.0 4.0\n"
    assert fine(*words, "v=-0.0,nan,1e10", "n=0xff", "m=0") == "out = -0.0 nan 1e10 255.0\n"


@pytest.mark.parametrize("value", ["1", "1,2", "1,2,3,4", "1,2,", ",1,2", "1,,2", "1,2,x", "a.npy", "", "1;2;3"])
def test_vectors_refused(write, value):
    run_kinds(write, "out=zeros:4:f32", f"v={value}", "n=4", "m=1", match="'v'")


@pytest.mark.parametrize("value", ["256", "-1", "1.5", "x", "", "1,2", "zeros:1:u8", "0x100", "5 "])
def test_scalars_refused(write, value):
    run_kinds(write, "out=zeros:4:f32", "v=1,2,3", f"n={value}", "m=1", match="'n'")


def test_threadgroup_memory(write):
    good = ["out=zeros:4:f32", "v=1,2,3", "n=4"]
    for value in ["x", "", "-1", "1.5", "zeros:4:f32", "4294967296"]:
        run_kinds(write, *good, f"m={value}", match="'m'")
    for value in [8193, 4294967295]:  # 32 KiB are 8192 floats
        run_kinds(write, *good, f"m={value}", code=1, match="threadgroup memory")
    fine("run", write("kinds.ir", KINDS), "kinds", "--threads", "1", *good, "m=8192")


def test_parameters(write):
    good = ["out=zeros:4:f32", "v=1,2,3", "n=4", "m=1"]
    for k, name in enumerate(["out", "v", "n", "m"]):
        run_kinds(write, *good[:k], *good[k + 1 :], match=f"'{name}' is not given")
        run_kinds(write, *good, good[k], match=f"'{name}' is given twice")
    run_kinds(write, *good, "x=1", match="no parameter 'x'")
    run_kinds(write, *good, "=1", match="no parameter ''")
    run_kinds(write, *good, "outs=1", match="no parameter 'outs'")
    run_kinds(write, *good, "word", match="'word'")
    copy = write("copy.ir", COPY.format("f32"))
    fails(2, "run", copy, "copy", "--threads", "1", "out=zeros:1:f32", "a=zeros:1:f32", "i=3", match="no parameter 'i'")
    fails(1, "run", copy, "other", "--threads", "1", match="no kernel called 'other'")


# ---- launch, print, write --------------------------------------------------------------------------------------------


def test_sizes(write):
    ir = write(
        "count.ir",
        "kernel count(n: device atomic u32, w: device u32, s: u32x3 [threads_per_threadgroup]) {\n"
        "  %0 = atomic_add u32 %n, 1:u32 order(relaxed) scope(device)\n  store %w, %s\n}\n",
    )

    def launch(*words):
        return fine("run", ir, "count", *words, "n=zeros:1:u32", "w=zeros:3:u32", "--print", "n,w").splitlines()

    assert launch("--threads", "6x2x3", "--threadgroup", "3x2x1") == ["n = 36", "w = 3 2 1"]
    assert launch("--threads", "6,2,3", "--threadgroup", "3,2,1") == ["n = 36", "w = 3 2 1"]
    assert launch("--grid", "2x2", "--threadgroup", "3x2") == ["n = 24", "w = 3 2 1"]
    assert launch("--threads", "100") == ["n = 100", "w = 100 1 1"]
    assert launch("--threads", "512") == ["n = 512", "w = 256 1 1"]
    assert launch("--grid", "2") == ["n = 512", "w = 256 1 1"]
    assert launch("--threads", "0") == ["n = 0", "w = 0 0 0"]
    words = ["run", ir, "count", "n=zeros:1:u32", "w=zeros:3:u32", "--threads", "4", "--threadgroup"]
    fails(1, *words, "1025", match="threadgroup of 1025x1x1 has 1025 threads")
    fails(1, *words, "33x32", match="1056 threads")
    fails(1, *words, "4294967295x4294967295x4294967295", match="threads")
    fails(1, *words, "0", match="threadgroup of 0x1x1 has no threads")


def test_print(write):
    ir = write("copy.ir", COPY.format("i32"))
    words = ["run", ir, "copy", "--threads", "5", "out=zeros:5:i32", "a=range:5:i32"]
    for item, shown in [
        ("out", "0 1 2 3 4"), ("out[0]", "0"), ("out[4]", "4"), ("out[-1]", "4"), ("out[-5]", "0"), ("out[1:3]", "1 2"),
        ("out[2:]", "2 3 4"), ("out[:2]", "0 1"), ("out[-2:]", "3 4"), ("out[1:-1]", "1 2 3"), ("out[:]", "0 1 2 3 4"),
    ]:  # fmt: skip
        assert fine(*words, "--print", item) == f"{item} = {shown}\n"
    assert fine(*words, "--print", "out[2:2]").strip() == "out[2:2] ="
    assert fine(*words, "--print", "out[0],a[1],out[-1]") == "out[0] = 0\na[1] = 1\nout[-1] = 4\n"
    assert fine(*words, "--print", "out[0]", "--print", "a[1]") == "out[0] = 0\na[1] = 1\n"
    assert fine(*words) == ""
    far = ["out[5]", "out[-6]", "out[0:6]", "out[3:1]", "out[9999999999999999]"]
    far += ["out[x]", "out[0", "out[0]x", "out[0:1", "out[0:1:2]", "out[0x1]", "out[99999999999999999999]"]
    for item in [*far, "out[]", "other", "other[0]", "ou", "outs"]:
        fails(2, *words, "--print", item, match=re.escape(item.partition("[")[0]))


@pytest.mark.parametrize(
    "what, why",
    [
        ("range:258:u8", "257 does not fit u8"),
        ("range:70000:f16", "69999 does not fit f16"),
        ("full:1e40:1:f32", "1e40 is no f32"),
        ("full:70000:1:f16", "70000 is no f16"),
        ("full:--1:1:i32", "--1 is no i32"),
        ("full:1e2:1:i32", "1e2 is no i32"),
    ],
)
def test_made_arrays_that_do_not_fit(write, what, why):
    kind = what.rpartition(":")[2]
    ir = write("copy.ir", COPY.format(kind))
    fails(2, "run", ir, "copy", "--threads", "1", f"out=zeros:1:{kind}", f"a={what}", match=re.escape(why))


def test_made_arrays_at_the_edge(write):
    ir = write("copy.ir", COPY.format("u8"))
    words = ["run", ir, "copy", "--threads", "256", "out=zeros:256:u8"]
    assert fine(*words, "a=range:256:u8", "--print", "out[-1]") == "out[-1] = 255\n"
    assert fine(*words, "a=full:010:256:u8", "--print", "out[0]") == "out[0] = 10\n"
    assert fine(*words, "a=full:0x10:256:u8", "--print", "out[0]") == "out[0] = 16\n"
    for kind in ["f16", "bf16", "f32"]:
        ir = write("copy.ir", COPY.format(kind))
        text = fine("run", ir, "copy", "--threads", "20000", f"out=zeros:20000:{kind}", f"a=random:20000:{kind}",
                    "--print", "out")  # fmt: skip
        assert all(0 <= float(x) < 1 for x in text.split("=")[1].split())


def test_out(tmp_path, write):
    ir = write("copy.ir", COPY.format("f32"))
    words = ["run", ir, "copy", "--threads", "3", "out=zeros:3:f32", "a=range:3:f32"]
    fine(*words, "--out", f"out={tmp_path}/x.npy", "--out", f"a={tmp_path}/y=z.npy")
    assert np.load(tmp_path / "x.npy").tolist() == np.load(tmp_path / "y=z.npy").tolist() == [0, 1, 2]
    for value in ["out", "other=x.npy", "=x.npy", ""]:
        fails(2, *words, "--out", value, match="--out")
    fails(1, *words, "--out", f"out={tmp_path}/none/x.npy", match=r"none/x\.npy: error: cannot write the file: ")
    if Path("/dev/full").exists():
        fails(1, *words, "--out", "out=/dev/full", match="/dev/full: error: cannot write the file: ")


def test_out_of_a_fault(tmp_path, write):
    ir = write("copy.ir", COPY.format("f32"))
    words = ["run", ir, "copy", "--threads", "4", "out=zeros:2:f32", "a=full:5:4:f32"]
    code, _, err = spork(*words, "--out", f"out={tmp_path}/x.npy")
    assert code == 1 and "out of bounds" in err
    assert np.load(tmp_path / "x.npy").tolist() == [5, 5]


def test_time(write):
    ir = write("copy.ir", COPY.format("f32"))
    code, out, err = spork("run", ir, "copy", "--threads", "1", "out=zeros:1:f32", "a=zeros:1:f32", "--time")
    assert (code, out) == (0, "") and re.search(r"\d+\.\d+ ms", err)


# ---- devices ---------------------------------------------------------------------------------------------------------


def test_devices(write):
    text = fine("devices")
    assert text.startswith("* ") and " interp " in text
    assert re.search(r"^\* interp ", fine("devices", SPORK_DEVICE="interp"), re.M)
    ir = write("copy.ir", COPY.format("f32"))
    words = ["run", ir, "copy", "--threads", "1", "out=zeros:1:f32", "a=full:3:1:f32"]
    assert fine(*words, "--print", "out", "--device", "interp") == "out = 3.0\n"
    assert fine(*words, "--print", "out", SPORK_DEVICE="interp") == "out = 3.0\n"
    fails(1, *words, "--device", "frob", match="no device called 'frob' here; .*interp")
    fails(1, *words, SPORK_DEVICE="frob", match="no device called 'frob' here; .*interp")
    assert fine(*words, "--print", "out", "--device", "interp", SPORK_DEVICE="frob") == "out = 3.0\n"
    code, out, err = spork("devices", SPORK_DEVICE="frob")
    assert code == 1 and "interp" in out and "frob" in err


# ---- output that goes nowhere ----------------------------------------------------------------------------------------


@pytest.fixture
def long_text(write):
    kernels = (f"kernel k{k}(out: device f32) {{\n  store %out, {k}.0:f32\n}}\n\n" for k in range(20000))
    return write("long.ir", "".join(kernels))


def test_closed_pipe(long_text):
    words = [str(SPORK), "ir", str(long_text)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"kernel k0")
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=60) in (1, -signal.SIGPIPE)
    assert err == b"" or err.startswith(b"spork: error: cannot write")


@pytest.mark.parametrize("where", ["/dev/full", "closed"])
def test_output_that_cannot_be_written(long_text, write, where):
    short = write("short.ir", COPY.format("f32"))
    commands = [["--help"], ["--version"], ["run", "--help"], ["devices"], ["ir", short], ["ir", long_text], ["emit", short]]
    for words in commands:
        redirect = ">&-" if where == "closed" else ">/dev/full"
        shell = ["sh", "-c", f'exec "$0" "$@" {redirect}', str(SPORK), *map(str, words)]
        done = subprocess.run(shell, capture_output=True, timeout=60, check=False)
        assert done.returncode == 1, words
        assert done.stderr.startswith(b"spork: error: cannot write the output: "), words


# ---- emit ------------------------------------------------------------------------------------------------------------


def test_emit_ir(write):
    path = write("two.ir", COPY.format("f32") + "\n" + COPY.format("i32").replace("copy", "other"))
    text = fine("emit", f"{path}:copy")
    assert "out[i] = a[i];" in text and "device float *out" in text and "other" not in text
    assert "device int *out" in fine("emit", f"{path}:other", "--as", "msl")
    assert "kernel copy" in fine("emit", f"{path}:copy", "--as", "ir")
    assert fine("emit", write("one.ir", COPY.format("f32"))) == text
    fails(1, "emit", f"{path}:none", match="no kernel called 'none'")


PYTHON = """import spork as sk
from beside import TWO

@sk.jit
def scale(out: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
    out[i] = out[i] * TWO

@sk.jit
def wrong(out: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
    if out[i] > 0:
        out[i] = 1

assert __name__ != "__main__"
"""


def test_emit_python(write):
    path = write("scale.py", PYTHON)
    write("beside.py", "TWO = 2.0\n")
    text = fine("emit", f"{path}:scale")
    assert "kernel void scale" in text and "out[i] *= 2.0f;" in text
    assert text == fine("emit", f"{path}:scale", "--as", "msl")
    ir = fine("emit", f"{path}:scale", "--as", "ir")
    assert "kernel scale(" in ir
    saved = write("scale.ir", ir)
    assert fine("ir", saved) == ir
    shown = fine("run", saved, "scale", "--threads", "2", "out=full:1.5:2:f32", "--print", "out")
    assert shown == "out = 3.0 3.0\n"


def test_emit_python_errors(write, tmp_path):
    path = write("scale.py", PYTHON)
    write("beside.py", "TWO = 2.0\n")
    code, out, err = spork("emit", f"{path}:wrong")
    assert code == 1 and out == ""
    assert re.match(rf"{re.escape(str(path))}:10:(\d+:)? error: ", err), err
    code, out, err = spork("emit", f"{path}:none")
    assert code == 1 and out == "" and "none" in err and "scale" in err
    code, out, err = spork("emit", f"{tmp_path}/none.py:k")
    assert code == 1 and out == "" and "none.py" in err
