"""OneSite: a nui-local that stands alone, with neither bank nor metascheduler, in any mode.

For the modes, local submission and the administrator's commands: quick, since there is no grid to
make. Names are as in a grid: site alpha, users alice and bob, grid demo.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import watchdog
from fixture import BUILD, ROOT, SANITIZER, become, layout, wait_for
from grid.base import Process, free_ports, polled, run

__all__ = ["OneSite", "SharedCase", "SiteCase", "layout", "wait_for", "ROOT"]

GUARD = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
sys.stdin.read()  # until the test is gone
from pathlib import Path
from grid.base import Process
for record in Path(sys.argv[2]).glob("run/*.process"):
    Process(record.stem, record, sys.argv[2] + "/log/guard").stop()
def jobs():  # which outlive their daemon
    mine = b"nui-supervise\\0" + sys.argv[2].encode() + b"/"
    for found in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mine in found.read_bytes():
                yield int(found.parent.name)
        except OSError:
            pass
for pid in jobs():
    os.kill(pid, signal.SIGTERM)
until = time.monotonic() + 20
while any(jobs()) and time.monotonic() < until:
    time.sleep(0.05)
"""


class OneSite:
    """One daemon: its directory, configuration and client. state: the directory of the test, shared by
    several of one test (a production scheduler and a TEST one beside it)."""

    def __init__(self, state, programs, name="alpha", site="alpha"):
        self.state, self.programs, self.name, self.site = Path(state), programs, name, site
        self.log = self.state / "log" / f"{name}.log"
        self.port_file = self.state / "run" / f"{name}.port"
        self.socket = self.state / "run" / f"{name}.sock"
        self.config = self.state / "etc" / f"{name}.cfg"
        self.client = self.state / "etc" / f"{name}-client.cfg"
        self.process = Process(name, self.state / "run" / f"{name}.process",
                               self.state / "log" / f"{name}.stderr")
        self.dir = self.state / name
        self.alone = False

    def identity(self, kind, name):
        place = self.state / "id" / f"{kind}-{name}"
        ca = self.state / "ca"
        if not (ca / "ca.key").exists():
            run([self.programs["nui-ca"], "init", ca, "--grid", layout.GRID], "nui-ca init")
            run([self.programs["nui-ca"], "crl", ca], "nui-ca crl")
        if not (place / "key.pem").exists():
            run([self.programs["nui-ca"], "issue", ca, kind, name, "--out", place], "nui-ca issue")
        return f"CA {ca}/ca.pem\nCRL {ca}/crl.pem\nCERT {place}/cert.pem\nKEY {place}/key.pem\n"

    def write(self, text, gridmap=True):
        """Its configuration: the daemon's own keys, and what the test says."""
        self.dir.mkdir(mode=0o711, exist_ok=True)
        port = free_ports(1)[0]
        own = (f"GRID {layout.GRID}\nSITENAME {self.site}\nLISTEN 127.0.0.1:{port}\n"
               f"SOCKET {self.socket}\nPORTFILE {self.port_file}\nSTATEDIR {self.dir}\n"
               f"LOGFILE {self.log}\n{self.identity('site', self.site)}")
        if gridmap:
            table = self.state / "etc" / "gridmap"
            table.write_text("".join(f'"nui://{layout.GRID}/user/{u}" {layout.account_of(u)}\n'
                                     for u in layout.USERS))
            own += f"GRIDMAP {table}\n"
        self.config.write_text(own + text)
        self.client.write_text(f"GRID {layout.GRID}\nSITECFG[{self.site}] SOCKET={self.socket}\n")
        self.client.chmod(0o644)

    def person(self, kind, name):
        """A client's configuration for somebody with a certificate."""
        path = self.state / "etc" / f"{name}-at-{self.name}.cfg"
        port = self.port_file.read_text().strip()
        path.write_text(f"GRID {layout.GRID}\n{self.identity(kind, name)}"
                        f"SITECFG[{self.site}] SERVER=127.0.0.1:{port}\n")
        return path

    def write_alone(self, text):
        """A file of a cluster by itself: no authority, no certificate, no port; a client that knows the socket."""
        self.alone = True
        self.dir.mkdir(mode=0o711, exist_ok=True)
        self.config.write_text(f"SOCKET {self.socket}\nSTATEDIR {self.dir}\nLOGFILE {self.log}\n" + text)
        self.client.write_text(f"SITECFG[{self.site}] SOCKET={self.socket}\n")
        self.client.chmod(0o644)

    def start(self, *options, **popen):
        self.port_file.unlink(missing_ok=True)
        self.process.start([self.programs["nui-local"], "--config", self.config, *options], **popen)

        def ready():
            if self.process.died():
                raise AssertionError(f"{self.name} ended: {self.words()}")
            if self.alone:
                return self.logged(" ready ")
            return self.port_file.exists() and self.port_file.read_text().strip()
        wait_for(f"{self.name} to listen", ready, 60, self.log)

    def words(self):
        path = self.state / "log" / f"{self.name}.stderr"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self):
        return self.process.stop()

    def logged(self, *words):
        """Lines of the log that have all these words."""
        if not self.log.exists():
            return []
        return [line for line in self.log.read_text(errors="replace").splitlines()
                if all(w in line for w in words)]

    def nui(self, *args, account=None, config=None, stdin="", env=None, cwd="/"):
        """The client on the cluster itself, as an account of the operating system (None: our own)."""
        return subprocess.run([*become(account), str(self.programs["nui"]), *map(str, args)], text=True,
                              capture_output=True, input=stdin, timeout=600, cwd=cwd,
                              env={"PATH": os.environ["PATH"], "TZ": "UTC", "HOME": "/nonexistent",
                                   "NO_COLOR": "1", "NUI_CONFIG": str(config or self.client),
                                   **polled(), **(env or {})})


