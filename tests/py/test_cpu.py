"""The device cpu from Python: its code, threads, processes, signals, the cache, what happens without LLVM."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import spork as sk

pytestmark = pytest.mark.skipif(str(sk.default_device()) != "cpu", reason="the default device is not the cpu")

SPORK = Path(os.environ.get("SPORK_BUILD", Path(sk.__file__).resolve().parents[2])) / "spork"
F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]

ADD = """
import os, sys
import numpy as np
import spork as sk
F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]

@sk.jit
def add(out: F32, a: F32, b: F32, i: THREAD):
    out[i] = a[i] + b[i]

def check(n=1000):
    a, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    add.launch(out, a, a, threads=n, threadgroup=128)
    assert np.array_equal(out, a + a)

def maps_llvm():
    with open("/proc/self/maps") as maps:
        return "libLLVM" in maps.read()
"""
FOREVER = """
@sk.jit
def forever(out: F32, stop: sk.DevicePointer[sk.dt.uint32]):
    with sk.while_(lambda: stop[0] == 0):
        out[0] += 1
        out[1] = out[0] * 2
"""
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


def make_add():
    @sk.jit
    def add(out: F32, a: F32, b: F32, i: THREAD):
        out[i] = a[i] + b[i]

    return add


def python(text, cache=None, fails=False, timeout=60, **env):
    """stdout and stderr of a Python process that runs this after ADD."""
    if cache is not None:
        env["SPORK_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", ADD + text],
        env={k: v for k, v in {**os.environ, **env}.items() if v is not None},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert (done.returncode != 0) == fails, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


# ---- what a reader sees -------------------------------------------------------------------------------------------


def test_cpu_ir():
    add = make_add()
    before = add.cpu_ir
    assert before == add.bind(1, 256).cpu_ir != add.bind(1, 64).cpu_ir
    assert re.search(r"define .*@spork_kernel", before) and re.search(r"fadd <\d+ x float>", before)
    a = np.zeros(100, np.float32)
    add.launch(a, a, a, threads=100, threadgroup=64)
    assert add.cpu_ir == add.bind(1, 64).cpu_ir == add.bind(threads=100, threadgroup=64).cpu_ir
    add[2, (8, 4)](a, a, a)
    assert add.cpu_ir == add.bind(1, (8, 4)).cpu_ir


def test_cpu_asm():
    add = make_add()
    text = add.cpu_asm
    assert "spork_kernel:" in text and "define " not in text
    if re.search(r"%[xyz]mm", text):
        assert re.search(r"\bv?addps\b", text)

    @sk.jit
    def gather(out: F32, a: F32, at: sk.DevicePointer[sk.dt.uint32], i: THREAD):
        out[i] = a[at[i]]

    assert len(gather.bind(threads=64, bounds="off").cpu_asm) < len(gather.bind(threads=64).cpu_asm)


def test_code_needs_no_launch_and_no_other_device():
    out, _ = python("print(add.cpu_ir, sk.default_device())", SPORK_DEVICE="interp")
    assert "@spork_kernel" in out and out.endswith("interp\n")


def test_code_of_a_kernel_that_is_wrong():
    @sk.jit
    def wrong(out: F32):
        out[0] = "text"

    with pytest.raises(sk.SporkError):
        _ = wrong.cpu_ir
    with pytest.raises(sk.SporkError, match="1025"):
        _ = make_add().bind(1, 1025).cpu_asm


def test_without_llvm():
    text = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    check(); check()
    add.bind(1, 32)(*[np.zeros(32, np.float32)] * 3)
    @sk.jit
    def other(out: F32):
        out[0] = 7
    other[1, 1](np.zeros(1, np.float32))
print(sk.default_device(), [(w.category.__name__, "libllvm19" in str(w.message)) for w in caught])
for name in "cpu_ir", "cpu_asm":
    try:
        getattr(add, name)
    except sk.SporkError as error:
        print(name in str(error), "libllvm19" in str(error), error.line)
"""
    out, err = python(text, SPORK_LLVM="off", SPORK_DEVICE=None)
    lines = out.splitlines()
    assert lines[0] == "interp [('RuntimeWarning', True)]" and err == ""
    assert len(lines) == 3 and all(re.fullmatch(r"True True \d+", line) for line in lines[1:])
    out, err = python("check(); print(sk.default_device())", SPORK_LLVM="off", SPORK_DEVICE="interp")
    assert (out, err) == ("interp\n", "")
    _, err = python("check()", SPORK_LLVM="/nowhere/libLLVM.so", SPORK_DEVICE=None)
    assert "RuntimeWarning" in err and "/nowhere/libLLVM.so" in err
    _, err = python("check()", SPORK_LLVM="off", SPORK_DEVICE="cpu", fails=True)
    assert "SPORK_LLVM=off" in err
    out, err = python("try: check()\nexcept RuntimeWarning: check(); print('went on')", SPORK_LLVM="off",
                      SPORK_DEVICE=None, PYTHONWARNINGS="error::RuntimeWarning")  # fmt: skip
    assert out == "went on\n"


