"""RMCFG TYPE=NATIVE over a small resource manager with real processes (smallrm.py): a job's whole life by its users and by ours,
kill -9 in the middle, programs that hang or lie; grid jobs, co-allocation and what is paid."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from fixture import SAMPLES, GridCase, layout, main, wait_for
from onesite import SharedCase

SMALL = Path(__file__).with_name("smallrm.py")


class Small:
    """A smallrm in a directory of its own, with the nodes n1 and n2 of four processors."""

    def __init__(self, place, names=("n1", "n2")):
        self.place, self.names = Path(place), names
        self.place.mkdir()
        self.place.chmod(0o777)  # not as /tmp is: all write one state
        self.program = self.place / "smallrm"
        shutil.copy(SMALL, self.program)
        self.program.chmod(0o755)
        for name in ("lock", "journal"):
            (self.place / name).touch()
            (self.place / name).chmod(0o666)
        self.nodes()

    def nodes(self, **changed):
        all_ = {name: {"STATE": "Idle", "CPROC": 4, "CMEMORY": 4000, **changed.get(name, {})} for name in self.names}
        new = self.place / "nodes.new"
        new.write_text(json.dumps(all_))
        new.rename(self.place / "nodes")

    def rmcfg(self, patience=20):
        return f'RMCFG[small] TYPE=NATIVE ADAPTER={self.program} ENV="SMALLRM={self.place}" POLL=1 PATIENCE={patience}\n'

    def call(self, *args):
        done = subprocess.run([sys.executable, "-B", self.program, *map(str, args)], text=True, capture_output=True, timeout=600,
                              env={"PATH": os.environ["PATH"], "SMALLRM": str(self.place)})
        if done.returncode:
            raise AssertionError(f"{args}: {done.stdout}{done.stderr}")
        return done.stdout

    def queue(self, user, script, tasks=1, **more):
        """As its own users do."""
        said = self.call("queue", f"UNAME={user}", f"EXEC={script}", f"TASKS={tasks}", *(f"{k}={v}" for k, v in more.items()))
        return re.search(r"JOBID=(\d+)", said)[1]

    def job(self, ident):
        for line in self.call("workloadquery").splitlines()[1:]:
            name, _, fields = line.partition(" ")
            if name == str(ident):
                return dict(f.split("=", 1) for f in fields.split(";"))
        return None

    def wait(self, ident, state, seconds=60):
        return wait_for(f"job {ident} to be {state}", lambda: (lambda j: j if j and j["STATE"] == state else None)(self.job(ident)),
                        seconds, self.place / "state")

    def starts(self, ident):
        return [line.split() for line in (self.place / "journal").read_text().splitlines() if line.split()[0] == str(ident)]

    def do(self, call, script, when="do"):
        new = self.place / "do.new"
        new.write_text(script)
        new.rename(self.place / f"{when}.{call}")

    def hang(self, call, when="do"):
        """Until it is undone."""
        self.do(call, f"while [ -e {self.place}/{when}.{call} ]; do sleep 0.05; done", when)

    def undo(self, call, when="do"):
        (self.place / f"{when}.{call}").unlink(missing_ok=True)


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs of other accounts")
class Site(SharedCase):
    patience = 20

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rm = Small(cls.state / "small")
        cls.alpha = cls.site("alpha")
        cls.alpha.write("RMPOLLINTERVAL 1\n" + cls.rm.rmcfg(cls.patience))
        cls.alpha.start()
        wait_for("alpha to see it", lambda: cls.alpha.logged("native reached"), 60, cls.alpha.log)

    def tearDown(self):
        for call in ("clusterquery", "workloadquery", "jobsubmit", "jobstart"):
            for when in ("do", "only", "after"):
                self.rm.undo(call, when)
        self.rm.nodes()
        for gate in ("a", "b", "c"):
            (self.shared / f"{gate}.gate").touch()
        if self.alpha.process.pid() is None:
            self.alpha.start()
        self.clear(self.alpha)
        for left in self.shared.iterdir():
            left.unlink()

    # ---- jobs

    def script(self, name, code=0, gate=None):
        """Says it began; waits for its gate; ends with that code."""
        path = self.shared / f"{name}.sh"
        wait = f"until [ -e {self.shared}/{gate}.gate ]; do sleep 0.05; done\n" if gate else ""
        path.write_text(f"#!/bin/sh\necho ${{NUI_JOBID:-own}} >>{self.shared}/{name}.began\n{wait}echo done\nexit {code}\n")
        path.chmod(0o755)
        return path

    def open(self, gate):
        (self.shared / f"{gate}.gate").touch()

    def began(self, name):
        path = self.shared / f"{name}.began"
        return path.read_text().splitlines() if path.exists() else []

    def queued(self):
        rows = self.data(self.alpha, "showq")
        return {r["job_id"]: {**r, "section": s} for s in ("active", "idle", "blocked") for r in rows[s]}

    def nui_id(self, job):
        def known():
            return next((i for i in self.queued()
                         if self.data(self.alpha, "checkjob", i)["job"]["rm_job_id"] == str(job)), None)
        return wait_for(f"alpha to know job {job}", known, 40, self.alpha.log)

    def wait_logged(self, *words, seconds=60):
        return wait_for(f"alpha to say {words}", lambda: self.alpha.logged(*map(str, words)), seconds, self.alpha.log)

    def msub(self, script, *args, tasks=1):
        return self.ok(self.alpha, "msub", "-t", "300", "--tasks", tasks, script, *args, account=self.account).strip()


class Life(Site):
    def test_of_its_own_users(self):
        """Started on the nodes that the pass chose, both sides hold it, and its end is known with its code."""
        script = self.script("own", code=3, gate="a")
        job = self.rm.queue(self.account, script, tasks=6, WCLIMIT=100)
        self.rm.wait(job, "Running")
        ident = self.nui_id(job)
        nodes = self.rm.starts(job)[0][2].split(",")
        self.assertEqual(sorted(nodes.count(n) for n in ("n1", "n2")), [2, 4])
        self.assertIn("n1", self.ok(self.alpha, "checkjob", ident))
        waits = self.rm.queue(self.other, self.script("waits"), tasks=8)
        held = self.nui_id(waits)
        self.ok(self.alpha, "sethold", held)
        self.rm.wait(waits, "SystemHold")
        self.open("a")
        self.wait_logged("job_ended", f"rm_job={job} ", "exit_code=3")
        self.assertEqual(self.rm.starts(waits), [])
        self.ok(self.alpha, "releasehold", "-a", held)
        self.rm.wait(waits, "Completed")
        self.wait_logged("job_ended", f"rm_job={waits} ", "how=exited exit_code=0")
        self.assertEqual(self.began("waits"), ["own"])
        self.assertEqual(len(self.rm.starts(job)), 1)

    def test_suspended_resumed_sent_back_cancelled(self):
        job = self.rm.queue(self.account, self.script("long", gate="a"), tasks=2)
        self.rm.wait(job, "Running")
        ident = self.nui_id(job)
        self.ok(self.alpha, "mjobctl", "-s", ident)
        self.rm.wait(job, "Suspended")
        wait_for("nui to know", lambda: "uspended" in self.ok(self.alpha, "checkjob", ident), 40)
        self.ok(self.alpha, "mjobctl", "-r", ident)
        self.rm.wait(job, "Running")
        self.ok(self.alpha, "mjobctl", "-R", ident)
        wait_for("it to run again", lambda: len(self.rm.starts(job)) == 2, 60, self.alpha.log)
        self.wait_logged("job_ended", f"rm_job={job} ", "how=requeued")
        self.assertEqual(self.alpha.logged("started_without_us", f"rm_job={job}"), [])
        wait_for("it to be known to run", lambda: self.queued()[ident]["section"] == "active", 40)
        self.ok(self.alpha, "canceljob", ident)
        self.wait_logged("job_ended", f"rm_job={job} ", "how=cancelled")

    def test_by_msub(self):
        """A job that nui itself hands over: as its user, with its arguments, its output where it belongs."""
        path = self.shared / "said.sh"
        path.write_text("#!/bin/sh\nid -un; pwd; echo \"$1|$2|$NUI_JOBID|$(wc -l <$NUI_NODEFILE)\"; exit 5\n")
        ident = self.msub(path, "it's", "a b", tasks=3)
        self.wait_logged("job_ended", f"job={ident} ", "exit_code=5")
        work = self.alpha.dir / "jobs" / ident / "work"
        user, place, words = (work / "stdout").read_text().splitlines()
        self.assertEqual((user, place), (self.account, str(work)))
        self.assertEqual([w.strip() for w in words.split("|")], ["it's", "a b", ident, "3"])

    def test_a_script_that_cannot_run(self):
        path = self.shared / "bad.sh"
        path.write_text("#!/bin/bsah\n")
        ident = self.msub(path)
        self.wait_logged("job_ended", f"job={ident} ", "how=mistake")
        self.assertIn("/bin/bsah, which does not exist here", self.ok(self.alpha, "checkjob", ident))
        path.write_text("#!/bin/sh\npwd\nexit 7\n")
        ident = self.msub("--chdir", "/nowhere", path)
        self.wait_logged("job_ended", f"job={ident} ", "how=mistake")
        self.assertIn("(--chdir) does not exist at this site", self.ok(self.alpha, "checkjob", ident))
        ident = self.msub("--chdir", "/usr/share", path)
        self.wait_logged("job_ended", f"job={ident} ", "exit_code=7")
        self.assertEqual((self.alpha.dir / "jobs" / ident / "work/stdout").read_text(), "/usr/share\n")

    def test_started_by_somebody_else(self):
        with self.alpha.process.halted():
            job = self.rm.queue(self.account, self.script("theirs", gate="b"), tasks=1)
            self.rm.call("jobstart", job, "n2", self.account)
        self.wait_logged("started_without_us", f"rm_job={job} ")
        self.open("b")
        self.wait_logged("job_ended", f"rm_job={job} ", "how=exited")

    def test_nodes(self):
        self.rm.nodes(n1={"STATE": "Draining", "CAT": "fan; left"})
        wait_for("n1 to be drained", lambda: re.search(r"Reason: +fan; left", self.ok(self.alpha, "checknode", "n1")), 40)
        job = self.rm.queue(self.account, self.script("there"), tasks=4)
        self.rm.wait(job, "Completed")
        self.assertEqual(set(self.rm.starts(job)[0][2].split(",")), {"n2"})
        self.rm.nodes(n2={"STATE": "Down"})
        wait_for("n2 to be down", lambda: re.search(r"State: +Down", self.ok(self.alpha, "checknode", "n2")), 40)


class Killed(Site):
    def test_ends_while_away(self):
        """One of ours and one of its users': both are found, with their exact ends, and neither ran twice."""
        ours = self.msub(self.script("ours", code=4, gate="a"))
        job = self.rm.queue(self.account, self.script("users", code=7, gate="b"))
        self.rm.wait(job, "Running")
        wait_for("ours to run", lambda: self.began("ours"), 40, self.alpha.log)
        for ident in (ours, self.nui_id(job)):
            wait_for("both to be known to run", lambda i=ident: self.queued()[i]["section"] == "active", 40)
        self.alpha.process.stop(9)
        self.open("a"), self.open("b")
        ended = self.rm.wait(job, "Completed")
        unseen = self.rm.queue(self.account, self.script("unseen"))
        self.rm.call("jobstart", unseen, "n1", self.account)
        self.rm.wait(unseen, "Completed")
        self.alpha.start()
        self.wait_logged("job_ended", f"job={ours} ", "how=exited exit_code=4")
        self.wait_logged("job_ended", f"rm_job={job} ", "how=exited exit_code=7")
        self.wait_logged("job_ended", f"rm_job={unseen} ", "how=exited exit_code=0")
        self.assertEqual((len(self.began("ours")), len(self.began("users"))), (1, 1))
        self.assertEqual(len(self.alpha.logged("job_ended", f"rm_job={job} ")), 1)
        self.assertEqual(ended["EXITCODE"], "7")

    def test_killed_while_it_hands_over(self):
        """The submission was heard and its answer never came: found by its name, it is not submitted again."""
        self.rm.hang("jobsubmit", "after")
        ours = self.msub(self.script("once"))
        def submitted():
            state = json.loads((self.rm.place / "state").read_text()) if (self.rm.place / "state").exists() else {"jobs": {}}
            return [i for i, j in state["jobs"].items() if j["name"].startswith(ours + ".")]
        wait_for("it to be submitted", submitted, 40, self.alpha.log)
        self.alpha.process.stop(9)
        self.rm.undo("jobsubmit", "after")
        self.alpha.start()
        self.wait_logged("job_ended", f"job={ours} ", "how=exited")
        self.assertEqual(len(submitted()), 1)
        self.assertEqual(self.began("once"), [ours])


