"""GridCase: a test class with a grid of its own.

The grid is made once for the class, in a temporary directory, from the programs in $NUI_BUILD. It is
stopped by the pids it recorded, whatever happened: a guard process does it when this one is killed.
"""
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy"))
sys.dont_write_bytecode = True

import slowness  # noqa: E402
import watchdog  # noqa: E402
from watchdog import main  # noqa: E402
from grid import base, layout  # noqa: E402
from grid.base import Failure, wait_for  # noqa: E402
from grid.forge import Forge  # noqa: E402
from grid.grid import Grid  # noqa: E402

base.patience = 10  # the limits are there against hangs only
BUILD = Path(os.environ.get("NUI_BUILD", ROOT / "build" / "asan"))
slow = slowness.begin(BUILD)
if slow:
    base.halting = slow.spare
SAMPLES = ROOT / "deploy" / "samples"
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|Assertion .* failed")
__all__ = ["Failure", "Forge", "GridCase", "ROOT", "SAMPLES", "become", "layout", "main", "wait_for"]

GUARD = """
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
sys.stdin.read()  # until the test is gone
from grid.grid import Grid
Grid(sys.argv[2], None).stop()
"""


def become(account):
    """The beginning of a command line that is run as an account (None: as we are). By a program, not by subprocess (user=):
    that runs Python between fork and exec, beside the threads of gRPC."""
    return ["setpriv", "--reuid", account, "--regid", str(pwd.getpwnam(account).pw_gid), "--clear-groups"] if account else []