# ---- bounds -------------------------------------------------------------------------------------------------------


def test_bounds():
    add = make_add()
    a, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    for bounds in ("on", "off"):
        out[:] = 0
        add.launch(out, a, a, threads=100, threadgroup=32, bounds=bounds)
        assert np.array_equal(out, a + a)
        bound = add.bind(threads=100, threadgroup=32, bounds=bounds)
        out[:] = 0
        bound(out, a, b=a)
        assert np.array_equal(out, a + a) and bound.bounds == bounds
    assert add[1, 32].bounds == "on"
    for wrong in ("OFF", False, None, 0, "no"):
        with pytest.raises(ValueError, match="bounds is 'on' or 'off'"):
            add.launch(out, a, a, threads=100, bounds=wrong)
        with pytest.raises(ValueError, match="bounds is 'on' or 'off'"):
            add.bind(threads=100, bounds=wrong)


def test_bounds_stay_checked_when_on_and_on_the_interpreter():
    @sk.jit
    def past(out: F32, i: THREAD):
        out[i + 50] = 1

    out = np.zeros(100, np.float32)
    past.launch(out, threads=32, threadgroup=32, bounds="off")
    assert out.sum() == 32
    with pytest.raises(sk.KernelFault):
        past.launch(out, threads=64, threadgroup=32)
    text = """
out = np.zeros(10, np.float32)
try:
    add.launch(out, out, out, threads=20, bounds="off")
except sk.KernelFault:
    print("checked")
"""
    assert python(text, SPORK_DEVICE="interp")[0] == "checked\n"


# ---- threads ------------------------------------------------------------------------------------------------------


def test_threads():
    before = sk.threads()
    assert before >= 1
    try:
        for n in (1, 2, 5, np.int64(3)):
            sk.set_threads(n)
            assert sk.threads() == n
            a, out = np.arange(100000, dtype=np.float32), np.zeros(100000, np.float32)
            make_add().launch(out, a, a, threads=a.size)
            assert np.array_equal(out, a + a)
        for wrong in (0, -1, 257, 2**40):
            with pytest.raises(ValueError, match="1 to 256"):
                sk.set_threads(wrong)
        for wrong in ("2", 1.5, [1]):
            with pytest.raises(TypeError):
                sk.set_threads(wrong)
        assert sk.threads() == 3
    finally:
        sk.set_threads(None)
    assert sk.threads() == before
    assert python("print(sk.threads())", SPORK_THREADS="3")[0] == "3\n"
    assert python("sk.set_threads(4); print(sk.threads())", SPORK_DEVICE="interp")[0] == "1\n"


