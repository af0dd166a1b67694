"""What administrators change: changeparam, setqos, mjobctl -m -R -s -r, mnodectl; who may, what is
refused, what is written down, and what holds over a restart."""
import os
import sqlite3
import unittest
from contextlib import closing

from fixture import main
from onesite import SiteCase, layout, wait_for

CONFIG = """JOBDIR {state}/jobs
PORTRANGE 20100-20199
ADMIN2 {helper}
NODECFG[n[01-04]] PROCS=2 MEM=1G FEATURES=fast
NODEALLOCATIONPOLICY FIRSTAVAILABLE
USERCFG[{user}] QLIST=hi:lo QDEF=lo
QOSCFG[hi] PRIORITY=100
QOSCFG[lo] PRIORITY=1
QOSCFG[secret] PRIORITY=1000
CREDWEIGHT 1
QOSWEIGHT 1
"""


@unittest.skipIf(os.geteuid() != 0, "needs to be root: other accounts use the socket")
class Control(SiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.user = layout.account_of("alice")
        cls.other = layout.account_of("bob")
        cls.helper = "daemon"
        cls.alpha = cls.site()
        cls.alpha.write(CONFIG.format(state=cls.state, user=cls.user, helper=cls.helper))
        cls.alpha.start()
        cls.script = cls.state / "wait.sh"
        cls.script.write_text("#!/bin/sh\nexec sleep 600\n")
        cls.script.chmod(0o755)

    def tearDown(self):
        self.clear(self.alpha)

    def submit(self, *options):
        return self.ok(self.alpha, "msub", "-t", "1:00:00", *options, self.script,
                       account=self.user).strip()

    def job(self, ident):
        return self.data(self.alpha, "checkjob", ident)["job"]

    def wait_state(self, ident, state):
        wait_for(f"{ident} to be {state}", lambda: self.job(ident)["state"] == state, 60, self.alpha.log)

    def audit(self):
        with closing(sqlite3.connect(f"file:{self.alpha.dir}/local.db?mode=ro", uri=True)) as db:
            return db.execute("SELECT who, what, at_us FROM audit ORDER BY sequence").fetchall()

    def restart(self):
        self.alpha.process.kill()
        self.alpha.start()

    def parameter(self, name):
        return next((r["value"] for r in self.data(self.alpha, "showconfig")
                     if r["parameter"] == name), None)

    # ---- setqos, mjobctl -m

    def test_modify_jobs(self):
        job = self.submit("-h")
        self.assertEqual(self.job(job)["qos"], "lo")
        self.assertEqual(self.ok(self.alpha, "setqos", "hi", job, account=self.user),
                         "\njob QOS adjusted\n")
        self.assertEqual(self.job(job)["qos"], "hi")
        self.refused(self.alpha, "setqos", "secret", job, code=3,
                     says=f"job {job} does not have access to QOS secret (QOSList: DEFAULT:hi:lo)"
                     if False else "does not have access to QOS secret (QOSList: ")
        self.refused(self.alpha, "setqos", "none", job, code=3, says="access to QOS none")
        self.refused(self.alpha, "setqos", "lo", job, account=self.other, code=3, says="is not yours")
        self.refused(self.alpha, "setqos", "hi", code=2, says="name a QoS and at least one job")
        self.refused(self.alpha, "setqos", "hi", "99999", code=5, says="is not known")
        self.ok(self.alpha, "mjobctl", "-m", "wclimit=0:30:00", job, account=self.user)
        self.assertEqual(self.job(job)["walltime"], "00:30:00")
        self.refused(self.alpha, "mjobctl", "-m", "wclimit=2:00:00", job, account=self.user, code=3,
                     says="a longer limit is for administrators (ADMIN2)")
        self.ok(self.alpha, "mjobctl", "-m", "wclimit=2:00:00", job, account=self.helper)
        rows = self.data(self.alpha, "mjobctl", "-m", "class=night", job)
        self.assertEqual(rows, [{"name": job, "attribute": "class", "value": "night", "done": True}])
        self.ok(self.alpha, "mjobctl", "-m", "account=phys", job)
        for value, code, says in (("wclimit=soon", 1, "soon"), ("wclimit=0", 1, "no limit"),
                                  ("colour=red", 1, "'colour' of a job cannot be changed"),
                                  ("qs=hi", 1, "did you mean qos?"), ("class=a b", 1, "a b")):
            self.refused(self.alpha, "mjobctl", "-m", value, job, code=code, says=says)
        self.refused(self.alpha, "mjobctl", "-m", "qos", job, code=2, says="ATTRIBUTE=VALUE")
        before = self.job(job)
        self.restart()
        after = self.job(job)
        for key in ("qos", "class", "account", "walltime"):
            self.assertEqual(after[key], before[key], key)
        self.assertEqual((after["qos"], after["class"], after["account"], after["walltime"]),
                         ("hi", "night", "phys", "2:00:00"))
        said = [(who, what) for who, what, _ in self.audit()]
        self.assertIn((self.user, f"mjobctl -m qos=hi {job}"), said)
        self.assertIn((self.helper, f"mjobctl -m wclimit=2:00:00 {job}"), said)
        self.assertNotIn(f"mjobctl -m qos=secret {job}", [what for _, what in said])
        self.ok(self.alpha, "releasehold", "-a", job)
        self.wait_state(job, "Running")
        self.refused(self.alpha, "setqos", "lo", job, code=1, says="does not wait any more")

    def test_start_time(self):
        job = self.submit("-h")
        self.ok(self.alpha, "mjobctl", "-m", "starttime=+1:00:00", job)
        self.ok(self.alpha, "releasehold", "-a", job)
        wait_for("it to be blocked by its date", lambda: any(
            "asked to start later" in (j["reason"] or "")
            for j in self.data(self.alpha, "showq")["blocked"] if j["job_id"] == job), 30)
        self.ok(self.alpha, "mjobctl", "-m", "starttime=0", job)
        self.wait_state(job, "Running")

    # ---- jobs that the queue has forgotten

    def test_purged(self):
        """checkjob of a job that is purged: what the history knows; whose it is counts as before."""
        site = self.site("purge")
        site.write(CONFIG.format(state=self.state, user=self.user, helper=self.helper).replace(
            "/jobs", "/jobs-purge").replace("20100-20199", "20200-20299")
            + "RMPOLLINTERVAL 00:00:01\nJOBPURGETIME 00:00:01\n")
        site.start()
        script = self.state / "short.sh"
        script.write_text("#!/bin/sh\nexit 3\n")
        script.chmod(0o755)
        job = self.ok(site, "msub", "-t", "5:00", "--tasks", 4, "--tpn", 2, "--features", "fast", script,
                      account=self.user).strip()
        wait_for("its end", lambda: self.data(site, "checkjob", job)["job"]["state"] == "Failed", 60, site.log)
        before = self.data(site, "checkjob", job)
        wait_for("it to be purged", lambda: site.logged("jobs_purged"), 60, site.log)
        with closing(sqlite3.connect(f"file:{site.dir}/local.db?mode=ro", uri=True)) as db:
            self.assertEqual(db.execute("SELECT count(*) FROM job").fetchone(), (0,))
        after = self.data(site, "checkjob", job.split(".")[1], account=self.user)
        for key in ("job_id", "user", "group", "qos", "procs", "walltime", "submit_time", "start_time", "end_time",
                    "exit_code", "state"):
            self.assertEqual(after["job"][key], before["job"][key], key)
        self.assertEqual([n["node"] for n in after["allocated"]], ["n01", "n02"])
        self.assertIn("Features: [fast]", self.ok(site, "checkjob", job))
        self.refused(site, "checkjob", job, account=self.other, code=3, says="is not yours")
        self.refused(site, "canceljob", job, code=1, says="has ended already")
        self.refused(site, "sethold", job, code=1, says="has ended")
        self.refused(site, "checkjob", "9999", code=5, says="is not known")

    # ---- schedctl

    def test_who_steers_the_scheduler(self):
        """Administrators; the helper (ADMIN2) and a user change nothing, whatever the act."""
        before = self.audit()
        for act in (["-s"], ["-r"], ["-S", "1"], ["-k"], ["-R"]):
            for who in (self.user, self.helper):
                with self.subTest(act=act, who=who):
                    self.refused(self.alpha, "schedctl", *act, account=who, code=3, says="steering the scheduler is for")
        self.refused(self.alpha, "schedctl", account=self.user, code=3, says="the scheduler's state is for")
        self.assertFalse(self.data(self.alpha, "schedctl")[0]["stopped"])
        self.assertEqual(self.audit(), before)

    # ---- schedctl -r TIME

    def test_resumed_at_a_moment(self):
        self.refused(self.alpha, "schedctl", "-r", "+1:00:00", code=1, says="there is nothing to resume")
        self.ok(self.alpha, "schedctl", "-s")
        job = self.submit()
        done = self.ok(self.alpha, "schedctl", "-r", "+0:02")
        self.assertIn("scheduling will resume in 00:00:0", done)
        self.assertTrue(self.data(self.alpha, "schedctl")[0]["resume_time"])
        self.wait_state(job, "Running")
        self.assertFalse(self.data(self.alpha, "schedctl")[0]["stopped"])
        self.assertTrue(any("schedctl resume 20" in what for _, what, _ in self.audit()))

    # ---- mjobctl -R -s -r

    def test_requeue(self):
        job = self.submit()
        self.wait_state(job, "Running")
        self.refused(self.alpha, "mjobctl", "-R", job, account=self.user, code=3, says="is for administrators")
        self.ok(self.alpha, "schedctl", "-s")
        self.assertEqual(self.ok(self.alpha, "mjobctl", "-R", job, account=self.helper),
                         "\njobs requeued\n")
        self.wait_state(job, "Idle")
        self.refused(self.alpha, "mjobctl", "-R", job, code=1, says="does not run")
        self.ok(self.alpha, "schedctl", "-r")
        self.wait_state(job, "Running")

    def test_suspend(self):
        job = self.submit("--tasks", "8")
        self.wait_state(job, "Running")
        self.refused(self.alpha, "mjobctl", "-r", job, code=1, says="is not suspended")
        self.ok(self.alpha, "mjobctl", "-s", job)
        self.assertTrue(wait_for("it to be suspended", lambda: self.alpha.logged("job_suspended", job), 30))
        self.refused(self.alpha, "mjobctl", "-s", job, code=1, says="is suspended already")
        others = [self.submit("--tasks", "2") for _ in range(2)]  # its processors are free meanwhile
        for other in others:
            self.wait_state(other, "Running")
        self.restart()
        self.refused(self.alpha, "mjobctl", "-s", job, code=1, says="is suspended already")
        self.assertFalse(self.alpha.logged("job_resumed", job))
        self.ok(self.alpha, "canceljob", *others)
        self.ok(self.alpha, "mjobctl", "-r", job)
        wait_for("it to go on", lambda: self.alpha.logged("job_resumed", job), 60, self.alpha.log)
        self.refused(self.alpha, "mjobctl", "-s", "-r", job, code=2, says="say one of")

    # ---- mnodectl

    def test_nodes(self):
        self.assertEqual(self.ok(self.alpha, "mnodectl", "-m", "state=drained", "n01", "n02"),
                         "node n01: state set to 'drained'\nnode n02: state set to 'drained'\n")
        job = self.submit("--tasks", "1")
        self.wait_state(job, "Running")
        states = {n["node"]: n["state"] for n in self.data(self.alpha, "diagnose", "-n")}
        self.assertEqual((states["n01"], states["n02"], states["n03"]), ("Drained", "Drained", "Running"))
        self.ok(self.alpha, "mnodectl", "-m", "features=+big,-fast", "n04")
        self.restart()
        states = {n["node"]: n["state"] for n in self.data(self.alpha, "diagnose", "-n")}
        self.assertEqual(states["n01"], "Drained")
        self.assertIn("[big]", self.ok(self.alpha, "schedctl", "-n").splitlines()[3])
        self.refused(self.alpha, "msub", "-t", "1:00", "--features", "big,fast", self.script,
                     account=self.user, code=1, says="")
        big = self.submit("--features", "big")
        self.wait_state(big, "Running")
        self.ok(self.alpha, "mnodectl", "-m", "state=up", "n01", "n02")
        self.ok(self.alpha, "mnodectl", "-m", "features=", "n04")
        self.assertIn("[fast]", self.ok(self.alpha, "schedctl", "-n").splitlines()[3])
        states = {n["node"]: n["state"] for n in self.data(self.alpha, "diagnose", "-n")}
        self.assertEqual(states["n01"], "Idle")
        for args, code, says in ((("-m", "state=broken", "n01"), 1, "wanted drained, down or up"),
                                 (("-m", "state=up", "n99"), 5, "node n99 is not known"),
                                 (("-m", "stat=up", "n01"), 1, "did you mean state?"),
                                 (("-m", "speed=0", "n01"), 1, "from 0.001"),
                                 (("-m", "features=a b", "n01"), 1, "a b"),
                                 (("n01",), 2, "-m ATTRIBUTE=VALUE"),
                                 (("-m", "state=up"), 2, "at least one node")):
            self.refused(self.alpha, "mnodectl", *args, code=code, says=says)
        self.refused(self.alpha, "mnodectl", "-m", "state=up", "n01", account=self.helper, code=3,
                     says=f"changing nodes is for ADMIN1, {self.helper} is ADMIN2")
        self.assertIn("mnodectl -m state=drained n01", [what for _, what, _ in self.audit()])

    # ---- changeparam

    def test_changeparam(self):
        self.assertEqual(self.ok(self.alpha, "changeparam", "RESERVATIONDEPTH[0]", "4"),
                         "\n\nparameters modified\n\n")
        self.assertEqual(self.parameter("RESERVATIONDEPTH[0]"), "4")
        self.ok(self.alpha, "changeparam", f"USERCFG[{self.user}]", "MAXJOB=1")
        one, two = self.submit(), self.submit()
        self.wait_state(one, "Running")
        wait_for("the second to be blocked", lambda: self.data(self.alpha, "showq")["blocked"], 30)
        self.assertEqual(self.parameter("RESERVATIONDEPTH[0]"), "4", "the first change holds")
        self.ok(self.alpha, "changeparam", f"USERCFG[{self.user}]", "MAXJOB=-1")
        self.wait_state(two, "Running")
        for args, code, says in ((("RESERVATIONDEPHT[0]", "2"), 1, "did you mean RESERVATIONDEPTH?"),
                                 (("BACKFILLPOLICY", "SOMETIMES"), 1, "changed by hand: BACKFILLPOLICY"),
                                 (("GRID", "other"), 1, "restart"),
                                 (("SERVERMODE", "TEST"), 1, "with a restart only"),
                                 (("QUEUETIMEWEIGHT",), 2, "name a parameter and its value")):
            self.refused(self.alpha, "changeparam", *args, code=code, says=says)
        self.refused(self.alpha, "changeparam", "QUEUETIMEWEIGHT", "5", account=self.helper, code=3,
                     says=f"changing a parameter is for ADMIN1, {self.helper} is ADMIN2")
        self.assertEqual(self.parameter("RESERVATIONDEPTH[0]"), "4", "refusals change nothing")
        self.assertIn("changeparam RESERVATIONDEPTH[0] 4", [what for _, what, _ in self.audit()])
        self.restart()
        self.assertEqual(self.parameter("RESERVATIONDEPTH[0]"), "1", "the file says so")


if __name__ == "__main__":
    main()
