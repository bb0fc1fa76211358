"""`spork emit FILE.py[:KERNEL] --as msl|ir|llvm|asm`: prints a traced kernel. The spork command runs main() in Python."""

import contextlib
import importlib.util
import os
import sys
import traceback

import spork as sk


@contextlib.contextmanager
def stdout_to_stderr():
    """What the user's code prints, from Python or below it, must not end up in the kernel's text."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # line by line, in order with what others write to 2
            yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def load(path):
    """Runs the file as a module of its own name, with its folder importable, as `python FILE` has it."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def fail(text):
    print(text, file=sys.stderr)
    return 1


def fail_with(error, path):
    """FILE:LINE: error: ..., the form that editors jump to, after the frames of the user's code if they are several."""
    ours = os.path.dirname(os.path.abspath(__file__))
    frames = traceback.extract_tb(error.__traceback__)
    frames = [f for f in frames if not f.filename.startswith((ours, "<frozen importlib"))]
    here = [f for f in frames if os.path.abspath(f.filename) == os.path.abspath(path)]
    message = "".join(traceback.format_exception_only(type(error), error)).strip()
    file, line = path, here[-1].lineno if here else None
    if isinstance(error, SyntaxError):
        file, line, message = error.filename or path, error.lineno, f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, sk.SporkError) and error.file:
        file, line, message = error.file, error.line, str(error).partition(": ")[2]
    elif isinstance(error, sk.SporkError):
        message = str(error)
    elif isinstance(error, SystemExit):
        message = f"the file ends Python while it is loaded (exit code {error.code})"
    if len(frames) > 1:
        sys.stderr.writelines(traceback.format_list(frames))
    return fail(f"{file}:{line}: error: {message}" if line else f"{file}: error: {message}")


def find(module, path, name):
    """The kernel, or None after an error. Kernels imported from other files count if there are no others."""
    kernels = {n: v for n, v in vars(module).items() if isinstance(v, sk.JittedKernel)}
    if name in kernels:
        return kernels[name]
    own = {n: v for n, v in kernels.items() if v.__module__ == module.__name__} or kernels
    known = ", ".join(sorted(own))
    if name:
        fail(f"{path}: error: it has no kernel '{name}'; its kernels: {known or 'none'}")
    elif not own:
        fail(f"{path}: error: it has no kernel, a function decorated with sk.jit")
    elif len(set(own.values())) > 1:
        fail(f"{path}: error: it has several kernels; write {path}:KERNEL with one of {known}")
    else:
        return next(iter(own.values()))
    return None


def text_of(kernel, form, threadgroup):
    if threadgroup:
        kernel = kernel.bind(1, [int(n) for n in threadgroup.split(",")])
    return getattr(kernel, {"msl": "metal_source", "ir": "ir", "llvm": "cpu_ir", "asm": "cpu_asm"}[form])


def main(what, form, threadgroup=""):
    path, name = (what, "") if what.endswith(".py") else what.rpartition(":")[::2]
    if not os.path.isfile(path):
        return fail(f"{path}: error: cannot read the file")
    try:
        with stdout_to_stderr():
            kernel = find(load(path), path, name)
            text = kernel and text_of(kernel, form, threadgroup)
    except (Exception, SystemExit) as error:
        return fail_with(error, path)
    if text is None:
        return 1
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
