"""A job's output fills the disk of a site, with bob's work going on beside it, there and elsewhere (beside.py)."""
import contextlib
import os
import shutil
import subprocess
import unittest

from beside import Beside
from fixture import main, wait_for
from smalldisk import small_disk

FILLER = b"#!/bin/sh\nwhile :; do cat /dev/zero 2>/dev/null; sleep 0.02; done\n"


@unittest.skipIf(os.geteuid() != 0, "needs to be root: a file system is mounted")
class HostileDisk(Beside):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.disk = cls.grid.layout.state / "small"
        if not small_disk(cls.disk, "120m"):
            raise unittest.SkipTest("no file system can be mounted here")
        cls.addClassCleanup(subprocess.run, ["umount", "-l", cls.disk], check=True)
        alpha, state = cls.grid.daemons["alpha"], cls.grid.layout.state
        config = cls.grid.layout.config("alpha")
        alpha.stop()
        for name in ("alpha", "jobs-alpha"):
            subprocess.run(["cp", "-a", state / name, cls.disk / name], check=True)
            config.write_text(config.read_text().replace(f"{state}/{name}", f"{cls.disk}/{name}"))
        alpha.start()
        cls.grid.wait_serving()

    def test_a_disk_that_a_job_fills(self):
        """alice's output fills alpha's disk. bob's jobs that run there end as they would have, are charged once and keep their
        output; alpha stays, answers him and takes nothing new; what he does at beta is not slower."""
        alpha, rounds, wrong = self.grid.daemons["alpha"], [], []

        @contextlib.contextmanager
        def attack():
            name = f"bobs{len(rounds)}"
            ended = {code: self.submit_here("bob", self.signed("bob", self.gated_script(f"{name}-{code}", code).read_bytes(),
                                                               walltime_s=1800)) for code in (0, 3)}
            for ident in ended.values():
                self.wait_here("bob", ident, "Running")
            pid = alpha.pid()
            filler = self.submit_here("alice", self.signed("alice", FILLER, walltime_s=1800))
            wait_for("the disk to be full", lambda: self.full() and "no new work is taken" in self.submit_here(
                "bob", self.signed("bob", b"#!/bin/sh\ntrue\n")), 60, alpha.log)
            yield
            if not self.full():
                wrong.append("there was room again meanwhile")
            for code, ident in ended.items():
                self.open_gate(f"{name}-{code}")
                job = self.wait_here("bob", ident, "Completed", "Failed", "Cancelled")
                self.assertEqual((job.job.state, job.exit_code), ("Failed" if code else "Completed", code), job)
            self.assertEqual(alpha.pid(), pid)
            self.here("alice", "CancelJob", self.admin.CancelJobRequest(job_id=filler), self.admin.CancelJobReply)
            self.wait_here("alice", filler, "Cancelled")
            (self.disk / "jobs-alpha" / filler / "work" / "stdout").unlink()
            wait_for("new work to be taken", lambda: self.submit_here(
                "bob", self.signed("bob", b"#!/bin/sh\ntrue\n")).startswith("alpha."), 60, alpha.log)
            rounds.append(ended)

        self.beside(attack, "beta")
        self.assertEqual(wrong, [])
        mine = {ident for ended in rounds for ident in ended.values()}
        wait_for("their charges", lambda: mine <= set(self.bobs_charges("alpha")), 60, self.grid.daemons["bank"].log)
        paid = self.bobs_charges("alpha")
        self.assertEqual(sorted(paid), sorted(set(paid)))

    def full(self):
        return shutil.disk_usage(self.disk).free == 0


if __name__ == "__main__":
    main()
