"""A session in the shape of the Maui manual's chapter 16.3: each configuration line and each command of
it, in one simulation and under TEST."""
import re
import subprocess
import time

from fixture import main
from onesite import SiteCase, wait_for
from test_simulation import trace_job

# The chapter's lines, by its sections; FSPOLICY and the QoS are said in its words only.
CHAPTER = """# 16.3.1
USERCFG[bob]       PRIORITY=100
USERCFG[john]      PRIORITY=500
USERWEIGHT         1
GROUPWEIGHT        1
CREDWEIGHT         1
NODEALLOCATIONPOLICY PRIORITY
NODECFG[DEFAULT] PRIORITYF='AMEM - 10*USAGE + SPEED'
# 16.3.2
USERCFG[bob] MAXJOB=3 MAXPROC=32
GROUPCFG[DEFAULT] MAXNODE=64
USERCFG[DEFAULT] MAXNODE=16,24
FSPOLICY   DEDICATEDPS
FSDEPTH    7
FSINTERVAL 24:00:00
FSDECAY    0.80
USERCFG[john]     FSTARGET=25.0+
GROUPCFG[staff]   FSTARGET=20.0-
USERCFG[DEFAULT]  FSTARGET=10.0
# 16.3.3
SRCFG[development]     PERIOD=DAY DAYS=MON, TUE, WED, THU, FRI
SRCFG[development]     STARTTIME=8:00:00 ENDTIME=17:00:00
SRCFG[development]     TASKCOUNT=16 TIMELIMIT=00:30:00
SRUSERLIST[special]  bob john steve= bill-
AMCFG[qbank] TYPE=QBANK  HOST=bank.univ.edu
USERCFG[john] QLIST=hiprio:normal QDEF=hiprio
GROUPCFG[bio] QLIST=hiprio:medprio:development QDEF=medprio
QOSCFG[hiprio] PRIORITY=50 QTTARGET=30 QFLAGS=PREEMPTOR,IGNJOBPERUSER MAXPROC=150
QOSCFG[normal] QFLAGS=PREEMPTEE
QOSCFG[medprio] PRIORITY=20
QOSCFG[development] PRIORITY=1
QOSWEIGHT 1
FSWEIGHT 1
FSUSERWEIGHT 1
TARGETWEIGHT 1
TARGETQUEUETIMEWEIGHT 1
# 16.3.4
BACKFILLPOLICY FIRSTFIT
RESERVATIONPOLICY CURRENTHIGHEST
"""


