"""nui-migrate(7), typed line by line: a file of Maui's is read, tried in mode TEST, compared by a week's trace, and left
again; and the lines of the Maui chapter, where they are at hand, out of the chapter itself."""
import json
import os
import re
import subprocess
import unittest
from pathlib import Path

from fixture import ROOT, GridCase, become, layout, main
from grid.base import free_ports
from onesite import Process, SiteCase, wait_for
from test_simulation import BEGIN, TRACE_NODES, trace_job

PAGE = ROOT / "local" / "man" / "nui-migrate.7"

MAUI = """SERVERHOST      head.example.edu
ADMIN1          maui root
RMCFG[base]     TYPE=PBS
RMPOLLINTERVAL  00:00:30
SERVERPORT      42559
LOGFILE         maui.log
LOGLEVEL        3
QUEUETIMEWEIGHT 1
FSPOLICY        DEDICATEDPS
FSDEPTH         7
FSINTERVAL      86400
FSDECAY         0.80
BACKFILLPOLICY  FIRSTFIT
RESERVATIONPOLICY CURRENTHIGHEST
NODEALLOCATIONPOLICY MINRESOURCE
USERCFG[DEFAULT] MAXJOB=8 FSTARGET=10.0
GROUPCFG[staff] FSTARGET=40.0-
CLASSCFG[batch] MAXPROC=16
QOSCFG[hi]      PRIORITY=100 XFTARGET=100 QFLAGS=PREEMPTOR
QOSCFG[lo]      PRIORITY=-10 QFLAGS=PREEMPTEE,NOSUCH
USERCFG[bob]    MAXJOB: 3 QLIST=hi, lo PRIVILEGES=VMOwner
USERWIEGHT      1
JOBNODEMATCHPOLICY EXACTNODE EXACTPROC
"""


def plain(text):
    """Lines of a page as a reader sees them."""
    return [line.replace("\\-", "-") for line in text.splitlines()]


ALONE, TOGETHER = PAGE.read_text().split(".SH SEVERAL CLUSTERS")  # of one cluster, of several


def blocks(text):
    """Its displays, each a list of lines."""
    found, at = [], None
    for line in plain(text):
        if line == ".nf":
            at = []
        elif line == ".fi":
            found.append(at)
            at = None
        elif at is not None:
            at.append(line)
    return found


class HeadNode(SiteCase):
    """A head node: the programs in PATH, Maui's names among them, and a directory to work in."""

    def setUp(self):
        self.work = self.state / self._testMethodName
        (self.work / "bin").mkdir(parents=True, mode=0o711)
        nui = self.programs["nui"]
        links = subprocess.run([nui, "completion", "links"], capture_output=True, text=True, timeout=600).stdout.split()
        for name, target in [("nui", nui), ("nui-local", self.programs["nui-local"]), *((n, nui) for n in links)]:
            (self.work / "bin" / name).symlink_to(target)
        (self.work / "nui.cfg").write_text(f"SITECFG[local] SOCKET={self.work}/sock\n")
        self.daemon = None

    def tearDown(self):
        if self.daemon:
            self.daemon.stop()

    def env(self):
        return {"PATH": f"{self.work}/bin:/usr/bin:/bin", "TZ": "UTC", "HOME": "/nonexistent",
                "NUI_CONFIG": str(self.work / "nui.cfg"), **{k: v for k, v in os.environ.items() if "SAN_OPTIONS" in k}}

    def typed(self, line, code=0, account=None):
        if line.endswith("&"):
            self.daemon = Process("nui-local", self.work / "process", self.work / "stderr")
            words = line[:-1].split()
            self.daemon.start([self.work / "bin" / words[0], *words[1:]], cwd=self.work, env=self.env())
            wait_for("nui-local to answer", lambda: self.daemon.died() or self.say("schedctl").returncode == 0, 60)
            self.assertFalse(self.daemon.died(), (self.work / "stderr").read_text())
            return ""
        done = self.say(line, account)
        self.assertEqual(done.returncode, code, f"$ {line}\n{done.stdout}{done.stderr}")
        if line == "schedctl -k":
            wait_for("nui-local to end", self.daemon.died, 60)
        return done.stdout + done.stderr

    def say(self, line, account=None):
        return subprocess.run([*become(account), "/bin/sh", "-c", line], cwd=self.work, env=self.env(), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=600)


