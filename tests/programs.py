#!/usr/bin/env python3
"""Lists the C test programs for tests/meson.build and tests/run.py: `unit/base` for tests/unit/base.c."""

from pathlib import Path

HERE = Path(__file__).resolve().parent


def names():
    return sorted(f"{file.parent.name}/{file.stem}" for folder in ("unit", "api") for file in (HERE / folder).glob("*.c"))


if __name__ == "__main__":
    for name in names():
        print(name)
