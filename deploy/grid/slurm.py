"""Slurm: a private one on this machine, as root and without systemd: munged, slurmctld, a slurmd for
each node, slurmrestd. Everything lies in one directory and listens on ports of its own; nothing of the
machine's own Slurm is read, started or stopped.

Users' partitions are State=DOWN, so that Slurm itself starts nothing; nui-local moves a job to the
partition `nui` on the nodes it chose. job_submit.lua keeps everybody but root out of that partition.
"""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from .base import Failure, Process, free_ports, process_birth, run, wait_for

PROGRAMS = {"munged": "/usr/sbin/munged", "slurmctld": "/usr/sbin/slurmctld-wlm",
            "slurmd": "/usr/sbin/slurmd-wlm", "slurmstepd": "/usr/sbin/slurmstepd-wlm",
            "slurmrestd": "/usr/sbin/slurmrestd", "scontrol": "/usr/bin/scontrol",
            "sbatch": "/usr/bin/sbatch", "squeue": "/usr/bin/squeue", "scancel": "/usr/bin/scancel"}
JWT_PLUGIN = "/usr/lib/x86_64-linux-gnu/slurm-wlm/auth_jwt.so"
HOLDING = "nui"  # the partition that only nui-local uses

CONF = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ctld_port}
SlurmctldParameters=enable_configless
AuthType=auth/munge
AuthInfo=socket={root}/munge/munge.socket,cred_expire=5
CredType=cred/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={root}/etc/jwt.key
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/{gather}
{accounting}
AccountingStoreFlags=job_comment
JobCompType=jobcomp/filetxt
JobCompLoc={root}/jobcomp
SwitchType=switch/none
MpiDefault=none
MinJobAge={min_job_age}
KillWait=2
SlurmdTimeout={slurmd_timeout}
ReturnToService=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1
SchedulerType={scheduler}
PriorityType={priority}
SchedulerParameters={scheduler_parameters}
SlurmdParameters=config_overrides
GresTypes=gpu
Licenses={licences}
{submit_plugins}
MaxArraySize=20001
MaxJobCount=50000
{nodes}
{partitions}
{more}
"""

DBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={root}/munge/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser={user}
LogFile={root}/log/slurmdbd.log
PidFile={root}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=root
StorageLoc=slurm_acct
"""
ACCOUNTING = ("AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
              "AccountingStoragePort={dbd_port}\nAccountingStoragePass={root}/munge/munge.socket")
# a database server without its client's tools: its tables are made by hand
MARIADB, MARIADB_TABLES = "/usr/sbin/mariadbd", Path("/usr/share/mysql")
SLURMDBD = "/usr/sbin/slurmdbd"

JOB_SUBMIT = """\
-- Keeps users out of the partition in which nui-local starts jobs.
local holding = "{holding}"
function slurm_job_submit (job, parts, uid)
    if uid ~= 0 and job.partition ~= nil and job.partition:find (holding, 1, true) then
        slurm.log_user ("partition " .. holding .. " is for nui-local")
        return 2002
    end
    return slurm.SUCCESS
end
function slurm_job_modify (job, rec, parts, uid)
    if uid ~= 0 and job.partition ~= nil and job.partition:find (holding, 1, true) then
        slurm.log_user ("partition " .. holding .. " is for nui-local")
        return 2002
    end
    return slurm.SUCCESS
end
return slurm.SUCCESS
"""


def missing():
    """What of Slurm is not installed, as one word list; "" when everything is there."""
    lost = [name for name, path in PROGRAMS.items() if not os.access(path, os.X_OK)]
    if not os.path.exists(JWT_PLUGIN):
        lost.append("slurm-wlm-jwt-plugin")
    return " ".join(lost)


def missing_accounting():
    """The same for accounting=True."""
    return " ".join(p for p in (MARIADB, SLURMDBD) if not os.access(p, os.X_OK)) or missing()


