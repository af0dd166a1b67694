"""Watchdog: no test file hangs without a reason.

A test method that takes longer than METHOD_S, or a file that takes longer than FILE_S (ctest would kill it a minute
later, and say nothing), is ended: it says which test it was, where each thread of it stood, and the last lines of every log of
the daemons; what the tests started is stopped by its guards, and whatever is left killed by its pid. Where Python itself
stands still (its lock is held in some library, as while it forks) faulthandler says where, a little later, and ends it.
"""
import faulthandler
import os
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

METHOD_S = float(os.environ.get("NUI_E2E_METHOD_S", 1200))  # above one wait of 60 s times base.patience
FILE_S = 3540  # below the TIMEOUT of CMakeLists.txt
LAST_LINES = 12

places = []  # (directory with logs, guard: the process that stops what was started there once its stdin is closed)


def guarded(directory, guard):
    places.append((Path(directory), guard))


def children():
    """Living processes below this one, the nearest first."""
    below = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = entry.read_text()
        except OSError:
            continue
        state, parent = text[text.rindex(")") + 2:].split()[:2]
        if state not in "ZX":
            below.setdefault(int(parent), []).append(int(entry.parent.name))
    found = [os.getpid()]
    for pid in found:
        found += below.get(pid, [])
    return found[1:]


def tell_logs(directory):
    for log in sorted((*directory.glob("**/*.log"), *directory.glob("log/*.stderr"))):
        lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        if lines:
            print(f"---- the end of {log}", *lines, sep="\n", file=sys.stderr)


def end(sentence):
    faulthandler.cancel_dump_traceback_later()
    print(f"\n==== {sentence}; it is ended here", file=sys.stderr, flush=True)
    faulthandler.dump_traceback(file=sys.stderr)
    if dog.result:
        dog.result.printErrors()
    for directory, guard in places:
        tell_logs(directory)
    for directory, guard in places:
        if guard.poll() is None:
            guard.stdin.close()
            try:
                guard.wait(60)
            except subprocess.TimeoutExpired:
                pass
    for pid in children():
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    for directory, _ in places:
        print(f"==== {sentence}; its files are kept in {directory}", file=sys.stderr, flush=True)
    os._exit(1)


class Watchdog(threading.Thread):
    """Looks once a second; what goes on is a test, or what lies between two (classes made and ended)."""

    def __init__(self):
        super().__init__(daemon=True)
        self.born = time.monotonic()
        self.doing = "the first class", self.born
        self.result = None

    def now(self, what):
        self.doing = what, time.monotonic()
        faulthandler.dump_traceback_later(1.1 * METHOD_S + 2, exit=True)

    def run(self):
        while True:
            time.sleep(min(1, METHOD_S / 4))
            (what, since), now = self.doing, time.monotonic()
            if now - since > METHOD_S:
                end(f"{what} took more than {METHOD_S:g} s")
            if now - self.born > FILE_S:
                end(f"the file took more than {FILE_S} s, the last of it {what}")


dog = Watchdog()


class Result(unittest.TextTestResult):
    def startTest(self, test):
        dog.result = self
        dog.now(test.id())
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        dog.now(f"what follows {test.id()}")


class Runner(unittest.TextTestRunner):
    resultclass = Result


def main():
    dog.start()
    unittest.main(verbosity=2, testRunner=Runner)