class GridCase(unittest.TestCase):
    grid = None
    guard = None
    sites = None  # as in layout.SITES
    slurm = gridengine = None  # sites under a real Slurm, Grid Engine: see Grid
    metas = 1
    gate = False  # a front door for REST
    store = False
    keep = bool(os.environ.get("NUI_E2E_KEEP"))

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            type(self).keep = True  # its logs may be wanted

    @classmethod
    def setUpClass(cls):
        state = Path(tempfile.mkdtemp(prefix="nui-e2e-"))
        state.chmod(0o711)
        cls.guard = subprocess.Popen([sys.executable, "-c", GUARD, str(ROOT / "deploy"), str(state)],
                                     stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                     start_new_session=True)
        watchdog.guarded(state, cls.guard)
        cls.addClassCleanup(cls.tear_down_grid, state)
        cls.grid = Grid(state, BUILD, cls.sites, cls.slurm, cls.metas, cls.gate, cls.store, cls.gridengine)
        cls.grid.make()
        cls.grid.start()
        cls.fund()

    @classmethod
    def tear_down_grid(cls, state):
        complaints = []
        try:
            if cls.grid is not None:
                forced = cls.grid.stop()
                if forced:
                    complaints.append(f"had to be killed: {', '.join(forced)}")
                complaints += cls.sanitizer_words()
        finally:
            cls.guard.stdin.close()
            cls.guard.wait(60)
            if cls.keep or complaints:
                print(f"the grid's files are kept in {state}", file=sys.stderr)
            else:
                shutil.rmtree(state)
        if complaints:
            raise AssertionError("; ".join(complaints))

    @classmethod
    def sanitizer_words(cls):
        found = []
        for log in cls.grid.layout.log.glob("*.stderr"):
            match = SANITIZER.search(log.read_text(errors="replace"))
            if match:
                found.append(f"{log.name} says '{match.group(0)}'")
        return found

    @classmethod
    def fund(cls):
        """alice is a member of phys with 100000 credits at rate 1; bob has nothing."""
        grid = cls.grid
        for who, *words in (
                *[[layout.OPERATOR, "rate", "set", site, "1"] for site in grid.sites],
                *[[layout.OPERATOR, "site", "modify", site, "--claims", "yes"] for site in grid.managers()],
                *[[layout.OPERATOR, "user", "create", user] for user in layout.USERS],
                [layout.OPERATOR, "project", "create", "physics"],
                [layout.OPERATOR, "project", "add-user", "physics", "alice"],
                [layout.OPERATOR, "account", "create", "phys", "--project", "physics"],
                [layout.AGENCY, "deposit", "-A", "phys", 100000]):
            done = grid.nui(who, *words)
            if done.returncode:
                raise Failure(f"{' '.join(map(str, words))}: {done.stderr.strip()}",
                              grid.daemons["bank"].log)

    # ---- asserting

    def nui(self, who, *args, code=0, **options):
        done = self.grid.nui(who, *args, **options)
        self.assertEqual(done.returncode, code,
                         f"{who}$ nui {' '.join(map(str, args))}\n{done.stdout}{done.stderr}")
        return done

    def write(self, name, text):
        path = self.grid.layout.work / name
        path.write_text(text)
        return path

    # ---- jobs

    @classmethod
    def job_dir(cls):
        """A directory that jobs of every account may write into."""
        path = cls.grid.layout.state / "shared"
        path.mkdir(exist_ok=True)
        path.chmod(0o1777)
        return path

    def gated_script(self, name, code=0):
        """A job that says it began, waits for its gate and ends with that code."""
        place = self.job_dir()
        return self.write(f"{name}.sh", f"""#!/bin/sh
echo "$NUI_COMPONENT $NUI_JOBID" >> {place}/{name}.began
chmod a+rw {place}/{name}.began 2>/dev/null
until [ -e {place}/{name}.gate ]; do sleep 0.05; done
echo "$NUI_COMPONENT passed the gate"
exit {code}
""")

    def open_gate(self, name):
        (self.job_dir() / f"{name}.gate").touch()

    def began(self, name):
        path = self.job_dir() / f"{name}.began"
        return sorted(path.read_text().split("\n")[:-1]) if path.exists() else []

    def status(self, who, ident):
        """nui status --json, or None while a daemon is away."""
        done = self.grid.nui(who, "status", ident, "--json")
        if done.returncode:
            return None
        both = json.loads(done.stdout)
        return {**both["job"], "components": both["components"]}

    def wait_state(self, ident, states, who="alice", seconds=60):
        seen = []

        def reached():
            job = self.status(who, ident)
            if job is None:
                return None
            if not seen or seen[-1] != job["state"]:
                seen.append(job["state"])
            if job["state"] in ENDED and job["state"] not in states:
                raise Failure(f"{ident} is {job['state']} instead of {states}: {job['reason']}",
                              self.grid.layout.log)
            return job if job["state"] in states else None
        try:
            return wait_for(f"{ident} to be {' or '.join(states)}", reached, seconds,
                            self.grid.layout.log)
        except Failure as failure:
            raise AssertionError(f"{failure} (it was {seen})") from failure

    # ---- money

    def exact(self, who, *args):
        """A command's JSON with every number an exact Decimal; None while the daemon is away."""
        done = self.grid.nui(who, args[0], "--json", *args[1:])
        return json.loads(done.stdout, parse_float=Decimal, parse_int=Decimal) \
            if done.returncode == 0 else None

    def balance(self, account="phys", who="alice"):
        rows = self.exact(who, "balance", "-A", account)
        return next(r for r in rows if r["account"] == account) if rows is not None else None

    def settled(self, account="phys", seconds=40, who="alice"):
        """The balance once nothing is held."""
        def nothing_held():
            row = self.balance(account, who)
            return row if row and row["held"] == 0 else None
        return wait_for(f"nothing to be held of {account}", nothing_held, seconds,
                        self.grid.daemons["bank"].log)

    def statement(self, account="phys", who="alice"):
        return self.exact(who, "statement", "-A", account)

    def assert_books_close(self, account="phys", who="alice"):
        """Opening + lines = closing; granted - held - charged = available."""
        paper, row = self.statement(account, who), self.balance(account, who)
        posted = sum(line["posted"] for line in paper["lines"])
        held = sum(line["held"] for line in paper["lines"])
        self.assertEqual(paper["opening_posted"] + posted, paper["closing_posted"])
        self.assertEqual(paper["opening_held"] + held, paper["closing_held"])
        self.assertEqual(row["granted"] - row["held"] - row["settled"], row["available"])
        self.assertEqual(paper["closing_held"], row["held"])
        self.assertEqual(paper["closing_posted"], row["available"] + row["held"])

    def charges(self, ident, account="phys"):
        """The lines of the statement; none while the daemon is away."""
        paper = self.statement(account)
        return [line for line in paper["lines"]
                if line["kind"] == "charge" and line["job"] == ident] if paper else []


ENDED = ("Completed", "Failed", "Cancelled", "Refused")
