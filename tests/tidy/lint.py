#!/usr/bin/env python3
"""lint: clang's warnings and clang-tidy's bugprone checks on every C file of the product.

  lint.py --root DIR [-j N] [--deep] BUILD [FILE...]    as .clang-tidy says; with FILEs (parts of paths) only these
    --deep    clang's static analyser too, in its shallow mode; it knows nothing of reference counts

BUILD is a configured and built preset of gcc: its compile_commands.json says how each file is compiled, and the messages
that protobuf-c makes are there. Each finding is printed as clang-tidy prints it; any makes it fail.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys

DEEP = ["--checks=clang-analyzer-*,-clang-analyzer-optin.performance.Padding,-clang-analyzer-valist.Uninitialized,"
        "-clang-analyzer-security.insecureAPI.*", *(f"--extra-arg={w}" for w in ("-Xclang", "-analyzer-config", "-Xclang", "mode=shallow"))]
PRODUCT = ("bank", "certs", "cli", "local", "meta", "proto")


def sources(build, root):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        found = {os.path.relpath(row["file"], root) for row in json.load(f)}
    return sorted(f for f in found if f.endswith(".c") and f.split(os.sep)[0] in PRODUCT)


def look(tool, build, root, name, options):
    """What it finds, and whether it ran: clang-tidy also fails for what it finds."""
    done = subprocess.run([tool, "--quiet", *options, "-p", build, os.path.join(root, name)], capture_output=True, text=True)
    said = done.stdout.strip()
    return said or (done.stderr.strip() if done.returncode else "")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--root", required=True)
    p.add_argument("-j", type=int, default=os.cpu_count())
    p.add_argument("--deep", action="store_true")
    p.add_argument("--clang-tidy", default="clang-tidy")
    p.add_argument("files", nargs="*")
    a = p.parse_args()
    root = os.path.abspath(a.root)
    names = [n for n in sources(a.build, root) if not a.files or any(part in n for part in a.files)]
    if not names:
        sys.exit(f"lint: no source of the product in {a.build}/compile_commands.json")
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        said = list(pool.map(lambda n: look(a.clang_tidy, a.build, root, n, DEEP if a.deep else []), names))
    findings = sorted({line for text in said for line in text.splitlines() if re.search(r": (warning|error): ", line)})
    print("\n".join(text for text in said if text))
    print(f"{len(names)} files, {len(findings)} findings")
    return any(said)


if __name__ == "__main__":
    sys.exit(main())
