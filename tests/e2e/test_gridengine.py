"""A real Grid Engine under a site, through its adapter (local/rm/adapters/gridengine): users keep qsub, qhold and qdel, nui decides;
kill -9, requeues, arrays, errors; grid jobs, co-allocation and what is paid; nui-local --from-gridengine."""
import contextlib
import io
import os
import re
import subprocess
import sys
import unittest

import watchdog
from fixture import ROOT, SAMPLES, GridCase, layout, main, wait_for
from onesite import SharedCase

from grid import gridengine as real
from grid import slurm
from grid.tour import Tour

LACKING = real.missing()
NODE = "localhost"
ADAPTER = "local/rm/adapters/gridengine/nui-gridengine"

GUARD = """
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
sys.stdin.read()  # until the test is gone
from grid.gridengine import GridEngine
GridEngine(sys.argv[2]).stop()
"""


def begin(case, place):
    """A Grid Engine that is stopped whatever happens."""
    rm = real.GridEngine(place)
    guard = subprocess.Popen([sys.executable, "-c", GUARD, str(ROOT / "deploy"), str(place)], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, start_new_session=True)
    watchdog.guarded(place, guard)

    def down():
        rm.stop()
        guard.stdin.close()
        guard.wait(60)
    case.addClassCleanup(down)
    rm.make()
    rm.start()
    return rm


def rmcfg(rm):
    return f'RMCFG[ge] TYPE=NATIVE ADAPTER={ROOT / ADAPTER} ENV="{rm.adapter_env()}" POLL=1 PATIENCE=30\n'


