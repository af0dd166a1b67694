#!/usr/bin/env python3
"""format: every C source is laid out as .clang-format says.

  format.py --root DIR [--fix]     says which files differ; --fix lays them out
"""
import argparse
import os
import subprocess
import sys

FOLDERS = ("bank", "certs", "cli", "local", "meta", "proto", "tests")
AT_ONCE = 40  # files a call


def sources(root):
    for folder in FOLDERS:
        for base, _, names in os.walk(os.path.join(root, folder)):
            yield from (os.path.join(base, n) for n in sorted(names) if n.endswith((".c", ".h")))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", required=True)
    p.add_argument("--fix", action="store_true")
    p.add_argument("--clang-format", default="clang-format")
    a = p.parse_args()
    files = list(sources(a.root))
    if not files:
        sys.exit(f"format: no sources under {a.root}")
    differ = []
    for i in range(0, len(files), AT_ONCE):
        some = files[i:i + AT_ONCE]
        if a.fix:
            subprocess.run([a.clang_format, "-i", "--style=file", *some], check=True)
            continue
        done = subprocess.run([a.clang_format, "--dry-run", "--style=file", *some], check=True, capture_output=True, text=True)
        differ += sorted({line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line})
    for f in differ:
        print(f"{os.path.relpath(f, a.root)} is not laid out as .clang-format says: tests/tidy/format.py --root . --fix", file=sys.stderr)
    print(f"{len(files)} files, {len(differ)} differ")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
