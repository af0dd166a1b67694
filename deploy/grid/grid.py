"""Grid: makes, starts, stops and breaks a whole grid in one directory."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
from pathlib import Path

from . import layout as lay
from .base import Failure, Process, claim, free_ports, polled, port_is_free, run, wait_for
from .gridengine import GridEngine
from .postgres import Postgres
from .slurm import Slurm

SOCKET_PATH_MAX = 100  # a Unix socket's path must fit sockaddr_un


class Daemon:
    """One of our daemons: starts it, knows when it is ready, ends or kills it."""

    def __init__(self, name, program, layout):
        self.name, self.program = name, program  # a path
        self.env = {}  # beside ours
        self.config = layout.config(name)
        self.port_file = layout.run / f"{name}.port"
        self.log = layout.log / f"{name}.log"
        self.words = layout.log / f"{name}.stderr"
        self.process = Process(f"{program.name if program else 'daemon'} ({name})", layout.run / f"{name}.process", self.words)

    def launch(self):
        if self.process.pid() is not None:
            return
        self.port_file.unlink(missing_ok=True)
        self.process.start([self.program, "--config", self.config], env={**os.environ, **self.env})

    def wait_ready(self, seconds=30):
        def ready():
            if self.process.died():
                raise Failure(f"{self.process.name} ended while it started: {self.last_words()}",
                              self.log if self.log.exists() else self.words)
            return self.port_file.exists() and self.port_file.read_text().strip()
        wait_for(f"{self.process.name} to listen", ready, seconds, self.log)

    def start(self):
        self.launch()
        self.wait_ready()

    def last_words(self):
        try:
            return self.words.read_text().strip().splitlines()[-1]
        except (OSError, IndexError):
            return "it said nothing"

    def stop(self):
        return self.process.stop(signal.SIGTERM)

    def kill(self):
        self.process.kill()

    def pid(self):
        return self.process.pid()


class Grid:
    """slurm: sites under a real Slurm, {"alpha": {options of Slurm}}; gridengine: names of those under a real Grid Engine; both
    remembered in the directory.
    metas: 3 make a group of metaschedulers (meta, meta2, meta3). gate: a front door for REST, too."""

    def __init__(self, state, build, sites=None, slurm=None, metas=1, gate=False, store=False, gridengine=None):
        """store: with a place that files are brought from and taken to."""
        self.store = store
        self.layout = lay.Layout(Path(state).resolve())
        self.sites = sites or lay.SITES
        self.metas = ["meta", *(f"meta{n}" for n in range(2, metas + 1))]
        self.gates = ["gate"] if gate else []
        self.programs = lay.find_programs(build)
        self.record = self.layout.state / "grid.json"
        self.ports = json.loads(self.record.read_text()) if self.record.exists() else {}
        self.postgres = None
        self.daemons = {}
        self.slurm = {}
        wanted = self.ports.get("slurm", {}) if slurm is None else slurm
        for site, options in wanted.items():
            nodes, procs = self.sites[site]
            default = [(f"{site}{n:02}", {"CPUs": procs, "RealMemory": procs * 1024})
                       for n in range(1, nodes + 1)]
            self.slurm[site] = Slurm(self.layout.state / f"slurm-{site}", name=site,
                                     **{"nodes": default, **options})
        self.gridengine = {site: GridEngine(self.layout.state / f"gridengine-{site}", slots=self.sites[site][0] * self.sites[site][1])
                           for site in (self.ports.get("gridengine", []) if gridengine is None else gridengine)}
        if self.ports:
            self.metas = [name for name in self.ports if name.startswith("meta")]
            self.gates = [name for name in self.ports if name == "gate"]
            self.assemble()

    def assemble(self):
        self.postgres = Postgres(self.layout.state / "postgresql", self.ports["postgresql"],
                                 self.layout.log)
        kinds = {"bank": "nui-bank", **{m: "nui-meta" for m in self.metas},
                 **{s: "nui-local" for s in self.sites}, **{g: "nui-gate" for g in self.gates}}
        self.daemons = {name: Daemon(name, self.programs.get(program), self.layout)
                        for name, program in kinds.items()}

    # ---- making

    def make(self):
        """Directories, ports, certificates, database directory, configuration. May be repeated."""
        state = self.layout.state
        if len(str(state)) > SOCKET_PATH_MAX - 30:
            raise Failure(f"the path {state} is too long for the sockets in it")
        self.check_reachable()
        try:
            self.layout.make()
        except OSError as error:
            raise Failure(f"cannot use the state directory {state}: {error.strerror}") from None
        if not self.running() and not self.ports_still_free():
            self.ports = {}
        if not self.ports:
            self.choose_ports()
        self.assemble()
        self.make_identities()
        self.postgres.create()
        for manager in self.managers().values():
            manager.make()
        if self.store:
            self.layout.make_store()
        lay.write_all(self.layout, self.ports, self.postgres.conninfo(), self.sites, self.slurm, self.metas,
                      self.gates, self.store, self.gridengine)
        for name in ("bank", *self.metas, *self.sites, *self.gates):
            (state / name).mkdir(mode=0o700, exist_ok=True)

    def managers(self):
        """The real resource managers, by their sites."""
        return {**self.slurm, **self.gridengine}

    def choose_ports(self):
        names = ["postgresql", "bank", *self.metas, *self.sites, *self.gates, *(f"http-{g}" for g in self.gates)]
        self.ports = dict(zip(names, free_ports(len(names))))
        # Rendezvous ports are tried when a job gets one; each site has a range of its own.
        ranges = list(range(28000, 32000, lay.JOB_PORTS * max(len(self.sites), 1)))
        random.shuffle(ranges)
        self.ports["jobs"] = next((base for base in ranges if claim(base)), ranges[0])
        self.ports["slurm"] = {site: {} for site in self.slurm}
        self.ports["gridengine"] = list(self.gridengine)
        self.record.write_text(json.dumps(self.ports, indent=1) + "\n")

    def ports_still_free(self):
        return all(port_is_free(p) and claim(p) for n, p in self.ports.items()
                   if n not in ("jobs", "slurm", "gridengine"))

    def check_reachable(self):
        """As root, jobs and PostgreSQL run as other accounts: they must get to the directory."""
        if os.geteuid() != 0:
            return
        for place in (self.layout.state, *self.layout.state.parents):
            if place.exists() and not place.stat().st_mode & 0o001:
                raise Failure(f"other accounts cannot pass through {place}, and jobs run as such; "
                              f"choose a directory with NUI_QUICKSTART_DIR")

    def nui_ca(self, *args):
        return run([self.programs["nui-ca"], *args], f"nui-ca {args[0]}")

    def identities(self):
        return ([("bank", "bank")] + [("meta", m) for m in self.metas] + [("site", s) for s in self.sites] +
                [("gate", g) for g in self.gates] +
                [("user", u) for u in lay.USERS] +
                [("agency", lay.AGENCY), ("operator", lay.OPERATOR)])

    def make_identities(self):
        ca = self.layout.ca
        if not (ca / "ca.key").exists():
            self.nui_ca("init", ca, "--grid", lay.GRID)
        for kind, name in self.identities():
            if not (self.layout.id_dir(kind, name) / "key.pem").exists():
                self.nui_ca("issue", ca, kind, name, "--out", self.layout.id_dir(kind, name))
        self.nui_ca("crl", ca)

    # ---- running

    def start(self):
        self.postgres.start()
        for manager in self.managers().values():
            manager.start()
        for names in (["bank"], [*self.metas, *self.sites, *self.gates]):
            for name in names:
                self.daemons[name].launch()
            for name in names:
                self.daemons[name].wait_ready()
        self.wait_serving()

    def wait_bank(self, seconds=40):
        """Until the bank answers: it listens a little before it has its database."""
        wait_for("the bank to answer", lambda: self.nui(lay.OPERATOR, "balance").returncode == 0,
                 seconds, self.daemons["bank"].log)

    def wait_serving(self, seconds=40):
        """Until the bank answers and every site's report has reached the metascheduler."""
        self.wait_bank(seconds)

        def all_up():
            done = self.nui(lay.OPERATOR, "sites", "--json")
            rows = json.loads(done.stdout) if done.returncode == 0 else []
            return sum(r["state"] == "Up" for r in rows) == len(self.sites)
        wait_for("every site's report to reach the metascheduler", all_up, seconds,
                 self.daemons["meta"].log)

    def running(self):
        """Names of what runs."""
        if not self.ports:
            return []
        parts = [("postgresql", self.postgres.process), *((n, d.process) for n, d in
                                                           self.daemons.items())]
        return [name for name, process in parts if process.pid() is not None]

    def stop(self):
        """Ends everything this grid started, jobs included. Returns names that had to be killed."""
        if not self.ports:
            return []
        forced = []
        for name in (*self.gates, *self.metas, *self.sites, "bank"):
            if not self.daemons[name].stop():
                forced.append(name)
        self.end_jobs()
        for site, manager in self.managers().items():
            forced += [f"{name} of {site}" for name in manager.stop()]
        if not self.postgres.stop():
            forced.append("postgresql")
        return forced

    def supervisors(self):
        """Pids of the supervising processes of this grid's jobs, known by their directory."""
        prefix = f"{self.layout.state}/jobs-".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"nui-supervise" in words[0] and any(w.startswith(prefix) for w in words[1:]):
                found.append(int(entry.name))
        return found

    def end_jobs(self):
        for number, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 5)):
            for pid in self.supervisors():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            try:
                wait_for("jobs to end", lambda: not self.supervisors(), seconds)
                return
            except Failure:
                continue

    def clean(self):
        """Stops, and removes the state directory."""
        self.stop()
        if self.record.exists() or self.layout.etc.exists():
            shutil.rmtree(self.layout.state)

    # ---- using

    def environment(self, who):
        return {**os.environ, **polled(), "NUI_CONFIG": str(self.layout.config(who)), "NO_COLOR": "1",
                "XDG_STATE_HOME": str(self.layout.work / f"state-{who}")}

    def nui(self, who, *args, seconds=60, **options):
        """Runs the client as a person; returns subprocess.CompletedProcess."""
        return subprocess.run([str(self.programs["nui"]), *map(str, args)], text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds,
                              env=self.environment(who), cwd=self.layout.work, **options)

    def json(self, who, command, *args, **options):
        done = self.nui(who, command, "--json", *args, **options)
        if done.returncode:
            raise Failure(f"nui {' '.join(map(str, (command, *args)))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def submit(self, who, *args):
        done = self.nui(who, "submit", *args)
        found = re.search(r"\b(grid\.\d+)\b", done.stdout)
        if done.returncode or not found:
            raise Failure(f"nui submit: {(done.stderr or done.stdout).strip()}")
        return found.group(1)
