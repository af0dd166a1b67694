"""Several machines without any resource manager: nui-local, and a nui-node on each other host. Each host has a network of its
own (a namespace), joined by cables (veth) that can be pulled. A cut, kill -9 of either side, both at once: no job is lost, none
runs twice, and what it wrote comes home."""
import ctypes
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from fixture import main, wait_for
from grid.base import Process
from onesite import SANITIZER, SharedCase, layout

LIBC = ctypes.CDLL(None, use_errno=True)
HOSTS = ("n2", "n3")


def ip(*args):
    done = subprocess.run(["ip", *map(str, args)], text=True, capture_output=True)
    if done.returncode:
        raise AssertionError(f"ip {' '.join(map(str, args))}: {done.stderr}")


class Network:
    """A namespace for the home and one for each host; nothing of it is seen outside."""

    def __init__(self, name):
        self.name, self.made = name, []

    def make(self):
        self.add("home")
        for number, host in enumerate(HOSTS, 2):
            self.add(host)
            ip("-n", self.space("home"), "link", "add", f"to-{host}", "type", "veth", "peer", "name", "up", "netns", self.space(host))
            for space, link, end in (("home", f"to-{host}", 1), (host, "up", 2)):
                ip("-n", self.space(space), "addr", "add", f"10.9.{number}.{end}/24", "dev", link)
                ip("-n", self.space(space), "link", "set", "dev", link, "up")
            ip("-n", self.space(host), "route", "add", "default", "via", f"10.9.{number}.1")
        subprocess.run(["ip", "netns", "exec", self.space("home"), "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"], check=True)

    def add(self, host):
        ip("netns", "add", self.space(host))
        self.made.append(host)
        ip("-n", self.space(host), "link", "set", "dev", "lo", "up")

    def space(self, host):
        return f"{self.name}-{host}"

    def cable(self, host, on):
        ip("-n", self.space("home"), "link", "set", "dev", f"to-{host}", "up" if on else "down")

    def enter(self, host):
        """For a process that is about to begin."""
        def go():
            with open(f"/run/netns/{self.space(host)}") as space:
                if LIBC.setns(space.fileno(), 0) != 0:
                    os._exit(120)
        return go

    def identity(self, host):
        return subprocess.run(["ip", "netns", "exec", self.space(host), "readlink", "/proc/self/ns/net"], text=True,
                              capture_output=True, check=True).stdout.strip()

    def gone(self):
        for host in self.made:
            subprocess.run(["ip", "netns", "del", self.space(host)], check=False)


class Host:
    def __init__(self, case, number, name):
        self.case, self.name, self.address = case, name, f"10.9.{number}.2"
        self.place = case.state / name
        self.place.mkdir(mode=0o711)
        self.log = case.state / "log" / f"{name}.log"
        self.config = case.state / "etc" / f"{name}.cfg"
        self.process = Process(name, case.state / "run" / f"{name}.process", case.state / "log" / f"{name}.stderr")
        self.write()

    def write(self, certificate=None, site="alpha"):
        identity = self.case.alpha.identity(*(certificate or ("node", f"alpha.{self.name}")))
        self.health = self.case.health(self.name)
        self.config.write_text(f"GRID {layout.GRID}\nSITE {site}\nLISTEN {self.address}:7712\nSTATEDIR {self.place}\n"
                               f"LOGFILE {self.log}\nPORTFILE {self.place}/port\n{identity}"
                               f"NODEHEALTHPROGRAM {self.health}\nNODEHEALTHINTERVAL 1\n")

    def start(self):
        (self.place / "port").unlink(missing_ok=True)
        self.process.start([self.case.programs["nui-node"], "--config", self.config],
                           preexec_fn=self.case.network.enter(self.name))
        wait_for(f"{self.name} to listen", lambda: (self.place / "port").exists() or self.process.died(), 60, self.log)
        if self.process.died():
            raise AssertionError(f"{self.name} ended: {self.words()}")

    def words(self):
        path = self.case.state / "log" / f"{self.name}.stderr"
        return path.read_text(errors="replace") if path.exists() else ""

    def logged(self, word):
        return [line for line in self.log.read_text(errors="replace").splitlines() if word in line] if self.log.exists() else []

    def runs(self):
        jobs = self.place / "jobs"
        return sorted(p.name for p in jobs.iterdir() if not p.name.startswith(".")) if jobs.is_dir() else []


