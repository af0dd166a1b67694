"""Waiting, running, ports and processes: what the other modules share."""
import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Failure(Exception):
    """One sentence for the person at the terminal, and the log that says more."""

    def __init__(self, sentence, log=None):
        super().__init__(sentence + (f"; its log is {log}" if log else ""))


patience = 1  # times the limits of wait_for: tests, which share a machine, have more


def halting(_pid):
    """Is told of a process before a test stops it (SIGSTOP): tests/e2e/slowness.py then leaves it alone."""


asked_before = False  # a condition is asked again that was not true: see polled


def polled():
    """Of a client's environment: that it does not look for leaks once more, which is a third of its time, where the same wait
    ran it before (of use in builds with sanitizers alone)."""
    return {"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"} if asked_before else {}


def wait_for(what, condition, seconds, log=None, interval=0.02):
    """Polls until condition() is true and returns that value; Failure at the deadline. Conditions that start programs are
    asked less often, and seldom after a while, so that waiting leaves the processor to what is waited for."""
    global asked_before
    seconds *= patience
    start = time.monotonic()
    outer, asked_before = asked_before, False
    try:
        while True:
            begun = time.monotonic()
            value = condition()
            if value:
                return value
            now = time.monotonic()
            if now > start + seconds:
                raise Failure(f"waited {seconds} s in vain for {what}", log)
            ran = now - begun > interval
            time.sleep(max(interval, min(0.5, max(2 * (now - begun), (now - start) / 10 if ran else 0))))
            asked_before = True
    finally:
        asked_before = outer


def run(args, what, log=None, **options):
    """Runs a command to its end; Failure with its last words when it does not succeed."""
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Failure(f"{what} failed (exit {done.returncode}): {' / '.join(words)}", log)
    return done.stdout


claims = {}  # port -> a socket whose name in the abstract namespace says that the port is ours


def claim(port):
    """Makes a port ours until this program ends, also while the daemon that uses it is down: another
    grid that starts in that moment must not take it. False when another program has claimed it.
    The claim is an abstract socket name: the kernel gives it to one, and takes it back by itself."""
    if port in claims:
        return True
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0nui-port-{port}")
    except OSError:
        mark.close()
        return False
    claims[port] = mark
    return True


def free_ports(count):
    """Ports that are free on loopback and claimed by nobody, below the range the kernel gives to
    clients, so that none of its own choosing gets in the way later. They are claimed."""
    found = []
    for port in random.sample(range(22000, 28000), 4000):
        if port not in claims and port_is_free(port) and claim(port):
            found.append(port)
            if len(found) == count:
                return found
    raise Failure(f"no {count} free ports on loopback")


def port_is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def process_birth(pid):
    """Start time of a living process (field 22 of its stat), or None: (pid, birth) never repeats."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2:].split()
    return None if fields[0] in "ZX" else fields[19]


class Process:
    """A background process that a later run of this program can find and end, by its own pid."""

    def __init__(self, name, pid_file, log):
        self.name, self.pid_file, self.log = name, Path(pid_file), Path(log)
        self.child = None

    def pid(self):
        """The living process's id, or None."""
        if self.child is not None:
            self.child.poll()  # reap
        try:
            pid, birth = self.pid_file.read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid) if process_birth(pid) == birth else None

    def start(self, args, **options):
        with open(self.log, "ab") as out:
            self.child = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL,
                                          stdout=out, stderr=out, start_new_session=True, **options)
        birth = process_birth(self.child.pid)
        self.pid_file.write_text(f"{self.child.pid} {birth}\n")

    def died(self):
        return self.pid() is None

    def send(self, number):
        pid = self.pid()
        if pid is not None:
            if number == signal.SIGSTOP:
                halting(pid)
            os.kill(pid, number)
        return pid

    @contextlib.contextmanager
    def halted(self):
        """Sees and does nothing meanwhile (SIGSTOP)."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    def stop(self, number=signal.SIGTERM, seconds=15):
        """Asks it to end, and makes it end when it does not. Returns whether it ended by itself."""
        if self.send(number) is None:
            return True
        try:
            wait_for(f"{self.name} to stop", self.died, seconds)
            return True
        except Failure:
            self.kill()
            return False
        finally:
            self.pid_file.unlink(missing_ok=True)

    def kill(self):
        """kill -9."""
        if self.send(signal.SIGKILL) is not None:
            wait_for(f"{self.name} to be gone", self.died, 10)
        self.pid_file.unlink(missing_ok=True)