class Hostile(Site):
    patience = 3

    def test_it_hangs(self):
        """Commands are answered meanwhile, nothing is started, and all goes on when it does."""
        self.rm.hang("workloadquery")
        self.wait_logged("native unreachable", "did not answer within 3 s (PATIENCE)", "stands; nothing is decided")
        ident = self.msub(self.script("later"))
        self.assertEqual(self.queued()[ident]["section"], "idle")
        self.rm.undo("workloadquery")
        self.wait_logged("job_ended", f"job={ident} ", "how=exited")

    def test_half_a_list(self):
        """No job is lost by a list that is cut short."""
        job = self.rm.queue(self.account, self.script("stays", gate="a"))
        self.rm.wait(job, "Running")
        ident = self.nui_id(job)
        self.rm.do("workloadquery", "echo SC=0 COUNT=2; echo 9 STATE=Idle")
        (self.rm.place / "only.workloadquery").touch()
        self.wait_logged("native unreachable", "no good UNAME")
        self.assertIn(ident, self.queued())
        self.rm.undo("workloadquery", "only"), self.rm.undo("workloadquery")
        self.open("a")
        self.wait_logged("job_ended", f"rm_job={job} ", "how=exited")

    def test_a_node_that_shrinks(self):
        """Smaller than what runs there, and nothing: what runs goes on, and nothing more is put there."""
        job = self.rm.queue(self.account, self.script("big", gate="a"), tasks=8)
        self.rm.wait(job, "Running")
        self.nui_id(job)
        small = {"CPROC": 1}
        self.rm.nodes(n1=small, n2=small)
        wait_for("n1 to be small", lambda: re.search(r"PROCS: 1\b", self.ok(self.alpha, "checknode", "n1")), 40, self.alpha.log)
        waits = self.rm.queue(self.account, self.script("small"))
        ident = self.nui_id(waits)
        self.assertEqual(self.queued()[ident]["section"], "idle")
        self.open("a")
        self.wait_logged("job_ended", f"rm_job={job} ", "how=exited")
        self.rm.wait(waits, "Completed")

    def test_a_start_that_is_done_and_never_answered(self):
        self.rm.hang("jobstart", "after")
        job = self.rm.queue(self.account, self.script("unheard", gate="a"))
        self.rm.wait(job, "Running")
        ident = self.nui_id(job)
        wait_for("nui to know", lambda: self.queued()[ident]["section"] == "active", 40, self.alpha.log)
        self.rm.undo("jobstart", "after")
        self.open("a")
        self.wait_logged("job_ended", f"rm_job={job} ", "how=exited")
        self.assertEqual(len(self.rm.starts(job)), 1)
        self.assertEqual(self.alpha.logged("started_without_us", f"rm_job={job}"), [])


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs of other accounts")
class InAGrid(GridCase):
    """Site alpha is under a smallrm, beta is not."""

    @classmethod
    def fund(cls):
        super().fund()
        cls.rm = Small(cls.grid.layout.state / "small", names=("alpha01", "alpha02"))
        alpha, config = cls.grid.daemons["alpha"], cls.grid.layout.config("alpha")
        kept = [line for line in config.read_text().splitlines() if not line.startswith(("NODECFG", "RMCFG"))]
        config.write_text("\n".join(kept) + "\nRMPOLLINTERVAL 1\n" + cls.rm.rmcfg())
        done = cls.grid.nui(layout.OPERATOR, "site", "modify", "alpha", "--claims", "yes")
        assert done.returncode == 0, done.stderr
        alpha.stop()
        alpha.start()
        cls.grid.wait_serving()

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
        """Both parts at the same moment: one over the small resource manager, one over processes."""
        ident = self.grid.submit("alice", "-A", "phys", "-t", 60, "--component", "left:site=alpha,tasks=4",
                                 "--component", "right:site=beta,tasks=3", SAMPLES / "pair.py")
        self.wait_state(ident, ("Completed",), seconds=120)
        said = [self.nui("alice", "output", ident, part).stdout for part in ("left", "right")]
        self.assertEqual(len({re.search(r"joint result: (\d+)", text).group(1) for text in said}), 1)
        self.settled()
        self.assertEqual(len(self.charges(ident)), 2)
        self.assert_books_close()

    def test_its_own_jobs_are_paid(self):
        """What its users gave to it themselves: processors times seconds, as it says when they began and ended."""
        self.settled()
        before = self.balance()["settled"]
        script = self.job_dir() / "own.sh"
        script.write_text("#!/bin/sh\nsleep 2\n")
        script.chmod(0o755)
        job = self.rm.queue(layout.account_of("alice"), script, tasks=2, WCLIMIT=60, ACCOUNT="phys")
        ended = self.rm.wait(job, "Completed")
        wait_for("it to be paid", lambda: self.settled()["settled"] > before, 60, self.grid.daemons["alpha"].log)
        self.assertEqual(self.settled()["settled"] - before, 2 * (int(ended["COMPLETETIME"]) - int(ended["STARTTIME"])))
        self.assert_books_close()


if __name__ == "__main__":
    main()
