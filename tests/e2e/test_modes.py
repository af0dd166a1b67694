"""The modes decide alike: one series of submissions and ends under NORMAL, INTERACTIVE, TEST and
SIMULATION gives the same decisions, job for job and node for node. And what each does with them."""
import os
import re
import subprocess
import unittest

from fixture import main
from onesite import SiteCase, layout, wait_for

POLICY = """NODEALLOCATIONPOLICY FIRSTAVAILABLE
BACKFILLPOLICY FIRSTFIT
RESERVATIONDEPTH[0] 1
RMPOLLINTERVAL 00:00:30
JOBPRIOACCRUALPOLICY ALWAYS
NODECFG[n[1-8]] PROCS=1 MEM=1G
"""
# tasks, limit; what ends when these have been decided on; and again
STAGES = (
    ([(3, "3:00:00"), (2, "1:00:00"), (6, "2:00:00"), (2, "0:30:00"), (1, "9:00:00"), (1, "0:10:00")], [2]),
    ([(1, "0:20:00"), (4, "1:00:00"), (2, "0:15:00")], [1]),
    ([(1, "8:00:00")], [4]),
)


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Modes(SiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.account = layout.account_of("alice")
        cls.script = cls.state / "wait.sh"
        cls.script.write_text("#!/bin/sh\nexec sleep 600\n")
        cls.script.chmod(0o755)

    def made(self, name, mode, more=""):
        site = self.site(name)
        site.write(POLICY + f"SERVERMODE {mode}\nJOBDIR {self.state}/jobs-{name}\nCGROUPS FALSE\n" + more)
        return site

    def submit(self, site, jobs):
        for tasks, limit in jobs:
            self.ok(site, "msub", "--tasks", tasks, "-t", limit, self.script, account=self.account)

    def decisions(self, site, words):
        """[(job, nodes)] in the order of the log."""
        found = []
        for line in site.logged(*words):
            match = re.search(r"job[= ](alpha\.\d+) (?:nodes=|on node list )([\w,:]+)", line)
            if match:
                found.append((match[1], re.sub(r":\d+", "", match[2])))
        return found

    def end(self, site, numbers):
        for number in numbers:
            self.ok(site, "canceljob", number)
            wait_for(f"{number} to end", lambda n=number: self.data(site, "checkjob", n)["job"]
                     ["state"] == "Cancelled", 60, site.log)

    def simulated(self):
        """The decisions after each stage."""
        site = self.made("sim", "SIMULATION", "SIMSTOPITERATION 0\nSIMAUTOSHUTDOWN FALSE\n")
        site.start()
        seen = []
        for jobs, ends in STAGES:
            self.submit(site, jobs)
            self.ok(site, "schedctl", "-S", "--wait")
            seen.append(self.decisions(site, ("job_chosen",)))
            self.end(site, ends)
        self.ok(site, "schedctl", "-S", "--wait")
        seen.append(self.decisions(site, ("job_chosen",)))
        self.assertGreater(len(seen[-1]), len(seen[0]))
        return seen

    def stage(self, site, jobs, expected, words, answer=None):
        """While scheduling is stopped jobs come; then it goes on until so much has been decided."""
        self.submit(site, jobs)
        if site is self.followed:
            self.foresee(expected)
        self.ok(site, "schedctl", "-r")
        if answer:
            answer(len(expected))
        wait_for(f"{len(expected)} decisions", lambda: len(self.decisions(site, words)) >= len(expected),
                 60, site.log)
        for job, _ in expected:
            wait_for(f"{job} to have begun", lambda j=job: self.data(site, "checkjob", j)["job"]
                     ["state"] not in ("Idle", "Starting"), 60, site.log)
        self.ok(site, "schedctl", "-s")
        self.assertEqual(self.decisions(site, words), expected)

    def foresee(self, expected):
        """TEST beside the one that acts: what it would do now is what is done there next."""
        wait_for("the same queue", lambda: self.queue(self.trial) == self.queue(self.followed), 60, self.trial.log)
        before = len(self.decisions(self.trial, ("mode would",)))
        wanted = expected[len(self.decisions(self.followed, ("job_chosen",))):]
        self.ok(self.trial, "schedctl", "-r")
        wait_for(f"{len(wanted)} foreseen", lambda: len(self.decisions(self.trial, ("mode would",))) >=
                 before + len(wanted), 60, self.trial.log)
        self.ok(self.trial, "schedctl", "-s")
        self.assertEqual(self.decisions(self.trial, ("mode would",))[before:], wanted)

    def queue(self, site):
        rows = self.data(site, "showq")
        return {(j["job_id"], j["user"], j["state"], j["host"]) for s in ("active", "idle", "blocked")
                for j in rows[s]}

    def beside(self, production):
        trial = self.made("beside", "TEST", f"PRODUCTION {production.dir}\n")
        trial.config.write_text(trial.config.read_text().replace("RMPOLLINTERVAL 00:00:30", "RMPOLLINTERVAL 00:00:01"))
        trial.start()
        self.ok(trial, "schedctl", "-s")
        return trial

    followed = trial = None  # one that acts, and the TEST that looks on

    def acting(self, name, mode, seen, words, answer=None, followed=False, **options):
        site = self.made(name, mode)
        site.start(**options)
        self.ok(site, "schedctl", "-s")
        if followed:
            self.followed, self.trial = site, self.beside(site)
        for (jobs, ends), expected in zip(STAGES, seen):
            self.stage(site, jobs, expected, words, answer and (lambda n: answer(site, n)))
            self.end(site, ends)
        self.stage(site, [], seen[-1], words, answer and (lambda n: answer(site, n)))
        return site

    def test_all_decide_alike(self):
        seen = self.simulated()
        self.acting("normal", "NORMAL", seen, ("job_chosen",), followed=True)
        # TEST looked on over the whole log, and did nothing
        self.assertEqual(self.decisions(self.trial, ("mode would",)), seen[-1])
        self.assertEqual(self.trial.logged("job_chosen"), [])
        # INTERACTIVE: everything is accepted
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)

        def accept(site, total):
            def all_accepted():
                asked = site.words().count("Accept: (y/n)")
                while accept.given < asked:
                    os.write(writer, b"y\n")
                    accept.given += 1
                return len(site.logged("mode accepted")) >= total
            wait_for(f"{total} questions", all_accepted, 60, site.log)
        accept.given = 0
        # Process.start gives /dev/null; this one has a terminal of sorts
        site = self.made("inter", "INTERACTIVE")
        self.start_with(site, reader)
        self.ok(site, "schedctl", "-s")
        for (jobs, ends), expected in zip(STAGES, seen):
            self.stage(site, jobs, expected, ("job_chosen",), lambda n: accept(site, n))
            self.end(site, ends)
        self.stage(site, [], seen[-1], ("job_chosen",), lambda n: accept(site, n))
        self.assertEqual(self.decisions(site, ("mode accepted",)), seen[-1])
        self.assertIn(f"Command: start job {seen[0][0][0]} on node list {seen[0][0][1]}\n"
                      "Accept: (y/n) [default: n]? ", site.words())
        # TEST with jobs of its own: the same first decisions, and nothing comes of them
        test = self.made("test", "TEST")
        test.start()
        self.ok(test, "schedctl", "-s")
        self.submit(test, STAGES[0][0])
        self.ok(test, "schedctl", "-r")
        wait_for("what it would do", lambda: len(self.decisions(test, ("mode would",))) >=
                 len(seen[0]), 60, test.log)
        self.assertEqual(self.decisions(test, ("mode would",)), seen[0])
        status = self.ok(test, "schedctl").splitlines()[1:]
        self.assertEqual(status, [f"would start job {j} on node list {n}" for j, n in seen[0]])
        self.assertEqual((len(self.data(test, "showq")["active"]), test.logged("job_started")), (0, []))
        self.refused(test, "runjob", "-x", seen[0][0][0], code=1, says="mode TEST: nothing is started")
        self.assertFalse(any((self.state / "jobs-test").glob("alpha.*")))

    def test_beside_production(self):
        """TEST with PRODUCTION sees the production scheduler's queue and follows it, decides with its own
        policy, and does nothing there."""
        production = self.made("prod", "NORMAL")
        production.start()
        account = self.account
        long, wide = (self.ok(production, "msub", "--tasks", tasks, "-t", "1:00:00", self.script,
                              account=account).strip() for tasks in (5, 7))
        wait_for("it to run", lambda: self.data(production, "checkjob", long)["job"]["state"] == "Running", 60)
        held, small = (self.ok(production, "msub", "--tasks", 2, *more, self.script, account=account).strip()
                       for more in (("-t", "9:00:00", "-h"), ("-t", "2:00:00")))
        self.ok(production, "setres", "-s", "+5:00:00", "-d", "1:00:00", "TASKS==1")
        self.ok(production, "mnodectl", "-m", "state=drained", "n8")
        trial = self.made("trial", "TEST", f"PRODUCTION {production.dir}\nRMPOLLINTERVAL 00:00:01\n"
                                           "BACKFILLPOLICY NONE\n")
        trial.config.write_text(trial.config.read_text().replace("RMPOLLINTERVAL 00:00:30\n", "")
                                .replace("BACKFILLPOLICY FIRSTFIT\n", ""))
        trial.start()

        def queue(site):
            rows = self.data(site, "showq")
            return {(s, j["job_id"], j["user"], j["state"], j["host"]) for s in ("active", "idle", "blocked")
                    for j in rows[s]}
        wait_for("the same queue", lambda: queue(trial) == queue(production), 60, trial.log)
        self.assertEqual({s for s, *_ in queue(trial)}, {"active", "idle", "blocked"})
        self.assertEqual([r["reservation_id"] for r in self.data(trial, "showres") if r["type"] == "User"],
                         [r["reservation_id"] for r in self.data(production, "showres") if r["type"] == "User"])
        self.assertIn("n8 ", next(line for line in self.ok(trial, "diagnose", "-n").splitlines()
                                  if "Drained" in line))
        # what comes, changes and ends there; here the policy is another: nothing is backfilled
        late = self.ok(production, "msub", "--tasks", 1, "-t", "0:10:00", self.script, account=account).strip()
        self.ok(production, "releasehold", "-u", held)
        self.ok(production, "canceljob", wide)
        wait_for("the same queue again", lambda: {q[:3] for q in queue(trial)} ==
                 {q[:3] for q in queue(production)} and late in str(queue(trial)), 60, trial.log)
        self.ok(production, "canceljob", long)
        wait_for("it to be gone", lambda: long not in str(queue(trial)), 60, trial.log)
        for words in (("canceljob", small), ("mjobctl", "-R", small), ("mjobctl", "-s", small),
                      ("msub", "-t", "1:00", self.script)):
            self.refused(trial, *words, code=1, says="its jobs are those of the production scheduler")
        self.assertIn(small, str(queue(production)))
        self.assertFalse(any((self.state / "jobs-trial").glob("alpha.*")))
        production.stop()
        broken = self.made("broken", "TEST", "PRODUCTION /nonexistent\n")
        done = subprocess.run([broken.programs["nui-local"], "--config", broken.config], capture_output=True,
                              text=True, timeout=600)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("PRODUCTION: /nonexistent/local.db", done.stderr + broken.log.read_text())
        done = subprocess.run([broken.programs["nui-local"], "--config", broken.config, "--check", "--mode",
                               "NORMAL"], capture_output=True, text=True, timeout=600)
        self.assertEqual((done.returncode, "PRODUCTION is for mode TEST" in done.stderr), (1, True), done.stderr)

    def start_with(self, site, stdin):
        site.port_file.unlink(missing_ok=True)
        with open(site.process.log, "ab") as out:
            child = subprocess.Popen([site.programs["nui-local"], "--config", site.config], stdin=stdin,
                                     stdout=out, stderr=out, start_new_session=True)
        site.process.child = child
        from grid.base import process_birth
        site.process.pid_file.write_text(f"{child.pid} {process_birth(child.pid)}\n")
        wait_for("it to listen", lambda: site.port_file.exists() and site.port_file.read_text().strip(),
                 60, site.log)

    def test_interactive_declined(self):
        """n, nothing, or nobody: not done, and not asked again at once; a question that has lost its
        reason is withdrawn."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        site = self.made("asks", "INTERACTIVE")
        self.start_with(site, reader)
        self.submit(site, [(1, "1:00:00"), (1, "1:00:00"), (1, "1:00:00")])
        wait_for("a question", lambda: site.words().count("Accept:") == 1, 30, site.log)
        os.write(writer, b"n\n")
        wait_for("another", lambda: site.words().count("Accept:") == 2, 30, site.log)
        os.write(writer, b"\n")
        wait_for("a third", lambda: site.words().count("Accept:") == 3, 30, site.log)
        self.assertEqual(len(site.logged("mode declined")), 2)
        self.assertIn("asks to start job alpha.3", self.ok(site, "schedctl"))
        self.ok(site, "canceljob", "3")
        wait_for("it to be withdrawn", lambda: "no longer: start job alpha.3" in site.words(), 30)
        self.ok(site, "runjob", "2")  # an order is no question
        wait_for("it to run", lambda: self.data(site, "checkjob", "2")["job"]["state"] == "Running", 30)
        self.assertEqual(self.data(site, "checkjob", "1")["job"]["state"], "Idle")
        site.stop()
        nobody = self.made("nobody", "INTERACTIVE")
        nobody.start()
        self.submit(nobody, [(1, "1:00:00")])
        wait_for("it to notice", lambda: nobody.logged("nobody_answers") and nobody.logged("mode asks"),
                 30, nobody.log)
        self.assertEqual(self.data(nobody, "checkjob", "1")["job"]["state"], "Idle")


if __name__ == "__main__":
    main()
