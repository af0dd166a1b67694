#!/usr/bin/python3 -B
"""Slowness: a busy machine, played without using its processors. What a test started of Nui's own programs (daemons, commands,
supervisors) stands still now and then: one of them at a time, chosen by a seed, for 50 to 1500 ms.

    NUI_SLOW=SEED python3 tests/e2e/test_tour.py      the fixture begins it
    NUI_SLOW=SEED tests/e2e/slowness.py PROGRAM ...   for a test program that starts daemons

What somebody else has stopped (a test, a suspension) is left alone. None stays stopped: the one that is goes on before
another is chosen, and before this program ends."""
import atexit
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

MARK = "NUI_SLOW_OF"  # in the environment of all that the test starts: they are found by it after their parents have gone
PAUSE_S = 0.01, 0.05
HOLD_S = 0.05, 1.5


def state_of(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None, 0
    state, parent = text[text.rindex(")") + 2:].split()[:2]
    return state, int(parent)


class Slowness(threading.Thread):
    def __init__(self, seed, build):
        super().__init__(daemon=True)
        self.random, self.build, self.over = random.Random(seed), f"{Path(build).resolve()}/", threading.Event()
        self.mark = f"{MARK}={os.getpid()}".encode()
        os.environ[MARK] = str(os.getpid())
        self.spared, self.lock = set(), threading.Lock()  # pids that a test halts itself

    def is_mine(self, pid):
        try:
            if not os.readlink(f"/proc/{pid}/exe").startswith(self.build):
                return False
            if self.mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return True
        except OSError:
            return False
        parent = pid
        while parent > 1 and parent != os.getpid():
            parent = state_of(parent)[1]
        return parent == os.getpid()

    def run(self):
        while not self.over.wait(self.random.uniform(*PAUSE_S)):
            mine = sorted(int(p.name) for p in Path("/proc").glob("[0-9]*") if int(p.name) != os.getpid() and self.is_mine(int(p.name)))
            if mine:
                self.hold(self.random.choice(mine), HOLD_S[0] * (HOLD_S[1] / HOLD_S[0]) ** self.random.random())

    def hold(self, pid, seconds):
        with self.lock:
            if pid in self.spared or state_of(pid)[0] not in ("R", "S", "D") or not self.send(pid, signal.SIGSTOP):
                return
        self.over.wait(seconds)
        with self.lock:
            if pid not in self.spared:
                self.send(pid, signal.SIGCONT)

    def send(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def spare(self, pid):
        """Before a test stops a process itself; it lets it go on itself, too."""
        with self.lock:
            self.spared.add(pid)

    def end(self):
        self.over.set()
        self.join()


def begin(build):
    """The thread, which is at it; None where no NUI_SLOW is in the environment."""
    if not os.environ.get("NUI_SLOW"):
        return None
    slowness = Slowness(os.environ["NUI_SLOW"], build)
    slowness.start()
    atexit.register(slowness.end)
    return slowness


def main(*command):
    if not command:
        sys.exit("usage: NUI_SLOW=SEED slowness.py PROGRAM [argument ...]")
    os.environ.setdefault("NUI_SLOW", "1")
    root = Path(__file__).resolve().parents[2]
    begin(os.environ.get("NUI_BUILD", root / "build" / "asan"))
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
