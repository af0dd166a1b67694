"""A real Slurm under site alpha, beside an embedded site: users keep sbatch, nui decides."""
import json
import os
import re
import unittest

from fixture import SAMPLES, GridCase, layout, main, wait_for

from grid import slurm as real

LACKING = real.missing()


@unittest.skipIf(LACKING, f"Slurm's packages are not installed ({LACKING}): see deploy/packages")
@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs of other accounts")
class SlurmCase(GridCase):
    """alpha: two plain nodes and two with features and graphics cards, of four processors each."""

    sites = {"alpha": (4, 4), "beta": (2, 4)}
    slurm = {"alpha": {
        "nodes": [("alpha01", {"CPUs": 4, "RealMemory": 4000, "Feature": "small,intel"}),
                  ("alpha02", {"CPUs": 4, "RealMemory": 4000, "Feature": "small,intel"}),
                  ("alpha03", {"CPUs": 4, "RealMemory": 16000, "Feature": "big,amd", "Gres": "gpu:2"}),
                  ("alpha04", {"CPUs": 4, "RealMemory": 16000, "Feature": "big,amd",
                               "Gres": "gpu:2"})],
        "classes": {"batch": "", "debug": "MaxTime=30"}, "slurmd_timeout": 10}}

    @classmethod
    def fund(cls):
        super().fund()
        cls.rm = cls.grid.slurm["alpha"]
        cls.user = layout.account_of("alice")
        cls.log = cls.grid.daemons["alpha"].log

    def tearDown(self):
        """Whatever a test left: gone, in Slurm and in nui."""
        self.rm.start()
        self.rm.command("scancel", "-u", self.user)
        wait_for("Slurm's queue to be empty",
                 lambda: not self.rm.command("squeue", "-h", "-a").stdout.strip(), 60)
        wait_for("alpha's queue to be empty", lambda: self.queue() == {}, 60, self.log)

    # ---- what is where

    def raw(self, *args):
        """A command of the cluster's, as root on its socket; subprocess.CompletedProcess."""
        config = self.job_dir() / "here.cfg"
        config.write_text(f"GRID {layout.GRID}\nSITECFG[alpha] "
                          f"SOCKET={self.grid.layout.run}/alpha.sock\n")
        return self.rm.command(self.grid.programs["nui"], *args,
                               env_extra={"NUI_CONFIG": str(config)})

    def here(self, *args, code=0):
        done = self.raw(*args)
        self.assertEqual(done.returncode, code, f"nui {' '.join(map(str, args))}\n{done.stdout}"
                                                f"{done.stderr}")
        return done

    def queue(self):
        """Rows of showq by nui's id; None while the daemon is away."""
        done = self.raw("showq", "--json")
        if done.returncode:
            return None
        both = json.loads(done.stdout)
        return {row["job_id"]: {**row, "section": section} for section in ("active", "idle", "blocked")
                for row in both[section]}

    def sbatch(self, *args, **options):
        return self.rm.sbatch("-A", "phys", "--chdir=/tmp", *args, user=self.user, **options)

    def said(self, event, *words):
        """A line of alpha's log with the event and all the words."""
        for line in self.log.read_text().splitlines():
            if f" {event} " in line and all(str(w) in line for w in words):
                return line
        return None

    def wait_said(self, event, *words, seconds=40):
        return wait_for(f"alpha to say {event} {words}", lambda: self.said(event, *words), seconds,
                        self.log)

    # ---- starting and ending

    def test_sbatch_is_started_and_charged(self):
        self.settled()
        before = self.balance()["settled"]
        job = self.sbatch("-n", 2, "-t", 5, script="#!/bin/sh\nsleep 2\nexit 3\n")
        ended = self.rm.wait_job(job, "FAILED")
        self.assertEqual(ended["ExitCode"], "3:0")
        self.assertEqual(ended["Partition"], real.HOLDING, "it was not nui that started it")
        started = self.wait_said("job_chosen", "nodes=alpha0")
        self.assertIn(f"nodes={ended['NodeList']}:", started)
        self.wait_said("job_ended", f"slurm_job={job}", "exit_code=3")
        wait_for("alpha's queue to be empty", lambda: self.queue() == {}, 30)
        after = self.settled()["settled"]
        seconds = int(ended["EndTime"][-2:]) - int(ended["StartTime"][-2:])
        self.assertEqual(after - before, 2 * (seconds % 60))

    def test_nobody_but_nui_uses_its_partition(self):
        done = self.rm.command("sbatch", "-p", real.HOLDING, "--chdir=/tmp", user=self.user,
                               input="#!/bin/sh\ntrue\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is for nui-local", done.stderr)
        job = self.sbatch("-H")
        done = self.rm.command("scontrol", "update", f"jobid={job}", f"partition={real.HOLDING}",
                               user=self.user)
        self.assertNotEqual(done.returncode, 0)

    def test_grid_job(self):
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", 60,
                                 SAMPLES / "hello.sh")
        self.wait_state(ident, ("Completed",))
        said = self.nui("alice", "output", ident).stdout
        self.assertIn("1 + 2 + ... + 20000 = 200010000", said)
        self.assertIn(f"at site alpha, 2 tasks, as {self.user}", said)
        self.settled()
        self.assertEqual(len(self.charges(ident)), 1)
        self.assert_books_close()

    def test_coallocated_with_an_embedded_site(self):
        ident = self.grid.submit("alice", "-A", "phys", "-t", 60,
                                 "--component", "left:site=alpha,tasks=2",
                                 "--component", "right:site=beta,tasks=3", SAMPLES / "pair.py")
        self.wait_state(ident, ("Completed",), seconds=120)
        said = [self.nui("alice", "output", ident, part).stdout for part in ("left", "right")]
        results = {re.search(r"joint result: (\d+)", text).group(1) for text in said}
        self.assertEqual(len(results), 1)
        self.settled()
        self.assertEqual(len(self.charges(ident)), 2)
        self.assert_books_close()


if __name__ == "__main__":
    main()
