"""`spork emit FILE.py:KERNEL --as msl|ir`: prints a traced kernel. Run by the spork command as `python -m spork._emit`."""

import importlib.util
import os
import sys

import spork as sk


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


def main(what, form):
    path, _, name = what.rpartition(":")
    if not os.path.isfile(path):
        return fail(f"{path}: error: cannot read the file")
    kernel = vars(load(path)).get(name)
    if not isinstance(kernel, sk.JittedKernel):
        kernels = sorted(n for n, v in vars(sys.modules[os.path.splitext(os.path.basename(path))[0]]).items()
                         if isinstance(v, sk.JittedKernel))
        known = ", ".join(kernels) if kernels else "none"
        return fail(f"{path}: error: it has no kernel '{name}'; its kernels: {known}")
    try:
        text = kernel.metal_source if form == "msl" else kernel.ir
    except sk.SporkError as error:
        # "FILE:LINE: message" becomes the form that editors jump to.
        place, sep, message = str(error).partition(": ")
        return fail(f"{place}: error: {message}" if sep and error.file else f"{path}: error: {error}")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
