"""GridEngine: a private one on this machine, as root and without systemd: qmaster and one execd. Everything lies in one directory
and listens on ports of its own; nothing of the machine's own Grid Engine is read, started or stopped.

Its queues demand the resource `nui`, which no job asks for, so that Grid Engine itself starts nothing; nui-local starts a job
through the adapter (local/rm/adapters/gridengine)."""
import os
import pwd
import re
import signal
import subprocess
from pathlib import Path

from .base import Failure, Process, free_ports, run, wait_for

LIB, SHARE = Path("/usr/lib/gridengine"), Path("/usr/share/gridengine")
PROGRAMS = {name: LIB / name for name in ("sge_qmaster", "sge_execd", "qconf", "qstat", "qsub", "qalter", "qacct", "qhost")}
CELL = "priv"
# what differs from the templates of qconf -aq and -ap
QUEUE = {"hostlist": "localhost", "shell": "/bin/sh", "shell_start_mode": "unix_behavior", "load_thresholds": "NONE", "rerun": "FALSE"}
ENVIRONMENT = {"slots": 999, "allocation_rule": "$fill_up", "control_slaves": "TRUE"}


def missing():
    """What of it is not installed, as one word list; "" when everything is there."""
    return " ".join(name for name, path in PROGRAMS.items() if not os.access(path, os.X_OK))