@unittest.skipIf(LACKING, f"Grid Engine's packages are not installed ({LACKING}): see deploy/packages")
@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs of other accounts")
class Site(SharedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rm = begin(cls, cls.state / "ge")
        cls.alpha = cls.site("alpha")
        cls.alpha.write("RMPOLLINTERVAL 1\n" + rmcfg(cls.rm))
        cls.alpha.start()
        wait_for("alpha to see Grid Engine", lambda: cls.alpha.logged("native reached"), 60, cls.alpha.log)

    def tearDown(self):
        if self.alpha.process.pid() is None:
            self.alpha.start()
        self.rm.start()
        self.rm.command("qdel", "-u", "*")
        wait_for("Grid Engine to be empty", lambda: not self.rm.ok("qstat", "-u", "*").strip(), 60)
        wait_for("alpha's queue to be empty", lambda: self.queued() == {}, 60, self.alpha.log)

    def qsub(self, *args, script="sleep 300", user=None):
        """As its users do."""
        said = self.rm.ok("qsub", "-wd", "/tmp", "-o", "/dev/null", "-e", "/dev/null", "-b", "y", *args, "/bin/sh", "-c", f"'{script}'",
                          user=user or self.account)
        return re.search(r"job(?:-array)? (\d+)", said)[1]

    def letters(self, job):
        """Its letters in qstat, a task's by job.task; None: it is not there."""
        number, _, task = str(job).partition(".")
        for line in self.rm.ok("qstat", "-u", "*").splitlines()[2:]:
            row = line.split()
            if row[0] == number and (not task or task in row[-1].split(",")):
                return row[4]
        return None

    def wait_state(self, job, *states):
        return wait_for(f"job {job} to be {states}", lambda: (lambda s: s if s in states else None)(self.letters(job)), 60, self.alpha.log)

    def queued(self):
        rows = self.data(self.alpha, "showq")
        return {r["job_id"]: {**r, "section": s} for s in ("active", "idle", "blocked") for r in rows[s]}

    def nui_id(self, job):
        def known():
            return next((i for i in self.queued()
                         if self.data(self.alpha, "checkjob", i)["job"]["rm_job_id"] == str(job)), None)
        return wait_for(f"alpha to know job {job}", known, 60, self.alpha.log)

    def wait_logged(self, *words):
        return wait_for(f"alpha to say {words}", lambda: self.alpha.logged(*map(str, words)), 60, self.alpha.log)

    def active(self, ident):
        wait_for(f"{ident} to be known to run", lambda: self.queued()[ident]["state"] == "Running", 60, self.alpha.log)


class Users(Site):
    def test_qsub(self):
        """Grid Engine starts nothing by itself; nui does, and knows the end and its code."""
        with self.alpha.process.halted():
            job = self.qsub("-pe", "mpi", 3, "-l", "h_rt=60", script="sleep 2; exit 3")
            self.rm.ok("qconf", "-tsm")  # its scheduler looks now
            self.assertEqual(self.letters(job), "qw")
        self.wait_logged("job_chosen", f"nodes={NODE}:3")
        self.wait_logged("job_ended", f"rm_job={job} ", "how=exited exit_code=3")
        self.assertEqual(self.alpha.logged("started_without_us"), [])

    def test_holds_of_either_side(self):
        job = self.qsub("-h")
        ident = self.nui_id(job)
        self.assertEqual(self.queued()[ident]["section"], "blocked")
        self.rm.ok("qrls", job, user=self.account)
        self.wait_state(job, "r", "hr")
        waits = self.qsub("-pe", "mpi", 8)
        other = self.nui_id(waits)
        self.ok(self.alpha, "sethold", other)
        self.wait_state(waits, "hqw")
        self.rm.ok("qdel", job, user=self.account)
        self.wait_logged("job_ended", f"rm_job={job} ", "how=cancelled")
        self.assertEqual(self.letters(waits), "hqw")
        self.ok(self.alpha, "releasehold", "-a", other)
        self.wait_state(waits, "r", "hr")

    def test_suspended_requeued_cancelled(self):
        """What is sent back waits for nui, and is the same job: Grid Engine takes it for submitted anew."""
        job = self.qsub("-r", "y")
        ident = self.nui_id(job)
        self.active(ident)
        self.ok(self.alpha, "mjobctl", "-s", ident)
        self.wait_state(job, "s", "hs")
        wait_for("nui to know", lambda: "uspended" in self.ok(self.alpha, "checkjob", ident), 60)
        self.ok(self.alpha, "mjobctl", "-r", ident)
        self.wait_state(job, "r", "hr")
        chosen = len(self.alpha.logged("job_chosen", f"job={ident} "))
        self.ok(self.alpha, "mjobctl", "-R", ident)
        self.wait_logged("job_ended", f"rm_job={job} ", "how=requeued")
        wait_for("it to be chosen again", lambda: len(self.alpha.logged("job_chosen", f"job={ident} ")) > chosen, 60)
        self.wait_state(job, "Rr", "hRr", "r", "hr")
        self.active(ident)
        self.ok(self.alpha, "canceljob", ident)
        self.wait_logged("job_ended", f"rm_job={job} ", "how=cancelled")
        self.assertEqual(self.alpha.logged("started_without_us", f"rm_job={job} "), [])

    def test_array(self):
        """Each task is a job of its own, and is started by nui."""
        job = self.qsub("-t", "1-3", script="sleep 1; exit $SGE_TASK_ID")
        for task in (1, 2, 3):
            self.wait_logged("job_ended", f"rm_job={job}.{task} ", f"exit_code={task}")
        self.assertEqual(self.alpha.logged("started_without_us"), [])

    def test_an_error_state(self):
        """Its node cannot begin it: told why, and not tried for ever."""
        job = self.rm.ok("qsub", "-terse", "-b", "y", "-wd", "/nonexistent", "/bin/true", user=self.account).strip()
        self.wait_logged("native not_started", f"rm_job={job} ", "/nonexistent")
        self.wait_state(job, "Eqw", "Ehqw")
        ident = self.nui_id(job)
        wait_for("it to be held", lambda: self.queued()[ident]["section"] == "blocked", 60)

    def test_a_queue_that_is_disabled(self):
        self.rm.ok("qmod", "-d", "batch")
        try:
            wait_for("the node to be drained", lambda: re.search(r"State: +Drained", self.ok(self.alpha, "checknode", NODE)), 60)
        finally:
            self.rm.ok("qmod", "-e", "batch")
        wait_for("it to be back", lambda: not re.search(r"State: +Drained", self.ok(self.alpha, "checknode", NODE)), 60)


class Ours(Site):
    def test_msub_and_its_output(self):
        path = self.shared / "said.sh"
        path.write_text("#!/bin/sh\nid -un; echo $1 $NUI_JOBID $(wc -l <$NUI_NODEFILE)\nexit 5\n")
        ident = self.ok(self.alpha, "msub", "-t", "60", "--tasks", 2, path, "word", account=self.account).strip()
        self.wait_logged("job_ended", f"job={ident} ", "exit_code=5")
        self.assertEqual((self.alpha.dir / "jobs" / ident / "work" / "stdout").read_text(), f"{self.account}\nword {ident} 2\n")

    def test_ends_while_nui_local_is_away(self):
        """After a kill -9: what ended meanwhile is found in the accounting file, what runs is known."""
        ends, goes_on = self.qsub(script="sleep 300"), self.qsub()
        for job in (ends, goes_on):
            self.active(self.nui_id(job))
        self.alpha.process.stop(9)
        self.rm.ok("qdel", ends)
        wait_for("it to be gone", lambda: self.letters(ends) is None, 60)
        new = self.qsub(script="exit 4")
        self.alpha.start()
        self.wait_logged("job_ended", f"rm_job={ends} ", "how=cancelled")
        self.wait_logged("job_ended", f"rm_job={new} ", "how=exited exit_code=4")
        self.assertIn(self.letters(goes_on), ("r", "hr"))
        self.assertEqual(self.alpha.logged("started_without_us", f"rm_job={goes_on} "), [])
        self.assertEqual(len(self.alpha.logged("job_ended", f"rm_job={ends} ")), 1)

    def test_qmaster_away(self):
        job = self.qsub()
        ident = self.nui_id(job)
        self.active(ident)
        self.rm.qmaster.stop()
        self.wait_logged("native unreachable", "stands; nothing is decided")
        self.assertIn(ident, self.queued())
        self.rm.start()
        reached = len(self.alpha.logged("native reached"))
        wait_for("it to be reached", lambda: len(self.alpha.logged("native reached")) >= max(2, reached), 60, self.alpha.log)
        self.assertIn(self.letters(job), ("r", "hr"))
        self.assertEqual(self.queued()[ident]["section"], "active")

    def test_first_configuration(self):
        """Good as it is printed; where there is no Grid Engine, one sentence."""
        program = self.programs["nui-local"]
        env = {**self.rm.environment(), "SGE_BIN": str(real.LIB)}
        done = subprocess.run([program, "--from-gridengine"], text=True, capture_output=True, env=env, check=False, timeout=600)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for line in ("SERVERMODE      TEST", "CLASSCFG[batch]", "#   pe_list mpi"):
            self.assertIn(line, done.stdout.splitlines())
        test = self.site("test", "nui")
        test.write(done.stdout)
        checked = subprocess.run([program, "--check", "--config", test.config], text=True, capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        lost = subprocess.run([program, "--from-gridengine"], text=True, capture_output=True, check=False, timeout=600,
                              env={**env, "SGE_ROOT": "/nonexistent"})
        self.assertEqual((lost.returncode, lost.stdout), (1, ""))
        self.assertRegex(lost.stderr, r"^nui-local: Grid Engine cannot be read: .*/nonexistent.*\n$")


@unittest.skipIf(LACKING, f"Grid Engine's packages are not installed ({LACKING}): see deploy/packages")
@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs of other accounts")
class InAGrid(GridCase):
    """Site alpha is under a Grid Engine, beta is not."""
    gridengine = ["alpha"]

    @classmethod
    def fund(cls):
        super().fund()
        cls.rm = cls.grid.gridengine["alpha"]

    def test_grid_job(self):
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", 60, SAMPLES / "hello.sh")
        self.wait_state(ident, ("Completed",))
        said = self.nui("alice", "output", ident).stdout
        self.assertIn("1 + 2 + ... + 20000 = 200010000", said)
        self.assertIn(f"at site alpha, 2 tasks, as {layout.account_of('alice')}", said)
        self.settled()
        self.assertEqual(len(self.charges(ident)), 1)
        self.assert_books_close()

    def test_coallocated(self):
        """Both parts at the same moment: one over Grid Engine, one over processes."""
        ident = self.grid.submit("alice", "-A", "phys", "-t", 60, "--component", "left:site=alpha,tasks=4",
                                 "--component", "right:site=beta,tasks=3", SAMPLES / "pair.py")
        self.wait_state(ident, ("Completed",), seconds=120)
        said = [self.nui("alice", "output", ident, part).stdout for part in ("left", "right")]
        self.assertEqual(len({re.search(r"joint result: (\d+)", text).group(1) for text in said}), 1)
        self.settled()
        self.assertEqual(len(self.charges(ident)), 2)
        self.assert_books_close()

    def test_qsub_is_paid(self):
        """Processors times seconds, as Grid Engine's own accounting has them."""
        self.settled()
        before = self.balance()["settled"]
        number = self.rm.ok("qsub", "-terse", "-A", "phys", "-pe", "mpi", 2, "-l", "h_rt=60", "-wd", "/tmp", "-o", "/dev/null", "-e", "/dev/null",
                            "-b", "y", "/bin/sleep", 2, user=layout.account_of("alice")).strip()
        wait_for("it to be paid", lambda: self.settled()["settled"] > before, 60, self.grid.daemons["alpha"].log)
        [line] = [w for w in (line.split(":") for line in (self.rm.common / "accounting").read_text().splitlines()) if w[5:6] == [number]]
        self.assertEqual(self.settled()["settled"] - before, 2 * (int(line[10]) - int(line[9])))
        self.assert_books_close()


@unittest.skipIf(LACKING, f"Grid Engine's packages are not installed ({LACKING}): see deploy/packages")
@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs of other accounts")
class WholeTour(GridCase):
    """As ./deploy/quickstart --slurm --gridengine has it: alpha is a Slurm (where that is installed), beta a Grid Engine, gamma processes."""
    slurm, gridengine, gate, store = {} if slurm.missing() else {"alpha": {}}, ["beta"], True, True

    @classmethod
    def fund(cls):
        """The tour does."""

    def test_tour(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            Tour(self.grid).run()
        self.assertIn("all 9 steps passed", said.getvalue())
        slots = [line.split(":")[34] for line in (self.grid.gridengine["beta"].common / "accounting").read_text().splitlines()
                 if not line.startswith("#")]
        self.assertIn("3", slots)  # the component `right` of the pair
        for manager in self.grid.slurm.values():
            self.assertIn("JobState=COMPLETED", manager.completions.read_text())


if __name__ == "__main__":
    main()