def test_launches_from_several_threads():
    @sk.jit
    def powers(out: F32, x: F32, n: sk.Uint, i: THREAD):
        v = sk.local(sk.dt.float32, 1)
        for _ in sk.range(n):
            v *= x[i]
        out[i] = v

    wrong = []

    def work(k):
        x = np.full(3000 + k, 1 + k / 64, np.float32)
        expected = np.float32(1)
        for _ in range(20):
            expected = expected * x[0]
        out = np.zeros_like(x)
        for j in range(30):
            out[:] = 0
            powers.launch(out, x, 20, threads=x.size, threadgroup=32 << (k + j) % 4)  # compiles in several at once
            if not np.all(out == expected):
                wrong.append((k, j))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_long_launches_let_other_threads_run():
    @sk.jit
    def spin(out: F32, n: sk.Uint):
        for _ in sk.range(n):
            out[0] = out[0] * 0.5 + 1

    out = np.zeros(1, np.float32)
    bound = spin[1, 1]
    bound(out, 10)
    for in_thread in (False, True):
        beats, ended = [], threading.Event()

        def launch(done=ended):
            bound(out, 30_000_000)
            done.set()

        def beat(beats=beats, done=ended):
            while not done.is_set():
                beats.append(1)
                time.sleep(0.001)

        other = threading.Thread(target=launch if in_thread else beat)
        other.start()
        (beat if in_thread else launch)()
        other.join()
        assert len(beats) > 3


# ---- processes ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of fork with live threads
def test_fork_with_live_workers():
    add = make_add()
    a, out = np.arange(1 << 20, dtype=np.float32), np.zeros(1 << 20, np.float32)
    bound = add.bind(threads=a.size, threadgroup=256)
    bound(out, a, a)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                out[:] = 0
                bound(out, a, a)
                fresh = make_add()
                fresh.launch(out[:64], a[:64], a[:64], threads=64, threadgroup=16)  # and one to compile
                code = 0 if np.array_equal(out, a + a) else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        bound(out, a, a)
        assert np.array_equal(out, a + a)


def in_child(k):
    a, out = np.full(5000, k, np.float32), np.zeros(5000, np.float32)
    make_add().launch(out, a, a, threads=a.size, threadgroup=64)
    return float(out.sum())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method):
    in_child(1)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(in_child, range(6), chunksize=1) == [10000.0 * k for k in range(6)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_llvm_is_being_opened(tmp_path):
    text = """
child = os.fork()
check()
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    for k in range(3):
        assert python(text, cache=tmp_path / str(k))[0] == "0\n"


def test_threads_that_end_and_exit(tmp_path):
    """The process may end while LLVM is being opened, or while a thread launches."""
    python("", cache=tmp_path / "a")
    for k in range(5):
        python("import threading\nthreading.Thread(target=check, daemon=True).start()", cache=tmp_path / str(k))


# ---- signals ------------------------------------------------------------------------------------------------------


def interrupt(text, cache):
    """Runs a program that prints `ready`, sends SIGINT, and gives its output and how long it took to end."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", ADD + FOREVER + text],
        env={**os.environ, "SPORK_CACHE_DIR": str(cache)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        return out, err, time.monotonic() - begun, process.returncode
    finally:
        process.kill()


@pytest.mark.parametrize("groups, size", [(1, 1), (1, 256), (64, 256)])
def test_interrupt_ends_an_endless_loop(tmp_path, groups, size):
    text = f"""
out, stop = np.zeros(2, np.float32), np.zeros(1, np.uint32)
stop[0] = 1
forever[{groups}, {size}](out, stop)
stop[0] = 0
print("ready")
try:
    forever[{groups}, {size}](out, stop)
except KeyboardInterrupt:
    check()
    stop[0] = 1
    forever[{groups}, {size}](out, stop)
    print("went on")
"""
    out, err, seconds, code = interrupt(text, tmp_path)
    assert (out, err, code) == ("went on\n", "", 0)
    assert seconds < 5


def test_a_handler_that_does_not_raise(tmp_path):
    """It runs while the launch goes on, may launch itself, and may end the loop through memory."""
    text = """
import signal
out, stop = np.zeros(2, np.float32), np.zeros(1, np.uint32)
def handler(*_):
    check()
    print("handled")
    stop[0] = 1
signal.signal(signal.SIGINT, handler)
stop[0] = 1
forever[1, 1](out, stop)
stop[0] = 0
print("ready")
try:
    forever[1, 1](out, stop)
    print("done")
except sk.KernelFault as fault:
    print("done" if "progress" in str(fault) else fault)
"""
    out, err, seconds, code = interrupt(text, tmp_path)
    assert (err, code) == ("", 0) and out.endswith("done\n")


# ---- the cache ----------------------------------------------------------------------------------------------------


@linux
def test_a_warm_process_does_not_open_llvm(tmp_path):
    text = "check(); check(77); print(maps_llvm())"
    assert python(text, cache=tmp_path)[0] == "True\n"
    assert python(text, cache=tmp_path)[0] == "False\n"
    assert python("check(); check(77); add.cpu_asm; print(maps_llvm())", cache=tmp_path)[0] == "True\n"


@linux
def test_llvm_is_opened_at_the_first_decoration(tmp_path):
    wait = "import time\nfor _ in range(200):\n    if maps_llvm(): break\n    time.sleep(0.02)\nprint(maps_llvm())\n"
    assert python(wait, cache=tmp_path)[0] == "True\n"


@linux
@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b[:-9] + bytes(9), lambda b: b"x" * 500])
def test_damaged_entries(tmp_path, damage):
    python("check()", cache=tmp_path)
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert files
    for file in files:
        file.chmod(0o600)
        file.write_bytes(damage(file.read_bytes()))
    python("check()", cache=tmp_path)
    assert python("check(); print(maps_llvm())", cache=tmp_path)[0] == "False\n"  # replaced