@unittest.skipIf(os.geteuid() != 0, "needs to be root: a user's job runs as that user")
class Guide(HeadNode):
    def test_guide(self):
        typed = [line for block in blocks(ALONE) for line in block if line[:2] in ("$ ", "% ")]
        site = next(block for block in blocks(ALONE) if block[0].startswith("MAUIFILE"))
        (self.work / "site.cfg").write_text("\n".join(site).replace("/var/lib/nui/local", f"{self.work}/state")
                                            .replace("/run/nui-local/sock", f"{self.work}/sock")
                                            .replace("/var/lib/nui/jobs", f"{self.work}/jobs") + "\n")
        (self.work / "state").mkdir()
        (self.work / "jobs").mkdir()
        (self.work / "maui.cfg").write_text(MAUI)
        (self.work / "week.trace").write_text("VERSION 230\n" + "".join(
            trace_job(str(n), "ann", 2, 3600, BEGIN + 600 * n, 1800) for n in range(1, 6)))
        script = self.work / "job.sh"
        script.write_text("#!/bin/sh\n#PBS -N moved\nexec sleep 600\n")
        script.chmod(0o755)
        self.assertGreater(len(typed), 15)
        said = {}
        for line in typed:
            user = layout.account_of("alice") if line[0] == "%" else None
            said.setdefault(line[2:], []).append(self.typed(line[2:], account=user))
        told = said["nui-local --check --config maui.cfg"][0]
        for parameter in ("RMCFG", "SERVERPORT"):
            self.assertRegex(told, rf"maui\.cfg: line \d+: {parameter}")
        again = said["nui-local --check --config nui-local.cfg"][0]
        for says in ("USERWIEGHT: neither Maui", "'MAXJOB:' is taken as 'MAXJOB='", "'NOSUCH' is no flag", "is good\n"):
            self.assertIn(says, again, "what is told of Maui's file is told of the site's")
        self.assertIn("mode TEST", said["schedctl"][0])
        self.assertRegex(said["diagnose -u"][0], r"(?m)^bob .*MAXJOB=3$")
        self.assertRegex(said["showconfig"][0], r"(?m)^FSDECAY +0\.80?$")
        self.assertIn("Total Nodes: 4", said["diagnose -n"][0])
        self.assertIn("MAXJOB=8", said["diagnose -u"][0])
        self.assertRegex(said["diagnose -Q"][0], r"(?m)^hi +100 .*PREEMPTOR")
        self.assertEqual(len((self.work / "nodes.trace").read_text().splitlines()), 4)
        week = json.loads((self.work / "week.json").read_text())
        self.assertEqual(week.get("jobs"), 5, week)
        job = said["msub -l nodes=1:ppn=1,walltime=5:00 job.sh"][0].split()[0]
        self.assertRegex(job, r"^\w+\.1$")
        self.assertIn(f"checking job {job}", said["checkjob -v 1"][0])
        self.assertIn(f"job '{job}' cancelled", said["canceljob 1"][0])
        self.assertEqual([text.strip() for text in said["schedctl -k"]], ["nui-local shuts down"] * 2)
        self.assertEqual((self.work / "maui.cfg").read_text(), MAUI, "Maui's file is as it was")

    def test_what_the_page_names(self):
        """Options and commands in the page's text are there."""
        text = "\n".join(plain(PAGE.read_text()))
        for name in re.findall(r"^\.BR (nui-[a-z]+) \((?:1|8)\)", text, re.M):
            self.assertEqual(len(list(ROOT.glob(f"*/man/{name}.[18]"))), 1, name)


