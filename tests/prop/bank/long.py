#!/usr/bin/python3
"""prop_bank at length: seed after seed until so many operations were compared. What fails is run again with
ever fewer operations, and the shortest run that still fails is printed as a command.

    long.py --program build/dev/tests/prop/bank/prop_bank [--ops 1000000] [--each 5000] [--worlds 10] [--seed 1]
"""
import argparse
import os
import re
import subprocess
import sys
import time


def ranges(numbers):
    """[1, 2, 3, 7] -> "1-3,7-7"."""
    out = []
    for n in sorted(numbers):
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join(f"{first}-{last}" for first, last in out)


def shrink(count, fails, deadline):
    """The numbers below count that must stay for fails (left out) to be true, as far as time goes: pieces are
    left out as long as it still fails, halved down to single operations."""
    kept = list(range(count))
    size = max(1, count // 2)
    while True:
        at, less = 0, False
        while at < len(kept) and time.monotonic() < deadline:
            fewer = kept[:at] + kept[at + size:]
            if fails(set(range(count)) - set(fewer)):
                kept, less = fewer, True
            else:
                at += size
        if time.monotonic() >= deadline or (size == 1 and not less):
            return kept
        size = max(1, size // 2)


def run(program, seed, ops, without=(), worlds=1):
    """A server of its own for so many ledgers, in memory where there is room for that."""
    shm = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    return subprocess.run([program], text=True, capture_output=True,
                          env={**shm, **os.environ, "NUI_PROP_OPS": str(ops), "NUI_PROP_SEED": str(seed),
                               "NUI_PROP_WORLDS": str(worlds), "NUI_PROP_WITHOUT": ranges(without)})


def report(program, done, seconds):
    print(done.stdout + done.stderr, end="")
    found = re.search(r"seed (\d+), operation (\d+):", done.stderr)
    if not found:
        return
    seed, ops = int(found[1]), int(found[2])
    print(f"making seed {seed} shorter, for at most {seconds} s …", flush=True)
    kept = shrink(ops, lambda without: run(program, seed, ops, without).returncode == 1,
                  time.monotonic() + seconds)
    without = set(range(ops)) - set(kept)
    print(f"{len(kept)} operations are enough:\n  NUI_PROP_SEED={seed} NUI_PROP_OPS={ops} "
          f"NUI_PROP_WITHOUT={ranges(without)} {program}")
    print(run(program, seed, ops, without).stderr, end="")


def selftest():
    """What needs 17, 423 and 424 of 1000 is found, in few runs; what always fails becomes nothing."""
    runs = []

    def fails(without):
        runs.append(without)
        return not {17, 423, 424} & without
    assert shrink(1000, fails, time.monotonic() + 60) == [17, 423, 424]
    assert len(runs) < 200, len(runs)
    assert shrink(50, lambda without: True, time.monotonic() + 60) == []
    assert shrink(3, lambda without: False, time.monotonic() + 60) == [0, 1, 2]
    assert ranges({5, 1, 2, 3, 9}) == "1-3,5-5,9-9" and ranges([]) == ""


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--program")
    ask.add_argument("--ops", type=int, default=1000000, help="in all")
    ask.add_argument("--each", type=int, default=5000, help="of one seed: the model's tables have bounds")
    ask.add_argument("--worlds", type=int, default=10, help="seeds that share a server, one after the other")
    ask.add_argument("--seed", type=int, default=1, help="the first")
    ask.add_argument("--shrink-seconds", type=int, default=900)
    ask.add_argument("--selftest", action="store_true")
    args = ask.parse_args()
    if args.selftest:
        selftest()
        return 0
    if not args.program:
        ask.error("--program: which prop_bank?")
    seed, left = args.seed, args.ops
    while left > 0:
        worlds = min(args.worlds, -(-left // args.each))
        done = run(args.program, seed, args.each, worlds=worlds)
        if done.returncode:
            report(args.program, done, args.shrink_seconds)
            return 1
        print(done.stdout, end="", flush=True)
        left -= args.each * worlds
        seed += worlds
    return 0


if __name__ == "__main__":
    sys.exit(main())
