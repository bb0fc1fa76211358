# The thin front of meson and the scripts in tools/ and tests/. `make` sets up what is missing and builds.
PREFIX ?= /usr/local
LIBDIR ?= lib
N ?= 60
PYTHON_ENV = .venv/bin/python

all: setup
	@tools/build.sh build

setup:
	@tools/setup.sh

# The last line printed is `N passed, N failed`.
test: all
	@$(PYTHON_ENV) tests/run.py --py

# Rewrites what the text tests expect; read `git diff` afterwards.
bless: all
	@$(PYTHON_ENV) tests/run.py --bless

# Random programs for N seconds.
fuzz: all
	@$(PYTHON_ENV) fuzz/run.py --seconds $(N)

bench: all
	@$(PYTHON_ENV) bench/run.py
	@$(PYTHON_ENV) bench/cpu.py

demo: all
	@$(PYTHON_ENV) examples/matrix_add.py

# The tests with address and undefined-behaviour sanitizers, and memory that moves as often as it can.
SANITIZE = -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fno-sanitize-recover=all \
	-Dbuildtype=debugoptimized -Dhostile=true
asan: setup
	@CC=gcc tools/build.sh build-asan $(SANITIZE)
	@$(PYTHON_ENV) tests/run.py --build build-asan --py \
		--preload "$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so.6)"

lint:
	@tools/setup.sh --lint
	@tools/build.sh build
	@tools/lint

# Rewrites the C files in the style that lint asks for.
format:
	@tools/setup.sh --lint
	@tools/lint --format

# The tables of docs/language.md from the tables of the source.
docs:
	@python3 tools/docs.py

install: all
	@meson setup --reconfigure build --prefix="$(abspath $(PREFIX))" --libdir="$(LIBDIR)" >/dev/null
	@ninja -C build --quiet
	@meson install -C build --no-rebuild --tags runtime,devel,bin

clean:
	rm -rf build build-asan

.PHONY: all setup test bless fuzz bench demo asan lint format docs install clean