class GridEngine:
    """root: its directory. slots: of its one node, localhost."""

    def __init__(self, root, slots=8, queues=("batch",), pe="mpi"):
        self.place = Path(root)
        self.slots, self.queues, self.pe = slots, queues, pe
        self.root, self.spool, self.common = self.place / "root", self.place / "spool", self.place / "root" / CELL / "common"
        record = self.place / "ports"
        self.ports = [int(p) for p in record.read_text().split()] if record.exists() else []
        self.qmaster = Process("sge_qmaster", self.place / "qmaster.process", self.place / "qmaster.stderr")
        self.execd = Process("sge_execd", self.place / "execd.process", self.place / "execd.stderr")

    def environment(self):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "SGE_ROOT": str(self.root), "SGE_CELL": CELL,
                "SGE_QMASTER_PORT": str(self.ports[0]), "SGE_EXECD_PORT": str(self.ports[1]), "SGE_CLUSTER_NAME": CELL, "SGE_ND": "1"}

    def adapter_env(self):
        """As RMCFG's ENV has it."""
        return ";".join(f"{k}={v}" for k, v in self.environment().items() if k.startswith("SGE_") and k != "SGE_ND")

    # ---- making

    def make(self):
        if self.common.exists():
            return
        for place in (self.common, self.spool / "qmaster", self.spool / "db", self.spool / "exec"):
            place.mkdir(parents=True)
        for place in (self.place, self.spool, self.spool / "exec"):
            place.chmod(0o755)
        for name in ("bin", "lib", "util", "utilbin"):
            (self.root / name).symlink_to(Path("/var/lib/gridengine") / name)
        self.ports = free_ports(2)
        (self.place / "ports").write_text(" ".join(map(str, self.ports)))
        changed = {"admin_user": "none", "ignore_fqdn": "true", "spooling_params": self.spool / "db", "qmaster_spool_dir": self.spool / "qmaster"}
        text = (SHARE / "default-bootstrap").read_text()
        for key, value in changed.items():
            text = re.sub(rf"^{key} .*$", f"{key} {value}", text, flags=re.M)
        (self.common / "bootstrap").write_text(text)
        (self.common / "act_qmaster").write_text("localhost\n")
        names = [w for line in Path("/etc/hosts").read_text().splitlines() if line.startswith("127.0.0.1") for w in line.split()[1:]]
        (self.common / "host_aliases").write_text(f"localhost {' '.join(n for n in names + [os.uname().nodename] if n != 'localhost')}\n")
        run([SHARE / "scripts" / "init_cluster", self.root, CELL, self.spool / "db", "root"], "init_cluster", env=self.environment())

    # ---- running

    def start(self):
        first = not (self.place / "made").exists()
        if self.qmaster.pid() is None:
            self.qmaster.start([LIB / "sge_qmaster"], env=self.environment())
            wait_for("sge_qmaster to answer", lambda: self.command("qconf", "-sh").returncode == 0, 60, self.spool / "qmaster" / "messages")
        if first:
            self.configure()
        if self.execd.pid() is None:
            self.execd.start([LIB / "sge_execd"], env=self.environment())
        wait_for("sge_execd to be heard", self.up, 60, self.spool / "qmaster" / "messages")

    def up(self):
        """A queue is there, and its node's load is known."""
        lines = self.command("qstat", "-f").stdout.splitlines()
        rows = [line.split() for line in lines if "@" in line.split(" ")[0]]
        return bool(rows) and all(row[3] not in ("-NA-",) and (len(row) < 6 or "u" not in row[5]) for row in rows)

    def change(self, name, option, text):
        """qconf reads a file, whose name is the object's."""
        path = self.place / name
        path.write_text(text)
        self.ok("qconf", option, path)

    def add(self, kind, option, name, changed):
        """From qconf's template; a queue's names environments that are not there."""
        editor = self.place / "editor"
        editor.write_text("#!/bin/sh\nsed -i 's/^pe_list .*/pe_list NONE/' \"$1\" && touch -d '2 seconds' \"$1\"\n")
        editor.chmod(0o755)
        self.ok("qconf", option, name, more={"EDITOR": str(editor)})
        for key, value in changed.items():
            self.ok("qconf", "-rattr", kind, key, value, name)

    def configure(self):
        self.ok("qconf", "-as", "localhost")
        text = self.ok("qconf", "-sconf")
        for key, value in {"execd_spool_dir": self.spool / "exec", "min_uid": 1, "min_gid": 1, "gid_range": "65400-65500",
                           "load_report_time": "00:00:03", "max_unheard": "00:00:20", "reschedule_unknown": "00:00:00",
                           "mailer": "/bin/true", "finished_jobs": 100}.items():
            text = re.sub(rf"^{key} .*$", f"{key} {value}", text, flags=re.M)
        self.change("global", "-Mconf", text.replace("accounting=true", "accounting=true accounting_flush_time=00:00:00"))
        text = self.ok("qconf", "-ssconf")
        for key, value in {"schedule_interval": "0:0:1", "flush_submit_sec": 1, "flush_finish_sec": 1}.items():
            text = re.sub(rf"^{key} .*$", f"{key} {value}", text, flags=re.M)
        self.change("sched", "-Msconf", text)
        self.add("pe", "-ap", self.pe, ENVIRONMENT)
        self.change("complexes", "-Mc", self.ok("qconf", "-sc") + "nui nui BOOL == FORCED NO FALSE 0\n")
        for name in self.queues:
            self.add("queue", "-aq", name, {**QUEUE, "pe_list": self.pe, "slots": self.slots, "complex_values": "nui=TRUE"})
        (self.place / "made").touch()

    def stop(self):
        """Jobs, then daemons, by pid. Returns names that had to be killed."""
        forced = []
        if not self.place.exists() or not self.ports:
            return forced
        if self.qmaster.pid() is not None:
            self.command("qdel", "-f", "-u", "*")
        for process in (self.execd, self.qmaster):
            self.end_shepherds() if process is self.execd else None
            if process.pid() is not None and not process.stop(signal.SIGTERM):
                forced.append(process.name)
        return forced

    def shepherds(self):
        """Pids of this one's sge_shepherd processes, by their environment."""
        mark, found = f"SGE_ROOT={self.root}".encode(), []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "comm").read_text().startswith("sge_shepherd") and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def end_shepherds(self):
        """A shepherd that is told to end kills its job."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                wait_for("jobs to end", lambda: not self.shepherds(), 5)
                return
            except Failure:
                for pid in self.shepherds():
                    os.kill(pid, number)

    # ---- using

    def command(self, name, *args, user=None, seconds=60, more=None):
        """A client command, as root or as an account; subprocess.CompletedProcess."""
        become = []
        if user:
            account = pwd.getpwnam(user)
            become = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--init-groups", "--"]
        return subprocess.run([*become, str(LIB / name), *map(str, args)], text=True, capture_output=True, timeout=seconds,
                              env={**self.environment(), **(more or {})}, cwd="/tmp", stdin=subprocess.DEVNULL, check=False)

    def ok(self, name, *args, **options):
        done = self.command(name, *args, **options)
        if done.returncode:
            raise Failure(f"{name} {' '.join(map(str, args))}: {done.stdout}{done.stderr}")
        return done.stdout
