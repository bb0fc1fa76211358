#!/bin/sh
# setup.sh [--lint] - makes the tools that the build, the tests and (--lint) the lint need present: programs, by apt
# where we are root and apt is there, and .venv with the packages of requirements.txt. LLVM's library, which kernels run
# fast with and run without, is installed too where apt can. Prints nothing and takes a few milliseconds when all is in
# place.
set -eu
cd "$(dirname "$0")/.."
stamp=.venv/spork-setup
key=$(cat tools/setup.sh tools/requirements.txt | cksum)" $PWD"

has() { command -v "$1" >/dev/null 2>&1; }

# The Debian packages whose programs are not there.
missing_programs() {
    has cc || echo gcc libc6-dev
    has meson || echo meson
    has ninja || echo ninja-build
    has pkg-config || echo pkg-config
    { has ld && has objcopy && has ar; } || echo binutils
    if [ "$lint" ]; then
        has git || echo git
        has clang-format || echo clang-format
        has clang-tidy || echo clang-tidy
    fi
}

# LLVM's shared library, in a version that src/llvm opens.
has_llvm() {
    for library in /usr/lib/*/libLLVM[.-]* /usr/lib/libLLVM[.-]* /usr/lib64/libLLVM[.-]* /usr/lib/llvm-*/lib/libLLVM[.-]*; do
        case $library in
        *libLLVM.so.1[6-9]* | *libLLVM.so.2[0-9]* | *libLLVM-1[6-9]* | *libLLVM-2[0-9]*) return ;;
        esac
    done
    return 1
}

# An interpreter that can make an environment and build an extension.
usable_python() {
    "$1" -c '
import ensurepip, os, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 9) or not os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h")))
' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
        if usable_python "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
}

apt_install() {
    echo "setup: apt-get install $*"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1 && return
    apt-get update >/dev/null && apt-get install -y --no-install-recommends "$@" >/dev/null
}

can_install() { [ "$(id -u)" = 0 ] && has apt-get; }

lint=
[ "${1:-}" = --lint ] && lint=1
packages=$(missing_programs)
fresh=
[ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && fresh=1
[ -z "$packages" ] && [ "$fresh" ] && exit 0

python=
if [ ! "$fresh" ]; then
    python=$(find_python)
    [ "$python" ] || packages="$packages python3 python3-dev python3-venv"
fi
if [ "$packages" ]; then
    if ! can_install; then
        echo "setup: missing, by the names of their Debian packages:" $packages >&2
        echo "setup: install them (python3: 3.9 or newer, with headers and venv), then run make again" >&2
        exit 1
    fi
    apt_install $packages
fi
# Tried once, when something is set up anyway: its absence is no error.
if [ ! "$fresh" ] && ! has_llvm && can_install; then
    apt_install libllvm19 2>/dev/null || echo "setup: no libllvm19 to install; kernels will be interpreted"
fi
case $(meson --version) in
0.*)
    echo "setup: meson $(meson --version) is too old; install meson 1.0 or newer" >&2
    exit 1
    ;;
esac
[ "$fresh" ] && exit 0

[ "$python" ] || python=$(find_python)
if [ ! "$python" ]; then
    echo "setup: no python3 of version 3.9 or newer with headers and venv" >&2
    exit 1
fi
echo "setup: .venv with $("$python" --version)"
rm -f "$stamp"
.venv/bin/python -c 'import pip' >/dev/null 2>&1 || "$python" -m venv --clear .venv
.venv/bin/python -m pip install -q --disable-pip-version-check -r tools/requirements.txt

# `import spork` finds the built package, and `spork` the built command.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD/build/python" >"$site/spork-build.pth"
ln -sf "$PWD/build/spork" .venv/bin/spork
echo "$key" >"$stamp"
