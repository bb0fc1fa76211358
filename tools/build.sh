#!/bin/sh
# build.sh FOLDER [MESON OPTION...] - configures FOLDER if needed, and builds.
set -eu
cd "$(dirname "$0")/.."
folder=$1
shift

configure() {
    log=$(meson setup "$@" 2>&1) || {
        echo "$log" >&2
        exit 1
    }
}

if [ ! -f "$folder/build.ninja" ]; then
    configure "$folder" "-Dpython=$PWD/.venv/bin/python" "$@"
elif [ .venv/spork-setup -nt "$folder/build.ninja" ]; then
    configure --reconfigure "$folder" "-Dpython=$PWD/.venv/bin/python" "$@"
elif ! .venv/bin/python tests/programs.py | cmp -s - "$folder/tests/c_tests.txt"; then
    configure --reconfigure "$folder" # a C test program came or went
fi
ninja -C "$folder" --quiet