@unittest.skipIf(os.geteuid() != 0, "needs to be root: a user's job runs as that user")
class Joins(GridCase):
    """SEVERAL CLUSTERS of the page: a cluster by itself with a file of Maui's becomes a site of a grid that is at work."""
    sites = {"alpha": (1, 2)}

    def shell(self, line, account=None):
        if line.endswith("&"):
            self.daemon = Process("delta", self.place / "process", self.place / "stderr")
            self.daemon.start([self.grid.programs["nui-local"], *line[:-1].split()[1:]], cwd=self.place)
            wait_for("delta to answer", lambda: self.daemon.died() or self.say("schedctl").returncode == 0, 60)
            self.assertFalse(self.daemon.died(), (self.place / "stderr").read_text())
            return ""
        done = self.say(line, account)
        self.assertEqual(done.returncode, 0, f"$ {line}\n{done.stdout}{done.stderr}")
        if line == "schedctl -k":
            wait_for("delta to end", self.daemon.died, 60)
        return done.stdout

    def say(self, line, account=None):
        words = line.split()
        program = self.grid.programs["nui-local"] if words[0] == "nui-local" else self.grid.programs["nui"]
        return subprocess.run([*become(account), program, *(words[1:] if words[0] == "nui-local" else words)], cwd=self.place, text=True,
                              env={**os.environ, "NUI_CONFIG": str(self.place / "nui.cfg"), "TZ": "UTC"},
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=600)

    def test_a_site_joins(self):
        lay, meta = self.grid.layout, self.grid.daemons["meta"]
        self.place = lay.state / "delta"
        self.place.mkdir(mode=0o711)
        (self.place / "state").mkdir()
        (self.place / "jobs").mkdir()
        own = next(block for block in blocks(ALONE) if block[0].startswith("MAUIFILE"))
        lines, typed, users = blocks(TOGETHER)
        site = "\n".join(own).replace("/var/lib/nui/local", f"{self.place}/state").replace(
            "/run/nui-local/sock", f"{self.place}/sock").replace("/var/lib/nui/jobs", f"{self.place}/jobs")
        maui = "".join(line for line in MAUI.splitlines(True) if not line.startswith("RMCFG"))
        file = self.place / "nui-local.cfg"
        (self.place / "nui.cfg").write_text(f"SITECFG[delta] SOCKET={self.place}/sock\n")
        # by itself, with a job in its queue
        file.write_text(f"SITENAME delta\n{site}\n{maui}")
        script = self.place / "job.sh"
        script.write_text("#!/bin/sh\nexit 0\n")
        script.chmod(0o755)
        self.shell("nui-local --config nui-local.cfg &")
        try:
            waits = self.shell(f"msub --hold --tasks 1 -t 5:00 {script}", layout.account_of("alice")).strip()
            # the grid's side
            port = free_ports(1)[0]
            done = subprocess.run([self.grid.programs["nui-ca"], "issue", lay.ca, "site", "delta", "--out", self.place / "delta"],
                                  capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            with lay.config("meta").open("a") as more:
                more.write(f"SITECFG[delta] SERVER=127.0.0.1:{port}\n")
            meta.kill()
            meta.start()
            self.nui(layout.OPERATOR, "rate", "set", "delta", "1")
            with lay.config("alice").open("a") as more:
                more.write(f"SITECFG[delta] SERVER=127.0.0.1:{port}\n")
            bank, at = (re.search(rf"(?m)^{key} +(\S+)", lay.config("alpha").read_text())[1] for key in ("BANK", "META"))
            joined = "\n".join(lines)
            for old, new in (("GRID            example", f"GRID {layout.GRID}"), ("0.0.0.0:7712", f"127.0.0.1:{port}"),
                             ("CA              ca.pem", f"CA {lay.ca}/ca.pem"), ("crl.pem", f"{lay.ca}/crl.pem"),
                             ("meta.example.org:7710", at), ("bank.example.org:7711", bank),
                             ("GRIDMAP         gridmap", f"GRIDMAP {lay.etc}/gridmap"), ("SITENAME        delta", "SITENAME delta")):
                self.assertIn(old, joined)
                joined = joined.replace(old, new)
            file.write_text(f"{joined}\n{site}\n{maui}")
            said = {line[2:]: self.shell(line[2:]) for line in typed}
            self.assertIn("nui-local.cfg is good", said["nui-local --check --config nui-local.cfg"])
            self.assertIn("META[", said["diagnose -G"])
            self.assertIn(waits, self.shell("showq"), "its queue is as it was")
            wait_for("the grid to know it", lambda: "delta" in self.nui("alice", "sites").stdout, 60, lay.log)
            for line in users[1:]:
                words = line[2:].replace("job.sh", str(script)).split()
                ident = self.nui("alice", *words[1:], "-A", "phys").stdout.split()[-1]
                wait_for(f"{ident} to end", lambda: self.ended(ident), 60, lay.log)
            self.assertIn("MAXJOB=8", self.shell("diagnose -u"))
        finally:
            self.daemon.stop()

    def ended(self, ident):
        if ident.startswith("delta."):
            return "State: Completed" in self.say(f"checkjob {ident}").stdout
        status = self.status("alice", ident)
        return status and status["state"] == "Completed"


@unittest.skipUnless(os.environ.get("NUI_SHARED"), "the chapter is not here (NUI_SHARED)")
class Chapter(HeadNode):
    """Every line of configuration and every command that the Maui chapter prints, as it prints it."""

    def test_lines(self):
        page = next((Path(os.environ["NUI_SHARED"]) / "seeds").glob("001_*.txt")).read_text()
        config = re.findall(r"(?m)^ {2,}((?:[A-Z]{4,}(?:\[\w+\])?) {1,}\S.*)$", page)
        commands = re.findall(r"(?m)^ +> (.*)$", page)
        self.assertGreaterEqual(len(config), 15, config)
        self.assertGreaterEqual(len(commands), 2)
        (self.work / "nodes").write_text(re.sub(r"node0(\d)", lambda m: "node" + " ABCDEFGH"[int(m[1])],
                                                  TRACE_NODES.replace("[std]", "[fast]").replace("[bigmem]", "[fast]")))
        (self.work / "jobs").write_text("VERSION 230\n" + trace_job("1", "john", 1, 600, BEGIN, 300))
        (self.work / "chapter.cfg").write_text(
            f"SCHEDCFG[maui] MODE=SIMULATION\nSOCKET {self.work}/sock\nSTATEDIR {self.work}\nADMIN1 root\n"
            f"SIMWORKLOADTRACEFILE {self.work}/jobs\nSIMRESOURCETRACEFILE {self.work}/nodes\nSIMAUTOSHUTDOWN FALSE\n"
            "SIMSTOPITERATION 1\n" + "\n".join(config) + "\n")
        self.typed("nui-local --check --config chapter.cfg")
        self.typed("nui-local --config chapter.cfg &")
        for command in commands:
            self.assertIn("reservation created", self.typed(command))
        for command in ("showstats", "showgrid AVGXFACTOR", "diagnose -p", "diagnose -f", "profiler", "schedctl -S",
                        "schedctl -l FSDEPTH", "schedctl -m 'FSDEPTH 8'", "changeparam FSDECAY 0.9"):
            self.typed(command)
        self.assertRegex(self.typed("schedctl -l FSDEPTH"), r"^FSDEPTH\S* +8\n$")
        self.typed("schedctl -k")


if __name__ == "__main__":
    main()