class Slurm:
    """accounting=True: with slurmdbd over a MariaDB of its own. nodes: [(name, {"CPUs": 4, "RealMemory": 4000, "Feature": "big", "Gres": "gpu:2"})].
    classes: {partition: "its words in slurm.conf"}, the first is the default one."""

    def __init__(self, directory, nodes=None, classes=None, name="nui", **options):
        self.root = Path(directory)
        self.etc, self.run, self.log = (self.root / d for d in ("etc", "run", "log"))
        self.conf, self.key = self.etc / "slurm.conf", self.etc / "jwt.key"
        self.nodes = nodes or []
        self.classes = classes or {"batch": ""}
        self.name, self.options = name, options
        self.ports_file = self.run / "ports"
        self.ports = [int(p) for p in self.ports_file.read_text().split()] \
            if self.ports_file.exists() else []
        self.accounting = options.get("accounting", False)
        self.ports_wanted = len(self.nodes) + (4 if self.accounting else 2)
        self.sql = Process("mariadbd", self.run / "mariadbd.process", self.log / "mariadbd.log")
        self.restd = Process("slurmrestd", self.run / "slurmrestd.process", self.log / "slurmrestd.log")
        self.completions = self.root / "jobcomp"

    # ---- making

    def make(self):
        words = missing()
        if words:
            raise Failure(f"a real Slurm is not installed here: {words} missing (see deploy/packages)")
        self.root.mkdir(mode=0o755, exist_ok=True, parents=True)
        self.root.chmod(0o755)
        for directory in (self.etc, self.run, self.log, self.root / "bin", self.root / "state",
                          self.root / "spool", self.root / "munge", self.root / "dev"):
            directory.mkdir(mode=0o755, exist_ok=True)
        for program in ("slurmctld", "slurmd", "slurmstepd"):  # they look at their own names
            link = self.root / "bin" / program
            if not link.is_symlink():
                link.symlink_to(PROGRAMS[program])
        if not self.key.exists():
            self.secret(self.key, os.urandom(32))
            self.secret(self.etc / "munge.key", os.urandom(1024))
        if len(self.ports) != self.ports_wanted:
            self.ports = free_ports(self.ports_wanted)
            self.ports_file.write_text(" ".join(map(str, self.ports)) + "\n")
        (self.run / "nodes").write_text(" ".join(n for n, _ in self.nodes) + "\n")
        self.write()

    @staticmethod
    def secret(path, content):
        path.touch(mode=0o600)
        path.write_bytes(content)

    def write(self):
        """slurm.conf and what it names."""
        host = socket.gethostname().split(".")[0]
        nodes, gres = [], []
        for (name, words), port in zip(self.nodes, self.ports[2:]):
            words = {"CPUs": 1, "RealMemory": 1000, **words}
            words = {**words, "Boards": 1, "SocketsPerBoard": 1, "CoresPerSocket": words["CPUs"],
                     "ThreadsPerCore": 1}
            nodes.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} " +
                         " ".join(f"{k}={v}" for k, v in words.items()))
            if "Gres" in words:
                kind, _, count = words["Gres"].partition(":")
                for i in range(int(count or 1)):
                    (self.root / "dev" / f"{kind}{i}").touch()
                gres.append(f"NodeName={name} Name={kind} "
                            f"File={self.root}/dev/{kind}[0-{int(count or 1) - 1}]\n")
        state = self.options.get("class_state", "DOWN")
        first = next(iter(self.classes))
        accounting = "AccountingStorageType=accounting_storage/none"
        if self.accounting:
            words = {"dbd_port": self.ports[-2], "sql_port": self.ports[-1], "root": self.root,
                     "user": pwd.getpwuid(os.geteuid()).pw_name}
            accounting = ACCOUNTING.format(**words)
            self.secret(self.etc / "slurmdbd.conf", DBD_CONF.format(**words).encode())
        parts = [f"PartitionName={c} Nodes=ALL State={state}{' Default=YES' if c == first else ''} {w}"
                 for c, w in self.classes.items()]
        parts.append(f"PartitionName={HOLDING} Nodes=ALL State=UP Hidden=YES")
        self.conf.write_text(CONF.format(
            name=self.name, host=host, user=pwd.getpwuid(os.geteuid()).pw_name, root=self.root,
            more=self.options.get("more", ""), accounting=accounting, ctld_port=self.ports[0], nodes="\n".join(nodes), partitions="\n".join(parts),
            gather=self.options.get("gather", "none"),
            licences=self.options.get("licences", "matlab:4,ansys:2"),
            min_job_age=self.options.get("min_job_age", 300),
            slurmd_timeout=self.options.get("slurmd_timeout", 30),
            scheduler=self.options.get("scheduler", "sched/builtin"),
            priority=self.options.get("priority", "priority/basic"),
            scheduler_parameters=self.options.get(
                "scheduler_parameters",
                "batch_sched_delay=0,default_queue_depth=10000,partition_job_depth=0"),
            submit_plugins="" if self.options.get("submit_plugins") == "" else
            "JobSubmitPlugins=" + self.options.get("submit_plugins", "lua")))
        (self.etc / "gres.conf").write_text("".join(gres))
        (self.etc / "cgroup.conf").write_text("")
        (self.etc / "job_submit.lua").write_text(JOB_SUBMIT.format(holding=HOLDING))
        self.completions.touch()

    # ---- running

    def environment(self):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF": str(self.conf), "TZ": "UTC",
                "LC_ALL": "C.UTF-8", "NUI_SLURM": str(self.root)}

    @property
    def server(self):
        return f"http://127.0.0.1:{self.ports[1]}"

    def start(self):
        run(["/usr/sbin/munged", "--force", f"--key-file={self.etc}/munge.key",
             f"--socket={self.root}/munge/munge.socket", f"--pid-file={self.run}/munged.pid",
             f"--log-file={self.log}/munged.log", f"--seed-file={self.root}/munge/seed",
             "--num-threads=2"], "munged", self.log / "munged.log", env=self.environment()) \
            if self.pid("munged") is None else None
        if self.accounting:
            self.start_dbd()
        self.start_ctld()
        for name, _ in self.nodes:
            self.start_slurmd(name)
        self.start_restd()
        self.wait_ready()

    def start_dbd(self):
        """MariaDB, slurmdbd, and the cluster in it."""
        if self.sql.pid() is None:
            data = self.root / "sql"
            own = ["--no-defaults", f"--user={pwd.getpwuid(os.geteuid()).pw_name}", f"--datadir={data}",
                   "--skip-grant-tables", "--innodb-buffer-pool-size=32M",
                   "--innodb-flush-log-at-trx-commit=0"]
            if not data.exists():
                (data / "mysql").mkdir(parents=True)
                tables = "use mysql;\n" + "".join((MARIADB_TABLES / f"mysql_system_tables{part}.sql").read_text()
                                                  for part in ("", "_data"))
                done = subprocess.run([MARIADB, *own, "--bootstrap"], input=tables, text=True,
                                      capture_output=True, timeout=300)
                if done.returncode:
                    raise Failure(f"mariadbd --bootstrap: {done.stderr[-400:]}")
            self.sql.start([MARIADB, *own, f"--socket={self.run}/sql.socket", "--bind-address=127.0.0.1",
                            f"--pid-file={self.run}/sql.pid", f"--port={self.ports[-1]}"])
            wait_for("MariaDB to listen", lambda: self.listening(self.ports[-1]), 60, self.sql.log)
        if self.pid("slurmdbd") is None:
            run([SLURMDBD], "slurmdbd", self.log / "slurmdbd.log", env=self.environment())
            wait_for("slurmdbd to listen", lambda: self.listening(self.ports[-2]), 60,
                     self.log / "slurmdbd.log")
            self.command("sacctmgr", "-i", "add", "cluster", self.name)

    @staticmethod
    def listening(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def start_ctld(self, forget=False):
        """forget: without the jobs, nodes' states and reservations that it wrote down."""
        if self.pid("slurmctld") is None:
            run([self.root / "bin" / "slurmctld", "-f", self.conf, "-L", self.log / "slurmctld.log",
                 *(["-c"] if forget else [])],
                "slurmctld", self.log / "slurmctld.log", env=self.environment())

    def start_slurmd(self, name):
        if self.pid(f"slurmd.{name}") is None:
            run([self.root / "bin" / "slurmd", "-N", name, "-f", self.conf,
                 "-d", self.root / "bin" / "slurmstepd", "-L", self.log / f"slurmd.{name}.log"],
                f"slurmd of {name}", self.log / f"slurmd.{name}.log", env=self.environment())

    def start_restd(self):
        if self.restd.pid() is not None:
            return
        words = ["-u", "nobody", "-g", "nogroup"] if os.geteuid() == 0 else []
        self.restd.start([PROGRAMS["slurmrestd"], "-f", self.conf, "-a", "rest_auth/jwt",
                          "-s", "openapi/v0.0.38,openapi/v0.0.37", *words, "-t", "4",
                          f"127.0.0.1:{self.ports[1]}"],
                         env={**self.environment(), "SLURM_JWT": "daemon", "MALLOC_ARENA_MAX": "1"})

    def wait_ready(self, seconds=90):
        def ready():
            if self.restd.died():
                raise Failure("slurmrestd ended while it started", self.restd.log)
            done = self.command("sinfo", "-h", "-N", "-o", "%N %t")
            states = dict(line.split()[:2] for line in done.stdout.splitlines())
            return done.returncode == 0 and len(states) == len(self.nodes) and \
                all(s in ("idle", "mix", "alloc", "drain", "drng") for s in states.values())
        wait_for("every slurmd to answer slurmctld", ready, seconds, self.log / "slurmctld.log", 0.1)

        wait_for("slurmrestd to listen", lambda: self.listening(self.ports[1]), seconds, self.restd.log)

    def pid(self, name):
        """Of a daemon that writes a pid file, while it lives and is ours."""
        try:
            pid = int((self.run / f"{name}.pid").read_text())
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if f"NUI_SLURM={self.root}".encode() in environ.split(b"\0") and \
            process_birth(pid) else None

    def steps(self):
        """Pids of slurmstepd processes of ours, and of what runs below them."""
        mark, ours, parent = f"NUI_SLURM={self.root}".encode(), set(), {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                pid, birth = int(entry.name), process_birth(entry.name)
                if not birth:
                    continue
                text = (entry / "stat").read_text()
                parent[pid] = int(text[text.rindex(")") + 2:].split()[1])
                if os.path.basename(os.readlink(entry / "exe")).startswith("slurmstepd") and \
                        mark in (entry / "environ").read_bytes().split(b"\0"):
                    ours.add(pid)
            except (OSError, ValueError):
                continue
        grown = True
        while grown:
            grown = {p for p, up in parent.items() if up in ours and p not in ours}
            ours |= grown
        return ours

    def stop(self):
        """Jobs, then daemons, by pid; what does not end is killed. Returns names that had to be."""
        if not self.run.exists():
            return []
        forced = []
        self.restd.stop(signal.SIGKILL)
        if self.steps() and self.pid("slurmctld") is not None:
            self.command("scancel", "--signal=KILL", "--full", *self.running_ids())
        for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            if self.wait_no_steps(0 if number == signal.SIGTERM and not self.steps() else seconds):
                break
            self.signal_steps(number)
        nodes = (self.run / "nodes").read_text().split() if (self.run / "nodes").exists() else []
        for name in ("slurmctld", *(f"slurmd.{n}" for n in nodes), "slurmdbd", "munged"):
            if not self.end(name):
                forced.append(name)
        for _ in range(10):  # of jobs that were given the nodes of those that ended first
            if not self.steps():
                break
            self.signal_steps(signal.SIGKILL)
            self.wait_no_steps(1)
        if self.sql.pid() is not None and not self.sql.stop():
            forced.append("mariadbd")
        return forced

    def signal_steps(self, number):
        for pid in self.steps():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def running_ids(self):
        return self.command("squeue", "-h", "-a", "-t", "R,CG,S", "-o", "%A").stdout.split() or ["0"]

    def wait_no_steps(self, seconds):
        try:
            wait_for("job steps to end", lambda: not self.steps(), seconds)
            return True
        except Failure:
            return False

    def end(self, name, number=signal.SIGTERM, seconds=20):
        pid = self.pid(name)
        if pid is None:
            return True
        birth = process_birth(pid)
        os.kill(pid, number)
        try:
            wait_for(f"{name} to stop", lambda: process_birth(pid) != birth, seconds)
            return True
        except Failure:
            os.kill(pid, signal.SIGKILL)
            wait_for(f"{name} to be gone", lambda: process_birth(pid) != birth, 10)
            return False
        finally:
            (self.run / f"{name}.pid").unlink(missing_ok=True)

    def kill(self, name):
        """kill -9 of slurmctld, slurmd.NODE or munged."""
        self.end(name, signal.SIGKILL)

    def clean(self):
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    # ---- using

    def command(self, *args, user=None, seconds=60, **options):
        """A client command, as root or as an account; subprocess.CompletedProcess."""
        extra = {}
        if user and os.geteuid() == 0:
            found = pwd.getpwnam(user)
            extra = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
        env = {k: v for k, v in self.environment().items() if k != "NUI_SLURM"}
        env.update(options.pop("env_extra", {}))
        return subprocess.run([str(a) for a in args], text=True, capture_output=True, timeout=seconds,
                              env=env, cwd=options.pop("cwd", "/"),
                              **({} if "input" in options else {"stdin": subprocess.DEVNULL}),
                              **extra, **options)

    def sbatch(self, *args, user=None, script="#!/bin/sh\nsleep 3600\n", **options):
        """Submits; the job's number."""
        done = self.command("sbatch", "--parsable", "-o", "/dev/null", *args, user=user, input=script,
                            **options)
        if done.returncode:
            raise Failure(f"sbatch {' '.join(map(str, args))}: {done.stderr.strip()}")
        return int(done.stdout.split(";")[0])

    def saved(self):
        """When slurmctld last wrote down its jobs: what is younger dies with it."""
        try:
            return (self.root / "state" / "job_state").stat().st_mtime
        except OSError:
            return 0

    def scontrol(self, *args, user=None):
        return run_checked(self.command("scontrol", *args, user=user), args)

    def release_past_nui(self, job):
        """Free to start, and where only nui puts jobs. nui-local must not look on: a held job that it finds there it takes
        back to its user's partition."""
        self.scontrol("update", f"jobid={job}", f"partition={HOLDING}")
        self.scontrol("release", job)

    def job(self, ident):
        """Fields of `scontrol show job`; {} when Slurm does not know it (any more)."""
        done = self.command("scontrol", "show", "job", "-o", ident)
        words = done.stdout.split() if done.returncode == 0 else []
        return dict(w.split("=", 1) for w in words if "=" in w)

    def wait_job(self, ident, states, seconds=60):
        states = (states,) if isinstance(states, str) else states
        seen = []

        def reached():
            found = self.job(ident)
            if found.get("JobState") not in seen:
                seen.append(found.get("JobState"))
            return found if found.get("JobState") in states else None
        try:
            return wait_for(f"Slurm's job {ident} to be {' or '.join(states)}", reached, seconds,
                            self.log / "slurmctld.log", 0.1)
        except Failure as failure:
            raise AssertionError(f"{failure} (it was {seen}: {self.job(ident)})") from failure


def run_checked(done, args):
    if done.returncode:
        raise Failure(f"scontrol {' '.join(map(str, args))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