@unittest.skipUnless(os.geteuid() == 0, "namespaces and other accounts need root")
class Nodes(SharedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.network = Network(cls.state.name)
        cls.addClassCleanup(cls.network.gone)
        cls.network.make()
        cls.alpha = cls.site()
        cls.hosts = {name: Host(cls, number, name) for number, name in enumerate(HOSTS, 2)}
        cls.addClassCleanup(cls.stop_hosts)
        cls.alpha.write(cls.text())
        for host in cls.hosts.values():
            host.start()
        cls.home_start()

    @classmethod
    def text(cls):
        agents = "".join(f"NODECFG[{h.name}] PROCS=2 AGENT={h.address}:7712 FEATURES={h.name}\n" for h in cls.hosts.values())
        return f"NODECFG[n1] PROCS=1 FEATURES=n1\n{agents}RMPOLLINTERVAL 1\nKILLGRACE 1\nADMIN1 root\n" \
            f"NODEHEALTHPROGRAM {cls.health('n1')}\nNODEHEALTHINTERVAL 1\nNODEFAILUREUSERS 2\n" \
            f"NOTIFICATIONPROGRAM {cls.hook()}\nNOTIFICATIONACCOUNT root\nNOTIFICATIONEVENTS NODEDRAINED\n"

    @classmethod
    def hook(cls):
        """A program that writes down what it is told."""
        program = cls.shared.parent / "etc" / "hook"
        program.write_text(f"#!/bin/sh\necho \"$1|$2|$3\" >>{program}.heard\n")
        program.chmod(0o755)
        return program

    def heard(self, name):
        path = self.shared.parent / "etc" / "hook.heard"
        words = [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []
        return [(event, text) for event, node, text in words if node == name]

    @classmethod
    def health(cls, name):
        """A program that says what stands in a file, if there is one."""
        program = cls.shared.parent / "etc" / f"{name}.health"
        if not program.exists():
            program.write_text(f"#!/bin/sh\n[ ! -e {program}.bad ] || {{ cat {program}.bad; exit 1; }}\n")
            program.chmod(0o755)
        return program

    @classmethod
    def home_start(cls):
        cls.alpha.start(preexec_fn=cls.network.enter("home"))

    @classmethod
    def stop_hosts(cls):
        for host in cls.hosts.values():
            if not host.process.stop():
                raise AssertionError(f"{host.name} had to be killed")
            found = SANITIZER.search(host.words())
            if found:
                raise AssertionError(f"{host.name} says '{found.group(0)}'")

    # ---- pieces

    def script(self, name, text):
        path = self.shared / f"{name}.sh"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def gated(self, name, more="echo over"):
        """Writes down that it began, and goes on when the gate is open."""
        return self.script(name, f"echo $$ >>{self.shared}/{name}.began\necho begun\n"
                           f"while [ ! -e {self.shared}/{name}.gate ]; do sleep 0.05; done\n{more}\n")

    def began(self, name):
        path = self.shared / f"{name}.began"
        return path.read_text().split() if path.exists() else []

    def open(self, name):
        (self.shared / f"{name}.gate").touch()

    def submit(self, script, *options):
        return self.ok(self.alpha, "msub", "-t", "10:00", *options, script, account=self.account).strip()

    def job(self, ident):
        return self.data(self.alpha, "checkjob", ident)["job"]

    def wait(self, ident, *states, seconds=90):
        return wait_for(f"{ident} to be {states}", lambda: (lambda j: j if j["state"] in states else None)(self.job(ident)),
                        seconds, self.alpha.log)

    def output(self, ident):
        return self.ok(self.alpha, "output", ident, account=self.account)

    def node(self, name):
        return self.data(self.alpha, "checknode", name)["node"]

    def all_up(self):
        wait_for("all hosts to be up", lambda: all(self.node(n)["state"] not in ("Down", "Drained") for n in HOSTS), 60, self.alpha.log)

    # ---- tests

    def test_a_job_runs_there_and_its_files_come_home(self):
        self.all_up()
        script = self.script("there", "readlink /proc/self/ns/net; id -un; pwd; cat $NUI_NODEFILE\n"
                             "mkdir -p sub/deep; head -c 3000000 /dev/zero >sub/deep/large; ln -s large sub/deep/link\n"
                             "echo wrong >&2; exit 7\n")
        ident = self.submit(script, "--tasks", 2, "--features", "n2")
        job = self.wait(ident, "Completed", "Failed")
        self.assertEqual(job["exit_code"], 7)
        lines = self.output(ident).splitlines()
        self.assertEqual(lines[0], self.network.identity("n2"))
        self.assertNotEqual(lines[0], self.network.identity("home"))
        self.assertEqual(lines[1], self.account)
        self.assertEqual(lines[2], f"{self.hosts['n2'].place}/jobs/{ident}/work")
        self.assertEqual(lines[3:], ["n2", "n2"])
        work = self.alpha.dir / "jobs" / ident / "work"
        self.assertEqual((work / "sub/deep/large").stat().st_size, 3000000)
        self.assertEqual(os.readlink(work / "sub/deep/link"), "large")
        self.assertEqual((work / "sub/deep/large").owner(), self.account)
        self.assertEqual((work / "stderr").read_text(), "wrong\n")
        wait_for("the host to keep nothing", lambda: not self.hosts["n2"].runs(), 60, self.hosts["n2"].log)

    def wide(self, name, more, *options):
        """A job with two tasks on each other host, or of all five."""
        path = f"PATH={Path(self.programs['nui']).parent}:$PATH\n"
        return self.submit(self.script(name, path + more), *options)

    def test_a_job_of_all_hosts_runs_its_tasks_there(self):
        """From home, as the job's account; each task in its host's own network, with its number and its node's names."""
        self.all_up()
        ident = self.wide("all", "export COLOUR=blue\nnui run -l sh -c '"
                          "echo $NUI_NODE $(readlink /proc/self/ns/net) $(id -un) $COLOUR $NUI_TASK/$NUI_TASKS "
                          "$(wc -l <$NUI_NODEFILE) $(pwd); echo wrong >&2; exit $NUI_TASK'\n", "--tasks", 5)
        job = self.wait(ident, "Completed", "Failed")
        self.assertEqual(job["exit_code"], 4, self.output(ident))
        said = sorted(self.output(ident).splitlines())
        homes = {"n1": (self.network.identity("home"), self.alpha.dir), "n2": (self.network.identity("n2"), self.hosts["n2"].place),
                 "n3": (self.network.identity("n3"), self.hosts["n3"].place)}
        self.assertEqual(said, [f"{n}: {node} {homes[node][0]} {self.account} blue {n}/5 5 {homes[node][1]}/jobs/{ident}/work"
                                for n, node in enumerate(("n1", "n2", "n2", "n3", "n3"))])
        self.assertEqual(self.alpha.nui("output", "--stderr", ident).stdout.count("wrong"), 5)
        for host in self.hosts.values():
            wait_for("the host to keep nothing", lambda h=host: not h.runs(), 60, host.log)

    def test_tasks_between_other_hosts(self):
        """The script is on another host itself; a signal reaches tasks, and a cancel leaves none of them."""
        self.all_up()
        blocker = self.submit(self.gated("blocker"), "--features", "n1")
        self.wait(blocker, "Running")
        ident = self.wide("other", f"readlink /proc/self/ns/net\nnui run sh -c 'echo $$ >>{self.shared}/other.pids; exec sleep 600'\n",
                          "--tasks", 4)
        self.wait(ident, "Running")
        pids = wait_for("the tasks", lambda: (lambda p: p if len(p) == 4 else None)(
            (self.shared / "other.pids").read_text().split() if (self.shared / "other.pids").exists() else []), 60, self.alpha.log)
        spaces = [os.readlink(f"/proc/{pid}/ns/net") for pid in pids]
        self.assertEqual(sorted(spaces), sorted(2 * [self.network.identity("n2")] + 2 * [self.network.identity("n3")]))
        self.ok(self.alpha, "canceljob", ident, account=self.account)
        self.wait(ident, "Cancelled")
        self.assertEqual(self.output(ident).split()[0], self.network.identity("n2"))
        wait_for("no task to be left", lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 60, self.alpha.log)
        self.open("blocker")
        self.wait(blocker, "Completed")

    def test_a_job_ends_with_one_of_its_hosts(self):
        self.all_up()
        ident = self.wide("lost", f"echo >{self.shared}/lost.began; sleep 600\n", "--tasks", 5)
        wait_for("it to begin", lambda: self.began("lost") is not None and (self.shared / "lost.began").exists(), 60, self.alpha.log)
        tasks = [p for p in Path("/proc").glob("[0-9]*") if self.is_tasks(p, ident, "n3")]
        self.assertEqual(len(tasks), 1)
        os.kill(int(tasks[0].name), 9)
        self.wait(ident, "Failed")
        self.assertIn("its part on n3 ended", self.ok(self.alpha, "checkjob", ident))

    def test_a_wide_job_outlives_its_daemons(self):
        self.all_up()
        self.addCleanup(self.restore, self.hosts["n3"])
        ident = self.wide("outlives", f"echo begun\nuntil [ -e {self.shared}/outlives.gate ]; do sleep 0.1; done\n"
                          "nui run sh -c 'echo $NUI_TASK'\n", "--tasks", 5)
        self.wait(ident, "Running")
        self.alpha.process.kill()
        self.hosts["n3"].process.kill()
        self.home_start()
        self.hosts["n3"].start()
        self.all_up()
        self.assertEqual(self.job(ident)["state"], "Running")
        self.open("outlives")
        self.wait(ident, "Completed", "Failed")
        self.assertEqual(sorted(self.output(ident).split()), ["0", "1", "2", "3", "4", "begun"])

    def test_a_wide_job_begins_when_all_its_hosts_are_there(self):
        """Cut while its hosts get ready, nui-local killed: it begins once, on all of them."""
        self.all_up()
        self.addCleanup(self.restore, self.hosts["n3"])
        with self.hosts["n3"].process.halted():
            ident = self.wide("ready", f"echo $$ >>{self.shared}/ready.began\nnui run sh -c 'echo $NUI_TASK'\n", "--tasks", 5)
            wait_for("it to be handed over", lambda: self.alpha.logged("job_handed_over", ident), 60, self.alpha.log)
            self.alpha.process.kill()
            self.home_start()
            self.assertEqual(self.began("ready"), [])
        self.wait(ident, "Completed", "Failed")
        self.assertEqual(sorted(self.output(ident).split()), ["0", "1", "2", "3", "4"])
        self.assertEqual(len(self.began("ready")), 1)

    def is_tasks(self, process, ident, host):
        try:
            return b"nui-tasks" in (process / "cmdline").read_bytes() and \
                os.readlink(process / "cwd") == f"{self.hosts[host].place}/jobs/{ident}/work"
        except OSError:
            return False

    def test_the_health_program_drains_and_gives_back(self):
        self.all_up()
        for name in ("n1", "n3"):
            bad = Path(f"{self.health(name)}.bad")
            bad.write_text("fan 2 stands still\nand more\n")
            self.addCleanup(bad.unlink, missing_ok=True)
            wait_for(f"{name} to be drained", lambda n=name: self.node(n)["state"] == "Drained", 60, self.alpha.log)
            self.assertEqual(self.node(name)["reason"], "fan 2 stands still")
            self.assertEqual(self.node("n2")["state"], "Idle")
            ident = self.submit(self.script(f"sick-{name}", "echo ran\n"), "--features", name)
            bad.write_text("")
            wait_for("the other reason", lambda n=name: self.node(n)["reason"] == "its health program ended with 1", 60, self.alpha.log)
            self.assertEqual(self.job(ident)["state"], "Idle")
            bad.unlink()
            self.wait(ident, "Completed")

    def ends(self, how, account, *options):
        """A job of that account that is over at once."""
        script = self.script(f"ends{how}", f"exit {how}\n")
        ident = self.ok(self.alpha, "msub", "-t", "10:00", *options, script, account=account).strip()
        self.wait(ident, "Failed" if how else "Completed")
        return ident

    def test_a_node_that_fails_everybodys_jobs_is_set_aside(self):
        """Of two users, with no success between, on that node alone; told, kept over kill -9, and an administrator takes it back."""
        self.all_up()
        n3 = ("--features", "n3")
        self.addCleanup(self.alpha.nui, "mnodectl", "-m", "state=up", *HOSTS)
        for how, account in ((1, self.account), (1, self.account), (0, self.other), (1, self.other)):
            self.ends(how, account, *n3)  # one user's; then not one after another
        wide = self.wide("fails", "exit 3\n", "--tasks", 5)  # nobody knows whose fault it is
        self.wait(wide, "Failed")
        self.assertEqual(self.node("n3")["state"], "Idle")
        last = self.ends(5, self.account, *n3)
        self.assertEqual(self.node("n3")["state"], "Drained")
        why = f"jobs of 2 users failed here, none ended well since: {last} ended with 5"
        self.assertEqual(self.node("n3")["reason"], why)
        self.assertIn(why, self.ok(self.alpha, "checknode", "n3"))
        wait_for("the hook", lambda: self.heard("n3"), 60, self.alpha.log)
        self.assertEqual(self.heard("n3"), [("NodeDrained", f"node n3 is drained: {why}")])
        waits = self.submit(self.script("aside", "exit 0\n"), *n3)

        for account in (self.account, self.other):  # one of three nodes is out already
            self.ends(1, account, "--features", "n2")
        self.assertEqual(self.node("n2")["state"], "Idle")
        self.assertTrue(self.alpha.logged("not_set_aside", "node=n2"))

        self.alpha.process.kill()
        self.home_start()
        wait_for("its host to answer again", lambda: self.node("n3")["state"] == "Drained", 60, self.alpha.log)
        self.assertEqual(self.node("n3")["reason"], why)
        self.assertEqual(self.job(waits)["state"], "Idle")
        self.ok(self.alpha, "mnodectl", "-m", "state=up", "n3")
        self.wait(waits, "Completed")
        wait_for("the hook", lambda: len(self.heard("n3")) > 1, 60, self.alpha.log)
        self.assertEqual(self.heard("n3")[1:], [("NodeReturned", "node n3 is drained no longer")])
        self.assertIsNone(self.node("n3")["reason"])

    def test_output_is_seen_while_it_runs_and_a_cancel_ends_it(self):
        self.all_up()
        ident = self.submit(self.gated("seen"), "--features", "n3")
        wait_for("the job to print", lambda: self.alpha.nui("output", ident, account=self.account).stdout == "begun\n", 60,
                 self.alpha.log)
        self.assertEqual(self.job(ident)["state"], "Running")
        self.ok(self.alpha, "canceljob", ident, account=self.account)
        self.wait(ident, "Cancelled")
        self.assertEqual(self.output(ident), "begun\n")
        wait_for("the host to keep nothing", lambda: not self.hosts["n3"].runs(), 60, self.hosts["n3"].log)

    def test_a_job_stops_and_goes_on_there(self):
        self.all_up()
        ident = self.submit(self.gated("stops"), "--features", "n3")
        pid = wait_for("the job to begin", lambda: self.began("stops"), 60, self.alpha.log)[0]
        stat = Path(f"/proc/{pid}/stat")
        self.ok(self.alpha, "mjobctl", "-s", ident)
        wait_for("it to stop", lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T", 60, self.hosts["n3"].log)
        self.ok(self.alpha, "mjobctl", "-r", ident)
        self.open("stops")
        self.wait(ident, "Completed")

    def test_a_cut_and_kills_lose_no_job(self):
        """Its host is cut off, nui-local and nui-node are killed, it ends meanwhile; each comes back alone."""
        self.all_up()
        n2 = self.hosts["n2"]
        self.addCleanup(self.restore, n2)
        ends, goes = (self.submit(self.gated(name, "echo over; exit 3"), "--features", "n2") for name in ("ends", "goes"))
        for ident, name in ((ends, "ends"), (goes, "goes")):
            self.wait(ident, "Running")
            wait_for(f"{name} to begin", lambda n=name: self.began(n), 60, n2.log)
        self.network.cable("n2", False)
        wait_for("the node to be down", lambda: self.node("n2")["state"] == "Down", 120, self.alpha.log)
        self.assertIn("cannot be reached", self.node("n2")["reason"])
        self.alpha.process.kill()
        self.open("ends")
        wait_for("its end to be on the host's disk", lambda: (n2.place / "jobs" / ends / "status").exists(), 60, n2.log)
        n2.process.kill()
        self.home_start()
        self.assertEqual(self.job(ends)["state"], "Running")
        self.assertEqual(self.job(goes)["state"], "Running")
        waits = self.submit(self.script("waits", f"echo $$ >>{self.shared}/waits.began\n"), "--features", "n2")
        n2.start()
        self.network.cable("n2", True)
        job = self.wait(ends, "Failed", "Completed")
        self.assertEqual(job["exit_code"], 3)
        self.assertEqual(self.output(ends), "begun\nover\n")
        self.assertEqual(self.job(goes)["state"], "Running")
        n2.process.kill()
        n2.start()
        self.open("goes")
        self.assertEqual(self.wait(goes, "Failed", "Completed")["exit_code"], 3)
        self.wait(waits, "Completed")
        for name in ("ends", "goes", "waits"):
            self.assertEqual(len(self.began(name)), 1, name)
        wait_for("the host to keep nothing", lambda: not n2.runs(), 60, n2.log)

    def test_cut_while_it_begins(self):
        """Whichever call the cut meets, the job begins once, when the host is back."""
        self.all_up()
        self.addCleanup(self.restore, self.hosts["n3"])
        with self.hosts["n3"].process.halted():
            ident = self.submit(self.script("begins", f"echo $$ >>{self.shared}/begins.began\n"), "--features", "n3")
            wait_for("it to be handed over", lambda: self.alpha.logged("job_handed_over", ident), 60, self.alpha.log)
            self.network.cable("n3", False)
            self.alpha.process.kill()
            self.home_start()
        self.network.cable("n3", True)
        self.wait(ident, "Completed")
        self.assertEqual(len(self.began("begins")), 1)

    def test_who_may_not(self):
        """An agent of another site's, or another node's, gets no job; and an agent answers its own site alone."""
        self.all_up()
        n3 = self.hosts["n3"]
        n3.process.stop()
        self.addCleanup(self.restore, n3)
        for wrong in ({"certificate": ("node", "alpha.n2")}, {"certificate": ("node", "beta.n3")}, {"site": "beta"}):
            before = len(self.alpha.log.read_text(errors="replace"))
            n3.write(**wrong)
            n3.start()
            wait_for(f"{wrong} to be refused", lambda b=before: re.search(
                "agent_away.*node=n3", self.alpha.log.read_text(errors="replace")[b:]), 60, self.alpha.log)
            wait_for("the node to be down", lambda: self.node("n3")["state"] == "Down", 60, self.alpha.log)
            n3.process.stop()
        n3.write(certificate=("site", "alpha"))
        self.assertRaisesRegex(AssertionError, "node", n3.start)

    def restore(self, host):
        self.network.cable(host.name, True)
        host.process.stop()
        host.write()
        host.start()


if __name__ == "__main__":
    main()
