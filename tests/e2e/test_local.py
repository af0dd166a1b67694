"""A site without a grid: msub on the cluster's own socket and with a certificate, no bank, no
metascheduler; what is refused; nothing acknowledged is lost by a kill -9."""
import json
import os
import re
import subprocess
import time
import unittest
import uuid
from pathlib import Path

import grpc

from fixture import main
from grid.forge import Contract
from onesite import SharedCase, SiteCase, layout, wait_for


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Alone(SharedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.alpha = cls.site()
        cls.alpha.write(f"JOBDIR {cls.state}/jobs\nPORTRANGE 20000-20099\nADMIN1 root\nSTAGEROOT {cls.shared}\n"
                        "NODECFG[alpha[01-04]] PROCS=2 MEM=2G FEATURES=fast\n"
                        f"USERCFG[{cls.account}] QLIST=hi:lo QDEF=lo\nQOSCFG[hi] PRIORITY=100 QFLAGS=PREEMPTOR\n"
                        "QOSCFG[lo] PRIORITY=1 QFLAGS=PREEMPTEE\nQOSWEIGHT 1\nPREEMPTPOLICY SUSPEND\nCLASSCFG[short] PRIORITY=5\n")
        cls.alpha.start()

    def script(self, name, text):
        path = self.shared / f"{name}.sh"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def msub(self, *args, account=None, **options):
        return self.ok(self.alpha, "msub", *args, account=account, **options).strip()

    def job(self, ident):
        return self.data(self.alpha, "checkjob", ident)["job"]

    def wait_job(self, ident, state):
        return wait_for(f"{ident} to be {state}", lambda: self.job(ident)["state"] == state, 60,
                        self.alpha.log)

    def gated(self, name, head=""):
        return self.script(name, f"#!/bin/sh\n{head}\necho ran as $(id -un) with $* on "
                           f"$(sort -u nodefile | wc -l) nodes\n"
                           f"until [ -e {self.shared}/{name}.gate ]; do sleep 0.05; done\n")

    def gate(self, name):
        (self.shared / f"{name}.gate").touch()

    # ---- what works

    def test_on_the_cluster(self):
        """No certificate: the socket says whose it is. Options as qsub's; it runs; nothing is charged."""
        ident = self.msub("-l", "nodes=2:ppn=2,walltime=0:10:00", "-q", "short", "-N", "mine",
                          "-v", "WORD=here", self.gated("local"), "one", "two", account=self.account)
        self.assertRegex(ident, r"^alpha\.\d+$")
        self.wait_job(ident, "Running")
        job = self.job(ident)
        self.assertEqual((job["user"], job["class"], job["qos"], job["procs"], job["walltime"]),
                         (self.account, "short", "lo", 4, "00:10:00"))
        self.gate("local")
        self.wait_job(ident, "Completed")
        out = Path(f"{self.state}/jobs/{ident}/work/stdout").read_text()
        self.assertEqual(out, f"ran as {self.account} with one two on 2 nodes\n")
        self.assertEqual(self.ok(self.alpha, "output", ident, account=self.account), out)
        self.assertEqual(self.ok(self.alpha, "output", "--stderr", ident), "")  # root may look
        self.refused(self.alpha, "output", ident, account=self.other, code=3, says="is not yours")
        self.assertTrue(self.alpha.logged("site_ready", "bank=none", "metas=0"))
        self.listed(ident)

    def listed(self, ident):
        """What ran is in the list of what ended: its owner's, and an administrator's, and nobody else's."""
        row, = [r for r in self.data(self.alpha, "showq", "-c", account=self.account) if r["job_id"] == ident]
        self.assertEqual([row[k] for k in ("name", "user", "state", "exit_code", "procs", "class", "walltime", "grid_job_id")],
                         ["mine", self.account, "Completed", 0, 4, "short", "00:10:00", None])
        self.assertLessEqual(row["submit_time"], row["start_time"])
        self.assertLessEqual(row["start_time"], row["end_time"])
        self.assertEqual([r for r in self.data(self.alpha, "showq", "-c") if r["job_id"] == ident], [row])
        self.assertRegex(self.ok(self.alpha, "showq", "-c", account=self.account), rf"(?m)^{ident} +mine +{self.account} +Completed +0 ")
        self.assertEqual([r for r in self.data(self.alpha, "showq", "-c", account=self.other) if r["user"] != self.other], [])
        self.refused(self.alpha, "showq", "-c", "-u", self.account, account=self.other, code=3, says="is for administrators")
        self.assertEqual(self.data(self.alpha, "showq", "-c", "--period", "yesterday", account=self.account), [])
        self.refused(self.alpha, "showq", "--period", "yesterday", code=2, says="-c")

    def test_directives(self):
        for name, head in (("pbs", "#PBS -l nodes=1:ppn=2,walltime=5:00 -q short"),
                           ("msubd", "#MSUB -l nodes=1:ppn=2,walltime=5:00 -q short"),
                           ("slurm", "#SBATCH -N 1 -n 2 --time=5 -p short"),
                           ("nuid", "#NUI -n 2 -N 1 -t 5:00 -p short")):
            ident = self.msub("-h", self.gated(name, head), account=self.account)
            job = self.job(ident)
            self.assertEqual((job["procs"], job["walltime"], job["class"], job["state"]),
                             (2, "00:05:00", "short", "Idle"), name)
            self.ok(self.alpha, "canceljob", ident, account=self.account)

    def test_held_until_released(self):
        ident = self.msub("-h", "-t", "5:00", self.gated("held"), account=self.account)
        self.assertEqual([j["job_id"] for j in self.data(self.alpha, "showq")["blocked"]], [ident])
        keepers = [f"{what}_kept_by" for what in ("memory", "processors", "cpu_time", "processes")]
        self.assertEqual({self.job(ident)[k] for k in keepers}, {None})
        self.assertEqual((self.job(ident)["directory"], self.job(ident)["output_max_mb"]), (None, 10240))  # told beforehand
        self.assertIn("OutputLimit:  10240M (stdout and stderr together)\n", self.ok(self.alpha, "checkjob", ident, account=self.account))
        self.ok(self.alpha, "releasehold", "-u", ident, account=self.account)
        self.wait_job(ident, "Running")
        said = dict(word.split("=", 1) for word in self.alpha.logged(" limits ")[-1].split() if "=" in word)  # at the start
        group = said["processors"] == "cgroup"
        kept = ["nothing", "cgroup" if group else "nothing", "cgroup" if group else "rlimit", said["processes"]]  # no memory asked
        self.assertEqual([self.job(ident)[k] for k in keepers], kept)
        self.assertIn("LimitsKeptBy:  memory: {}  processors: {}  processor time: {}  processes: {}\n".format(*kept),
                      self.ok(self.alpha, "checkjob", ident, account=self.account))
        where = self.job(ident)["directory"]
        self.assertIn(f"IWD: {where}  Executable:  {where}/script\n", self.ok(self.alpha, "checkjob", ident, account=self.account))
        self.assertTrue((Path(where) / "stdout").exists())
        self.gate("held")
        self.wait_job(ident, "Completed")

    def test_with_a_certificate(self):
        """From anywhere: signed; the gridmap says as whom it runs."""
        alice = self.alpha.person("user", "alice")
        ident = self.msub("-t", "5:00", "--json", self.gated("signed"), config=alice)
        ident = json.loads(ident)[0]["job_id"]
        self.wait_job(ident, "Running")
        self.assertEqual(self.job(ident)["user"], self.account)
        bob = self.alpha.person("user", "bob")
        self.refused(self.alpha, "canceljob", ident, config=bob, code=3, says="is not yours")
        self.ok(self.alpha, "canceljob", ident, config=alice)
        self.wait_job(ident, "Cancelled")

    def test_waits_and_arrays(self):
        """--depend and --array: in order, so many at one time, each with its index."""
        script = self.script("index", f"""#!/bin/sh
            until [ -e {self.shared}/index.gate ]; do sleep 0.05; done
            echo index $NUI_ARRAY_INDEX""")
        jobs = self.msub("-t", "5:00", "--array", "1-3%1", script, account=self.account).split()
        self.assertEqual(len(jobs), 3)
        after = self.msub("-t", "5:00", "--depend", "afterok:" + ":".join(jobs),
                          "--wrap", """echo "it's" '$NUI_JOBNAME' $((6 * 7))""", account=self.account)
        self.wait_job(jobs[0], "Running")
        wait_for(f"a pass that sees {after} blocked",
                 lambda: after in {j["job_id"] for j in self.data(self.alpha, "showq")["blocked"]},
                 60, self.alpha.log)
        self.gate("index")
        self.wait_job(after, "Completed")
        self.assertEqual(Path(f"{self.state}/jobs/{after}/work/stdout").read_text(), "it's $NUI_JOBNAME 42\n")
        for i, ident in enumerate(jobs):
            self.assertEqual(Path(f"{self.state}/jobs/{ident}/work/stdout").read_text(),
                             f"index {i + 1}\n")
        self.refused(self.alpha, "msub", "-t", "5:00", "--depend", "afterok:alpha.99999", script,
                     account=self.account, code=5, says="alpha.99999 is not known")

    def test_a_reservation_ends(self):
        """A pass at its end, long before the timer would call for one."""
        site = self.site("delta")
        site.write("ADMIN1 root\nNODECFG[n1] PROCS=1\nRMPOLLINTERVAL 1:00:00\n")
        site.start()
        self.ok(site, "setres", "-d", "00:00:04", "n1")
        script = self.script("after", "#!/bin/sh\nexit 0\n")
        ident = self.ok(site, "msub", "-t", "1:00", script, account=self.account).strip()
        self.assertEqual(self.data(site, "checkjob", ident)["job"]["state"], "Idle")
        wait_for(f"{ident} to have run", lambda: self.data(site, "checkjob", ident)["job"]["state"] == "Completed",
                 120, site.log)

    def test_files_there_and_away(self):
        """What cannot be written stays, and is taken once more when its owner or root asks for it."""
        there, source = self.shared / "there", self.shared / "source"
        there.mkdir()
        source.write_text("of the site\n")
        ident = self.msub("-l", "walltime=5:00", "--stage-in", f"file://{source}=in/x", "--stage-out",
                          f"in/y=file://{there}/y", self.script("files", "#!/bin/sh\nsed s/site/job/ in/x > in/y\n"),
                          account=self.account)
        self.wait_job(ident, "Completed")
        wait_for("a failure", lambda: "StageOut: in/y  Failed" in self.ok(self.alpha, "checkjob", ident), 60,
                 self.alpha.log)
        self.assertIn("kept until", self.ok(self.alpha, "checkjob", ident, account=self.account))
        self.refused(self.alpha, "restage", ident, account=self.other, code=3, says="is not yours")
        there.chmod(0o1777)
        for who in (None, self.account):
            self.assertEqual([(r["path"], r["state"]) for r in self.data(self.alpha, "restage", "-l", ident, account=who)],
                             [("in/y", "Failed")])
        self.ok(self.alpha, "restage", ident, account=self.account)
        wait_for("the file", (there / "y").exists, 60, self.alpha.log)
        self.assertEqual((there / "y").read_text(), "of the job\n")
        wait_for("nothing to be left", lambda: self.data(self.alpha, "checkjob", ident)["transfers"] == [], 60)
        self.refused(self.alpha, "restage", ident, code=1, says="no file of job")

    def test_suspended(self):
        """showq and checkjob tell of a job that was stopped for another."""
        low = self.msub("-t", "5:00", "--tasks", "8", self.gated("low"), account=self.account)
        self.wait_job(low, "Running")
        active = {j["job_id"]: j for j in self.data(self.alpha, "showq")["active"]}
        self.assertTrue(active[low]["preemptible"])
        high = self.msub("-t", "5:00", "--qos", "hi", self.gated("high"), account=self.account)
        self.wait_job(high, "Running")
        self.wait_job(low, "Suspended")
        active = {j["job_id"]: j for j in self.data(self.alpha, "showq")["active"]}
        self.assertFalse(active[high]["preemptible"])
        self.assertNotIn(low, [j["job_id"] for j in self.data(self.alpha, "showq")["blocked"]])
        self.gate("high")
        self.gate("low")
        self.wait_job(low, "Completed")

    def test_killed(self):
        """What msub printed is there after a kill -9, and a job that was being started runs."""
        held = self.msub("-h", "-t", "5:00", self.gated("killed1"), account=self.account)
        runs = self.msub("-t", "5:00", self.gated("killed2"), account=self.account)
        self.wait_job(runs, "Running")
        more = self.msub("-t", "5:00", self.gated("killed3"), account=self.account)
        self.alpha.process.kill()
        self.alpha.start()
        self.wait_job(runs, "Running")
        self.wait_job(more, "Running")
        self.assertEqual([j["job_id"] for j in self.data(self.alpha, "showq")["blocked"]], [held])
        for name in ("killed2", "killed3"):
            self.gate(name)
        self.wait_job(runs, "Completed")
        self.wait_job(more, "Completed")
        self.ok(self.alpha, "canceljob", held)

    # ---- what is refused

    def test_refused(self):
        script = self.gated("refused")
        empty = self.script("empty", "")
        for args, code, says in (
                (("-t", "5:00"), 2, "no script"),
                (("-t", "5:00", empty), 2, "is empty"),
                (("-t", "5:00", "--wrap", "true", script), 2, "--wrap makes the script"),
                (("-t", "5:00", "--wrap", ""), 2, "--wrap: wanted a command"),
                (("-t", "5:00", "/nonexistent.sh"), 5, "/nonexistent.sh"),
                (("-t", "soon", script), 2, "soon"),
                (("-l", "nodes", "-t", "5:00", script), 2, "is not name=value"),
                (("-t", "5:00", "--tasks", "100", script), 1, "100"),
                (("-t", "5:00", "--features", "slow", script), 1, "no node of this site has the feature slow"),
                (("-t", "5:00", "--deadline", "2001-01-01T00:00", script), 2, "in the past")):
            done = self.alpha.nui("msub", *args, account=self.account)
            self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
            self.assertIn(says, done.stderr, args)
            self.assertEqual((len(done.stderr.splitlines()), done.stdout), (1, ""), args)
        # root's jobs are nobody's to run
        self.refused(self.alpha, "msub", "-t", "5:00", script, code=3, says="root")
        # somebody with a certificate of this grid and no account here
        carol = self.alpha.person("user", "carol")
        self.refused(self.alpha, "msub", "-t", "5:00", script, config=carol, code=3,
                     says="has no account at site alpha")
        self.assertEqual(self.data(self.alpha, "showq")["hidden"], 0)

    def test_a_bank_wants_a_signature(self):
        beta = self.site("beta", "beta")
        beta.write(f"JOBDIR {self.state}/jobs-beta\nNODECFG[beta01] PROCS=1\nBANK 127.0.0.1:9\n")
        beta.start()
        self.refused(beta, "msub", "-t", "5:00", self.gated("paid"), account=self.account, code=3,
                     says="must be signed")
        self.refused(beta, "msub", "-t", "5:00", self.gated("paid"), config=beta.person("user", "alice"), code=3,
                     says="signed no bound of what it may cost: name the bank in nui.cfg (BANK)")
        ident = self.ok(beta, "msub", "-t", "5:00", "--max-cost", "none", self.gated("paid"),
                        config=beta.person("user", "alice")).strip()
        wait_for("it to wait for the bank", lambda: self.data(beta, "checkjob", ident)["job"]
                 ["state"] == "Starting", 30, beta.log)
        self.ok(beta, "canceljob", ident)

    # ---- in a simulation

    def test_submit_while_simulating(self):
        """At a stop: it is in the queue as of that moment, starts in the next step, and ends by the
        simulation's clock."""
        sim = self.site("sim", "alpha")
        sim.write("SERVERMODE SIMULATION\nSIMSTOPITERATION 1\nSIMAUTOSHUTDOWN FALSE\nSIMWCACCURACY 50\n"
                  "NODECFG[n[1-2]] PROCS=2\n")
        sim.start()
        self.ok(sim, "schedctl", "--wait")
        begin = self.data(sim, "schedctl")[0]["time"]
        ident = self.ok(sim, "msub", "-t", "10:00", "--tasks", "4", self.gated("sim"),
                        account=self.account).strip()
        job = self.data(sim, "checkjob", ident)["job"]
        self.assertEqual((job["state"], job["submit_time"]), ("Idle", begin))
        self.ok(sim, "schedctl", "-S", "--wait")
        self.assertEqual(self.data(sim, "checkjob", ident)["job"]["state"], "Running")
        self.ok(sim, "schedctl", "-S", "10", "--wait")
        self.assertEqual(self.data(sim, "checkjob", ident)["job"]["state"], "Completed")
        self.assertFalse((self.shared / "sim.began").exists())
        # the same request again, as after a lost reply: the same job
        contract = Contract(self.state)
        from proto.nui.v1 import admin_pb2
        now = int(time.time() * 10**6)
        job = contract.common.Job(grid=layout.GRID, uuid=uuid.uuid4().bytes, created_us=now, expires_us=now + 3600 * 10**6, components=[
            contract.common.Component(name="main", script=b"#!/bin/sh\n", walltime_us=60 * 10**6,
                                      reqs=[contract.common.Req(tasks=1)])])
        request = admin_pb2.SubmitJobRequest(
            envelope=contract.common.Envelope(body=job.SerializeToString()))
        with grpc.insecure_channel(f"unix:{sim.socket}") as channel:
            submit = channel.unary_unary("/nui.local.v1.Admin/SubmitJob",
                                         request_serializer=lambda m: m.SerializeToString(),
                                         response_deserializer=admin_pb2.SubmitJobReply.FromString)
            ids = {submit(request, timeout=600).job_id for _ in range(3)}
        self.assertEqual(len(ids), 1)
        self.assertEqual([j["job_id"] for j in self.data(sim, "showq")["idle"]], list(ids))


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class ByItself(SiteCase):
    """One cluster, no grid: a maui.cfg with two lines more; no authority, no certificate, no port."""
    POLICY = ("SERVERHOST head\nADMIN1 root\nSERVERMODE NORMAL\nRMPOLLINTERVAL 00:00:10\nDEFERTIME 0\n"
              "QUEUETIMEWEIGHT 1\nBACKFILLPOLICY FIRSTFIT\nNODECFG[n[01-02]] PROCS=2\nCLASSCFG[short] PRIORITY=5\n")

    def test_runs(self):
        site = self.site("mine", "local")
        site.write_alone(self.POLICY + f"JOBDIR {self.state}/jobs\n")
        account, other = layout.account_of("alice"), layout.account_of("bob")
        checked = subprocess.run([site.programs["nui-local"], "--config", site.config, "--check"], capture_output=True,
                                 text=True, timeout=600)
        self.assertEqual((checked.returncode, checked.stdout.strip()), (0, f"nui-local: {site.config} is good"), checked.stderr)
        site.start()
        self.assertTrue(site.logged(" ready ", "self=nui://local/site/local", "port=0"))
        script = self.state / "job.sh"
        script.write_text("#!/bin/sh\necho ran as $(id -un)\n")
        script.chmod(0o755)
        ident = self.ok(site, "msub", "-l", "nodes=1,walltime=0:10:00", "-q", "short", script, account=account).strip()
        self.assertRegex(ident, r"^local\.\d+$")
        self.ok(site, "showq", account=other)
        wait_for("its end", lambda: self.data(site, "checkjob", ident)["job"]["state"] == "Completed", 60, site.log)
        self.assertEqual(Path(f"{self.state}/jobs/{ident}/work/stdout").read_text(), f"ran as {account}\n")
        self.refused(site, "changeparam", "RMPOLLINTERVAL", "30", code=3, says="for administrators", account=other)
        # the file read again, and the daemon begun again: the same site, the same jobs
        site.config.write_text(site.config.read_text() + "RESERVATIONDEPTH 3\n")
        site.process.send(1)
        wait_for("the reload", lambda: site.logged("configuration_taken"), 60, site.log)
        site.stop()
        site.log.rename(site.log.with_suffix(".first"))
        site.start()
        self.assertEqual(self.data(site, "checkjob", ident)["job"]["state"], "Completed")

    def test_others_need_certificates(self):
        """Whoever speaks with others says who he is: BANK, META, LISTEN make CA and its kin necessary again."""
        site = self.site("more", "local")
        for line, says in (("BANK h:1", "BANK needs CA, CRL, CERT, KEY and GRID"),
                           ("META h:1\nGRIDMAP /dev/null\nBANK h:1", "BANK needs CA"),
                           ("LISTEN 127.0.0.1:1", "CA is missing"), ("KEY k.pem", "CERT is missing")):
            site.write_alone(self.POLICY + line + "\n")
            for options in (["--check"], []):
                done = subprocess.run([site.programs["nui-local"], "--config", site.config, *options], capture_output=True,
                                      text=True, timeout=600)
                self.assertEqual(done.returncode, 1, line)
                self.assertIn(says, done.stderr, line)


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Exceeds(SiteCase):
    """RESOURCELIMITPOLICY: jobs that use more than they asked for. HUNGRY takes 90 MB in three processes, so that no limit of
    one process is met; BUSY has sixteen that are
    always ready: more than one processor, whoever else wants some."""
    HUNGRY = ("#!/bin/sh\nfor i in 1 2 3; do\n%s -c 'import os, time\nx = b\"x\" * (25 << 20)\n"
              "while not os.path.exists(\"%s\"): time.sleep(0.05)' &\ndone\nwait\n")
    BUSY = "#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6; do (until [ -e %s ]; do :; done) & done\nwait\n"

    def limited(self, name, policy, text, *args, more=""):
        """A site with this policy, and a job of 50 MB on it that is at work."""
        site = self.site(name, name)
        site.write_alone(f"SITENAME {name}\nADMIN1 root\nRMPOLLINTERVAL 00:00:01\nCGROUPS FALSE\nJOBDIR {self.state}/{name}-jobs\n"
                         f"NODECFG[n1] PROCS=2 MEM=2G\nRESOURCELIMITPOLICY {policy}\n{more}")
        site.start()
        script = self.state / f"{name}.sh"
        script.write_text(text)
        script.chmod(0o755)
        return site, self.ok(site, "msub", "-l", "nodes=1,pmem=50mb,walltime=1:00:00", *args, script,
                             account=layout.account_of("alice")).strip()

    def job(self, site, ident):
        return self.data(site, "checkjob", ident)["job"]

    def exceeds(self, site, what):
        return wait_for("the job to exceed", lambda: site.logged("job_exceeds", what), 60, site.log)

    def hungry(self, name):
        return self.HUNGRY % ("/usr/bin/python3", self.state / f"{name}.gate")

    def test_cancel(self):
        site, ident = self.limited("cancel", "MEM:ALWAYS:CANCEL", self.hungry("cancel"))
        wait_for("its end", lambda: self.job(site, ident)["state"] == "Cancelled", 60, site.log)
        self.exceeds(site, "ended by RESOURCELIMITPOLICY: it uses ")
        self.assertIn("50 MB were asked for", json.dumps(self.job(site, ident)))

    def test_requeue(self):
        """And as long as it does the same again, again."""
        site, ident = self.limited("requeue", "MEM:EXTENDEDVIOLATION:REQUEUE:00:00:02", self.hungry("requeue"))
        wait_for("two runs to be taken back", lambda: len(self.exceeds(site, "sent back to the queue")) >= 2, 60, site.log)
        (self.state / "requeue.gate").touch()
        wait_for("its end", lambda: self.job(site, ident)["state"] == "Completed", 60, site.log)

    def test_suspend(self):
        site, ident = self.limited("suspend", "PROC:EXTENDEDVIOLATION:SUSPEND:1", self.BUSY % (self.state / "suspend.gate"))
        self.exceeds(site, "suspended by RESOURCELIMITPOLICY: it uses ")
        wait_for("it to stand", lambda: site.logged("job_suspended", ident), 60, site.log)
        (self.state / "suspend.gate").touch()
        wait_for("its end", lambda: self.job(site, ident)["state"] == "Completed", 60, site.log)

    def test_notify(self):
        """Once; the job goes on, above its memory."""
        told = self.state / "told"
        told.touch(mode=0o666)
        told.chmod(0o666)
        program = self.state / "tell.sh"
        program.write_text(f"#!/bin/sh\necho \"$*\" >> {told}\ncat >> {told}\n")
        program.chmod(0o755)
        site, ident = self.limited("notify", "MEM:ALWAYS:NOTIFY PROC:ALWAYS:CANCEL", self.hungry("notify"),
                                   more=f"NOTIFICATIONPROGRAM {program}\nNOTIFICATIONEVENTS JOBLIMIT\n")
        wait_for("the administrator to be told", lambda: "JobLimit" in told.read_text(), 60, site.log)
        wait_for("three polls more", lambda: len(site.logged("job_exceeds")) == 1 and self.job(site, ident)["state"] == "Running",
                 60, site.log)
        (self.state / "notify.gate").touch()
        wait_for("its end", lambda: self.job(site, ident)["state"] == "Completed", 60, site.log)
        self.assertEqual(len(site.logged("job_exceeds")), 1)

    def test_feedback(self):
        """FEEDBACKPROGRAM: each job that ran, once, with Maui's sixteen arguments; what fails is not repeated, a job that waits
        for the daemon to be there again is told then, and one that never ran is not."""
        told, program = self.state / "feedback.heard", self.state / "fb"
        told.touch()
        told.chmod(0o666)
        program.write_text(f"#!/bin/sh\necho \"$#|$*|$(id -un)\" >> {told}\nexit 3\n")
        program.chmod(0o755)
        site, first = self.limited("feedback", "MEM:ALWAYS:NOTIFY", "#!/bin/sh\nexit 0\n", more=f"FEEDBACKPROGRAM {program}\n")
        lines = lambda: told.read_text().splitlines()
        wait_for("the first to be told", lambda: len(lines()) == 1 and site.logged("feedback", "program_failed"), 60, site.log)
        user = layout.account_of("alice")
        self.assertRegex(lines()[0], rf"^16\|{first} {user} NONE Completed DEFAULT \d{{10}} \d{{10}} \d{{10}} 1\.\d\d 3600 1 50 \d+\.\d\d "
                                     r"0 0 0\|nobody$")
        held = self.ok(site, "msub", "-h", "-l", "nodes=1,walltime=60", self.state / "feedback.sh", account=user).strip()
        self.ok(site, "canceljob", held, account=user)
        gate = self.state / "feedback.gate"
        script = self.state / "gated.sh"
        script.write_text(f"#!/bin/sh\nwhile [ ! -e {gate} ]; do sleep .1; done\n")
        script.chmod(0o755)
        second = self.ok(site, "msub", "-l", "nodes=1,walltime=60", script, account=user).strip()
        wait_for("the second to run", lambda: self.job(site, second)["state"] == "Running", 60, site.log)
        site.process.kill()
        gate.touch()
        site.start()
        wait_for("the second to be told", lambda: len(lines()) >= 2, 60, site.log)
        self.assertEqual([line.split("|")[1].split()[0] for line in lines()], [first, second])

    def test_within(self):
        """What it asked for it may use."""
        site, ident = self.limited("within", "MEM:ALWAYS:CANCEL PROC:ALWAYS:CANCEL", self.hungry("within"), "-l", "pmem=500mb")
        def measured():
            found = re.search(r"Utilized.*MEM: (\d+)M", self.ok(site, "checknode", "n1"))
            return found and int(found.group(1)) > 70
        wait_for("it to be measured", measured, 60, site.log)
        (self.state / "within.gate").touch()
        wait_for("its end", lambda: self.job(site, ident)["state"] == "Completed", 60, site.log)
        self.assertEqual(site.logged("job_exceeds"), [])


if __name__ == "__main__":
    main()