class Chapter(SiteCase):
    def configured(self, name, mode, more=""):
        site = self.site(name, "alpha")
        site.write(f"SCHEDCFG[maui] MODE={mode} PORT=40560\n{CHAPTER}{more}", gridmap=False)
        return site

    def nodes(self):
        return "".join(f"COMPUTENODE AVAILABLE 0 node{n} [DEFAULT] 2048M 2048M 20000M 4 1 {i} 0 Linux x86_64 "
                       f"[{'fast' if i > 2 else 'std'}] [batch:4] [ethernet] 1.0 [NONE] [NONE] [NONE]\n"
                       for i, n in enumerate("ABCDEFGH", 1))

    def test_session(self):
        # a Saturday noon some weeks ago: the standing reservation's days are not in the way, whatever
        # day the test runs, and what setres asks for lies ahead
        day = int(time.time()) // 86400 - 14
        begin = (day - (day - 2) % 7) * 86400 + 12 * 3600
        self.assertEqual(time.gmtime(begin).tm_wday, 5)
        jobs = [("1", "bob", 4, 3600), ("2", "bob", 4, 3600), ("3", "bob", 4, 3600), ("4", "bob", 4, 3600),
                ("5", "john", 4, 1200), ("6", "sam", 32, 7200), ("7", "steve", 2, 600)]
        (self.state / "jobs").write_text("VERSION 230\n" + "".join(
            trace_job(n, u, t, l, begin, l // 2) for n, u, t, l in jobs))
        (self.state / "nodes").write_text(self.nodes())
        site = self.configured("session", "SIMULATION", f"""SIMWORKLOADTRACEFILE {self.state}/jobs
SIMRESOURCETRACEFILE {self.state}/nodes
SIMJOBSUBMISSIONPOLICY NORMAL
SIMINITIALQUEUEDEPTH 1
SIMAUTOSHUTDOWN FALSE
SIMSTOPITERATION 0
""")
        done = subprocess.run([site.programs["nui-local"], "--config", site.config, "--check"],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        # settled elsewhere, or without nodes in the chapter's own example
        told = [line for line in done.stderr.splitlines() if "has no effect" in line
                and not re.search(r": (AMCFG\[qbank\]|SCHEDCFG\[maui\] PORT|SRCFG\[special\]):? ", line)]
        self.assertEqual(told, [])
        self.assertNotIn("does not have", done.stderr)
        site.start()
        run = lambda *args: self.ok(site, *args)  # noqa: E731
        run("schedctl", "-S", "--wait")
        rows = self.data(site, "showq")
        users = {s: sorted(j["job_id"].split(".")[1] for j in rows[s]) for s in ("active", "idle", "blocked")}
        self.assertEqual(users, {"active": ["1", "2", "3", "5", "7"], "idle": ["6"], "blocked": ["4"]},
                         "bob's MAXJOB is 3")
        # diagnostics
        self.assertIn("QOS", run("diagnose", "-p"))
        self.assertIn("john", run("diagnose", "-f"))
        self.assertIn("violates active SOFT MAXJOB limit of 3 for user bob", run("diagnose", "-q"))
        self.assertEqual(self.data(site, "checkjob", "5")["job"]["qos"], "hiprio", "john's default")
        self.assertIn("violates active HARD MAXJOB", run("checkjob", "4"))
        for kind in ("-j", "-n", "-u", "-g", "-a", "-c", "-Q"):
            run("diagnose", kind)
        run("showconfig")
        self.assertIn("requires 32 procs", run("showstart", "6"))
        run("showbf")
        run("showstate")
        # reservations, as in the text
        standing = {r["reservation_id"] for r in self.data(site, "showres")}
        run("setres", "-s", "14:30", "-d", "4:00:00", "node[AB]")
        run("setres", "-u", "john:sam", "-f", "fast", "-s", "17:00_04/14", "TASKS==20")
        user = [r for r in self.data(site, "showres") if r["reservation_id"] not in standing]
        self.assertEqual([r["type"] for r in user], ["User", "User"])
        run("diagnose", "-r")
        for r in user:
            run("releaseres", r["reservation_id"])
        self.assertEqual({r["reservation_id"] for r in self.data(site, "showres")}, standing)
        # adjustment of parameters, submission, cancellation at a stop
        run("changeparam", "USERCFG[bob]", "MAXJOB=4")
        run("canceljob", "5")
        self.ok(site, "schedctl", "-S", "--wait")
        self.assertIn("alpha.4", [j["job_id"] for j in self.data(site, "showq")["active"]])
        script = self.state / "script.sh"
        script.write_text("#!/bin/sh\nexit 0\n")
        script.chmod(0o755)
        mine = run("msub", "-l", "nodes=1:ppn=1,walltime=5:00", script).strip()
        self.assertEqual(mine, "alpha.8")
        for nodeset in ("ANYOF:PROCSPEED:450:500:650", "ONEOF:PROCSPEED"):
            other = run("msub", "--nodeset", nodeset, "-l", "nodes=1:ppn=1,walltime=5:00", script).strip()
            self.assertEqual(self.data(site, "checkjob", other)["job"]["state"], "Idle")
            run("canceljob", other)
        run("sethold", "-u", mine)
        run("setspri", "10", mine)
        run("releasehold", "-u", mine)
        run("schedctl", "-S", "--wait")
        self.assertIn(mine, [j["job_id"] for j in self.data(site, "showq")["active"]])
        # profiling, once everything has ended
        run("schedctl", "-r", "--wait")
        self.assertEqual(self.data(site, "schedctl")[0]["over"], True)
        for command in (("showstats",), ("showstats", "-u"), ("showgrid", "AVGXFACTOR"), ("profiler",)):
            self.assertTrue(run(*command).strip(), command)
        run("schedctl", "-k")
        wait_for("it to end", site.process.died, 30)

    def test_test_mode(self):
        """The same file beside a production scheduler: a port and a directory of its own."""
        nodes = "NODECFG[node[A,B]] PROCS=4\n".replace("[A,B]", "[1-2]")
        production = self.configured("production", "NORMAL", nodes)
        trial = self.configured("trial", "TEST", nodes)
        production.start()
        trial.start()
        self.assertEqual(self.data(production, "schedctl")[0]["mode"], "NORMAL")
        self.assertEqual(self.data(trial, "schedctl")[0]["mode"], "TEST")
        self.ok(trial, "diagnose", "-n")


if __name__ == "__main__":
    main()