@linux
def test_foreign_entries(tmp_path):
    python("check()", cache=tmp_path)
    for file in [f for f in tmp_path.rglob("*") if f.is_file()]:
        file.chmod(0o666)
    assert python("check(); print(maps_llvm())", cache=tmp_path)[0] == "True\n"


@pytest.mark.parametrize("how", ["read-only", "a file", "open to others", "missing", "off", "empty", "no home"])
def test_cache_folders(tmp_path, how):
    folder, env = tmp_path / "cache", {}
    if how == "a file":
        folder.write_text("not a folder")
    elif how == "read-only":
        folder.mkdir(mode=0o500)
    elif how == "open to others":
        folder.mkdir()
        folder.chmod(0o777)
    elif how == "missing":
        folder = folder / "in" / "many"
    elif how == "off":
        folder = "off"
    elif how == "empty":
        folder = ""
    else:
        env, folder = {"HOME": None, "XDG_CACHE_HOME": None}, None
    env["SPORK_CACHE_DIR"] = None if folder is None else str(folder)
    assert python("check(); print('fine')", **env) == ("fine\n", "")
    if how == "open to others":
        assert not list(folder.iterdir())
    if how == "missing":
        assert list(folder.iterdir()) and folder.stat().st_mode & 0o77 == 0
    if how == "a file":
        assert folder.read_text() == "not a folder"


