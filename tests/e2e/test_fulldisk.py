"""The disk of nui-meta, or the bank's PostgreSQL, is full: the daemon stays up, says what it cannot do, and goes on when there
is room; nothing that was acknowledged is lost."""
import os
import shutil
import subprocess
import unittest

from fixture import GridCase, layout, main, wait_for
from smalldisk import fill, small_disk


@unittest.skipIf(os.geteuid() != 0, "needs to be root: a file system is mounted")
class FullDisk(GridCase):
    def on_small_disk(self, where, size):
        """What is there, on a file system of its own; skips where none can be mounted."""
        kept = where.with_name(where.name + ".kept")
        subprocess.run(["cp", "-a", where, kept], check=True)
        if not small_disk(where, size, 0o700):
            self.skipTest("no file system can be mounted here")
        self.addClassCleanup(subprocess.run, ["umount", "-l", where], check=True)
        subprocess.run(["cp", "-a", f"{kept}/.", where], check=True)
        shutil.rmtree(kept)

    def submit_refused(self):
        done = self.grid.nui("alice", "submit", "-A", "phys", "-t", "1:00", "-n", 1, self.gated_script("refused"))
        return done.returncode and len(done.stderr.splitlines()) == 1 and "no new work is taken" in done.stderr

    def test_the_metascheduler(self):
        meta, where = self.grid.daemons["meta"], self.grid.layout.state / "meta"
        meta.stop()
        self.on_small_disk(where, "120m")
        meta.start()
        self.grid.wait_serving()
        names = ("early", "late")
        idents = [self.grid.submit("alice", "-A", "phys", "-t", "10:00", "-n", 1, self.gated_script(name)) for name in names]
        for ident in idents:
            self.wait_state(ident, ("Running",))

        def full():
            fill(where)
            return "disk_full" in meta.log.read_text() and shutil.disk_usage(where).free == 0
        wait_for("the disk to be full", full, 60, meta.log)
        wait_for("new work to be refused", self.submit_refused, 60, meta.log)
        self.open_gate("early")
        self.wait_state(idents[0], ("Completed",))
        meta.kill()
        meta.start()
        self.grid.wait_serving()
        self.assertTrue(self.submit_refused())
        self.open_gate("late")
        self.wait_state(idents[1], ("Completed",))
        (where / "filler").unlink()
        wait_for("room", lambda: "disk_has_room" in meta.log.read_text(), 60, meta.log)
        after = self.grid.submit("alice", "-A", "phys", "-t", "1:00", "-n", 1, self.write("after.sh", "#!/bin/sh\ntrue\n"))
        for ident in (*idents, after):
            self.wait_state(ident, ("Completed",))
            wait_for("its charge", lambda: len(self.charges(ident)) == 1, 60)
        self.settled()
        self.assert_books_close()

    def test_the_bank(self):
        """PostgreSQL's disk. What ended meanwhile is charged afterwards, once."""
        postgres, bank, where = self.grid.postgres, self.grid.daemons["bank"], self.grid.postgres.data
        bank.stop()
        postgres.stop()
        self.on_small_disk(where, "400m")
        postgres.start()
        bank.start()
        self.grid.wait_serving()
        ident = self.grid.submit("alice", "-A", "phys", "-t", "10:00", "-n", 1, self.gated_script("bank"))
        self.wait_state(ident, ("Running",))
        pid = bank.pid()

        def refused():
            fill(where)
            done = self.grid.nui(layout.AGENCY, "deposit", "-A", "phys", 1)
            return done.returncode and done.stderr
        said = wait_for("a deposit to be refused", refused, 60, bank.log)
        self.assertEqual(len(said.splitlines()), 1, said)
        self.open_gate("bank")
        self.wait_state(ident, ("Completed",))
        self.assertEqual(bank.pid(), pid)
        (where / "filler").unlink()
        if postgres.process.died():
            postgres.start()
        wait_for("its charge", lambda: len(self.charges(ident)) == 1, 60, bank.log)
        self.assertEqual(bank.pid(), pid)
        self.settled()
        self.assert_books_close()
        self.nui(layout.OPERATOR, "verify", "--rules")


if __name__ == "__main__":
    main()