class SiteCase(unittest.TestCase):
    """A test class with sites of its own, stopped whatever happened."""
    keep = bool(os.environ.get("NUI_E2E_KEEP"))

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            type(self).keep = True

    @classmethod
    def setUpClass(cls):
        cls.state = Path(tempfile.mkdtemp(prefix="nui-e2e-"))
        cls.state.chmod(0o711)
        for name in ("etc", "run", "log", "id"):
            (cls.state / name).mkdir(mode=0o711)
        cls.guard = subprocess.Popen([sys.executable, "-c", GUARD, str(ROOT / "deploy"),
                                      str(cls.state)], stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, start_new_session=True)
        watchdog.guarded(cls.state, cls.guard)
        cls.programs = layout.find_programs(BUILD)
        cls.sites = []
        cls.addClassCleanup(cls.tear_down)

    @classmethod
    def site(cls, name="alpha", site="alpha"):
        made = OneSite(cls.state, cls.programs, name, site)
        cls.sites.append(made)
        return made

    @classmethod
    def tear_down(cls):
        complaints = []
        for site in cls.sites:
            if site.process.pid() is not None and not site.stop():
                complaints.append(f"{site.name} had to be killed")
            found = SANITIZER.search(site.words())
            if found:
                complaints.append(f"{site.name} says '{found.group(0)}'")
        cls.guard.stdin.close()
        cls.guard.wait(60)
        if cls.keep or complaints:
            print(f"the files are kept in {cls.state}", file=sys.stderr)
        else:
            shutil.rmtree(cls.state)
        if complaints:
            raise AssertionError("; ".join(complaints))

    # ---- asserting

    def ok(self, site, *args, **options):
        done = site.nui(*args, **options)
        self.assertEqual(done.returncode, 0,
                         f"$ nui {' '.join(map(str, args))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def data(self, site, command, *args, **options):
        return json.loads(self.ok(site, command, "--json", *args, **options))

    def refused(self, site, *args, code, says, **options):
        """A refusal: the exit code, one sentence, nothing on stdout."""
        done = site.nui(*args, **options)
        self.assertEqual(done.returncode, code,
                         f"$ nui {' '.join(map(str, args))}\n{done.stdout}{done.stderr}")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def clear(self, site):
        """Waits until nothing is queued or runs there; what ends by itself before it is cancelled is no fault."""
        def gone():
            rows = self.data(site, "showq")
            ids = [r["job_id"] for s in ("active", "idle", "blocked") for r in rows[s]]
            if ids:
                site.nui("canceljob", *ids)
            return not ids
        wait_for("the queue to be empty", gone, 60, site.log)


class SharedCase(SiteCase):
    """Two accounts, and a directory that all jobs may write to."""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.account, cls.other = layout.account_of("alice"), layout.account_of("bob")
        cls.shared = cls.state / "shared"
        cls.shared.mkdir()
        cls.shared.chmod(0o1777)