@pytest.mark.skipif(not SPORK.exists(), reason="the command is not built")
def test_the_cache_command(tmp_path):
    def spork(*words, **env):
        done = subprocess.run([str(SPORK), *words], env={**os.environ, "SPORK_CACHE_DIR": str(tmp_path), **env},
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        return done.returncode, done.stdout

    python("check()", cache=tmp_path)
    (tmp_path / "mine.txt").write_text("stays")
    code, out = spork("cache")
    assert code == 0 and out.startswith(f"{tmp_path}\n") and re.search(r"\badd 128x1x1\b", out)
    code, out = spork("cache", "--clear")
    assert code == 0 and re.match(r"[1-9]\d* entries removed", out)
    assert [f.name for f in tmp_path.iterdir()] == ["mine.txt"]
    assert "0 entries" in spork("cache")[1]
    assert spork("cache", SPORK_CACHE_DIR="off") == (0, "no cache: switched off by SPORK_CACHE_DIR\n")
    assert spork("cache", "--clear", SPORK_CACHE_DIR="off")[0] == 0
    assert spork("cache", "--wipe")[0] == 2


# ---- large kernels ------------------------------------------------------------------------------------------------


def test_a_kernel_too_large_is_interpreted():
    @sk.jit
    def large(out: F32, x: F32, i: THREAD):
        v = x[i]
        for k in range(12000):
            v = sk.select(v > k, v * 0.5, v + 1) + sk.sin(v)
        out[i] = v

    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    begun = time.monotonic()
    with pytest.warns(RuntimeWarning, match="'large' is interpreted, which is slow"):
        large.launch(out, x, threads=4, threadgroup=4)
    assert time.monotonic() - begun < 30
    assert np.all(np.isfinite(out)) and np.all(out == out[0])
    with pytest.raises(sk.UnsupportedError, match="interpreter"):
        _ = large.cpu_asm
    assert "@spork_kernel" in large.cpu_ir
    first = out.copy()
    large.launch(out, x, threads=4, threadgroup=4)
    assert np.array_equal(out, first)


# ---- spork emit, spork devices ------------------------------------------------------------------------------------


@pytest.mark.skipif(not SPORK.exists(), reason="the command is not built")
def test_commands_for_readers(tmp_path):
    (tmp_path / "a.py").write_text(ADD)
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

    def spork(*words, **env):
        done = subprocess.run([str(SPORK), *words], cwd=tmp_path, env={**os.environ, "PATH": path, **env},
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    (tmp_path / "a.ir").write_text(spork("emit", "a.py", "--as", "ir")[1])
    for file in ("a.py", "a.ir", "a.ir:add"):
        code, llvm, _ = spork("emit", file, "--as", "llvm")
        assert code == 0 and "@spork_kernel" in llvm
        code, other, _ = spork("emit", file, "--as", "llvm", "--threadgroup", "8,4,2")
        assert code == 0 and other != llvm
        code, asm, _ = spork("emit", file, "--as", "asm", "--threadgroup", "8,4,2")
        assert code == 0 and "spork_kernel:" in asm
    assert spork("emit", "a.ir", "--as", "llvm")[1] == spork("emit", "a.ir", "--as", "llvm", "--threadgroup", "256,1,1")[1]
    for wrong in (("--threadgroup", "8,4"), ("--threadgroup", "0,1,1"), ("--threadgroup", "64,64,1"), ("--as", "ptx")):
        assert spork("emit", "a.ir", "--as", "llvm", *wrong)[0] == 2
    assert spork("emit", "a.ir", "--threadgroup", "8,4,2")[0] == 2
    code, out, err = spork("emit", "a.ir", "--as", "asm", SPORK_LLVM="off")
    assert code == 1 and "SPORK_LLVM=off" in err
    code, out, _ = spork("devices")
    assert code == 0 and re.search(r"LLVM \d+\.\d+\.\d+, (un)?tested", out) and f"{sk.threads()} thread" in out
    assert "5 threads a launch" in spork("devices", SPORK_THREADS="5")[1]
    code, out, _ = spork("devices", SPORK_LLVM="off", SPORK_DEVICE="")
    assert code == 0 and out.startswith("* interp") and "- cpu: SPORK_LLVM=off" in out


def test_timings_name_the_steps():
    @sk.jit
    def double(out: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
        out[i] = out[i] * 2.0

    assert double.timings == {}
    out = np.ones(64, np.float32)
    double.launch(out, threads=64, threadgroup=32)
    assert (out == 2).all()
    steps = double.timings
    assert list(steps) == ["trace", "lower", "open LLVM", "compile", "link"]
    assert steps["trace"] > 0 and steps["lower"] > 0 and all(0 <= seconds < 60 for seconds in steps.values())


def test_threads_of_the_environment_are_checked():
    code = """
import numpy as np, spork as sk
@sk.jit
def one(out: sk.DevicePointer[sk.dt.float32]):
    out[0] = 1
try:
    one.launch(np.zeros(1, np.float32), threads=1, threadgroup=1)
except ValueError as error:
    print(error)
"""
    assert "SPORK_THREADS is 'many'; it takes a number of threads from 1 to 256" in python(code, SPORK_THREADS="many")[0]


def test_help_reads_types():
    import pydoc

    @sk.jit
    def one(out: sk.DevicePointer[sk.dt.float32]):
        out[0] = 1

    assert type(one).__module__ == "spork" and one.__module__ == __name__
    for thing in (one, one.launch, one.bind, type(one)):
        assert pydoc.render_doc(thing)
