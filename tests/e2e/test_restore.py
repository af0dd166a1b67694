"""Backups of the daemons are restored while the grid goes on: no credit is lost or paid twice, jobs are found again,
and reconciliation finds nothing to be done.

Each test goes on working after the backup was taken, so that what is restored is older than what the others know.
"""
import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

from fixture import GridCase, layout, main, wait_for


class Restore(GridCase):
    def start(self, name, *options, site="alpha"):
        """(grid id, site id) of a job that has begun there."""
        ident = self.grid.submit("alice", "-A", "phys", "-t", "10:00", "-n", 1, "--site", site, *options,
                                 self.gated_script(name))
        wait_for(f"{ident} to begin", lambda: self.began(name), 60, self.grid.layout.log)
        return ident, self.wait_state(ident, ("Running",))["components"][0]["site_job_id"]

    def end(self, name, ident):
        self.open_gate(name)
        self.wait_state(ident, ("Completed",))

    def charged(self, ident):
        return wait_for(f"{ident} to be charged", lambda: self.charges(ident), 90, self.grid.layout.log)

    def reconcile(self, *options, site="alpha"):
        """class -> site jobs."""
        done = self.nui(layout.OPERATOR, "reconcile", "--site", site, "--json", *options)
        found = {}
        for row in json.loads(done.stdout):
            found.setdefault(row["class"], []).append(row["site_job"])
        return found

    def holds(self):
        """site job -> name of its open hold."""
        done = self.nui(layout.OPERATOR, "hold", "list", "--json")
        return {row["site_job"]: row["hold"] for row in json.loads(done.stdout)}

    # ---- the bank

    def bank_backup(self):
        """As nui-bank(8) says: a base backup of the running server."""
        postgres, place = self.grid.postgres, self.grid.layout.state / "base"
        subprocess.run([postgres.bin / "pg_basebackup", "-D", place, "-d", postgres.conninfo(), "-X", "stream",
                        "-c", "fast"], check=True, capture_output=True)
        return place

    def bank_restore(self, place):
        postgres = self.grid.postgres
        self.grid.daemons["bank"].stop()
        postgres.stop()
        shutil.rmtree(postgres.data)
        shutil.copytree(place, postgres.data)
        account = postgres.account()
        for top, dirs, files in os.walk(postgres.data):
            for path in (top, *(os.path.join(top, name) for name in (*dirs, *files))):
                if account:
                    os.chown(path, account["user"], account["group"])
        (postgres.data / "postmaster.pid").unlink(missing_ok=True)
        postgres.start()
        self.grid.daemons["bank"].start()
        self.grid.wait_bank()

    def test_the_bank(self):
        """What it has forgotten is sent again; holds that it has forgotten do not stop a charge, nor what is behind."""
        before = self.start("before")
        held = self.start("held")
        self.end("before", before[0])
        self.charged(before[0])
        place = self.bank_backup()

        after = self.start("after")
        self.end("after", after[0])
        running = self.start("running")
        forgotten = self.holds()[running[1]]
        self.end("held", held[0])
        paid = {ident: self.charged(ident)[0]["posted"] for ident, _ in (before, after, held)}
        self.bank_restore(place)
        self.assertEqual(self.charges(after[0]), [])
        self.assertEqual(self.charges(held[0]), [])

        # no new hold gets the name of one that is forgotten
        new = [self.start(name) for name in ("new1", "new2")]
        names = self.holds()
        for _, site_job in new:
            self.assertGreater(int(names[site_job].split(".")[1]), int(forgotten.split(".")[1]))
        self.end("running", running[0])
        self.charged(running[0])
        for ident, posted in paid.items():
            self.charged(ident)
            self.assertEqual([line["posted"] for line in self.charges(ident)], [posted])
        self.assertNotEqual(self.balance()["held"], 0)
        for ident, name in zip((job for job, _ in new), ("new1", "new2")):
            self.assertEqual(self.charges(ident), [])
            self.end(name, ident)
            self.charged(ident)
        self.settled()
        self.assertEqual([len(self.charges(ident)) for ident in (running[0], *(job for job, _ in new))], [1, 1, 1])
        self.assert_books_close()
        self.assertEqual(self.reconcile(), {})
        self.assertIn("history_lost", self.grid.daemons["alpha"].log.read_text())
        self.nui(layout.OPERATOR, "verify", "--rules")

        # and the next jobs are as any
        last = self.start("last")
        self.end("last", last[0])
        self.charged(last[0])
        self.settled()
        self.assertEqual(self.reconcile(), {})

    # ---- a site

    def copy_of(self, name, base):
        """A backup of the running daemon's database, as its page says: sqlite3 .backup."""
        place = self.grid.layout.state / f"backup-{name}"
        with closing(sqlite3.connect(self.grid.layout.state / name / base)) as now, closing(sqlite3.connect(place)) as then:
            now.backup(then)
        return place

    def put_back(self, name, base, place):
        self.grid.daemons[name].stop()
        for path in (self.grid.layout.state / name).glob(f"{base}*"):
            path.unlink()
        shutil.copyfile(place, self.grid.layout.state / name / base)
        self.grid.daemons[name].start()
        self.grid.wait_serving()

    def once(self, name, ident):
        """It ran once, is told as Completed, and is charged once."""
        self.assertEqual(len(self.began(name)), 1)
        self.wait_state(ident, ("Completed",))
        self.charged(ident)
        self.assertEqual(len(self.charges(ident)), 1)

    def test_a_site(self):
        """What it has forgotten is not run twice, nor is another job taken for it; what it knew as running is found. What
        runs and is forgotten is ended, has failed, and costs nothing; what had not begun runs, once."""
        done = self.start("sdone", site="beta")
        self.end("sdone", done[0])
        held = self.start("sheld", site="beta")
        stays = self.start("sstays", site="beta")
        place = self.copy_of("beta", "local.db")
        self.end("sheld", held[0])
        after = self.start("safter", site="beta")
        self.end("safter", after[0])
        for ident in (done, held, after):
            self.charged(ident[0])
        runs = self.start("sruns", site="beta")
        nodes, procs = layout.SITES["beta"]  # all of it: while the others run, it waits
        waits = self.grid.submit("alice", "-A", "phys", "-t", "10:00", "-n", nodes * procs, "--site", "beta",
                                 self.gated_script("swaits"))
        self.wait_state(waits, ("Queued",))
        self.assertNotEqual(self.alive(runs[1]), [])
        self.put_back("beta", "local.db", place)
        lost = self.wait_state(runs[0], ("Failed",))
        self.assertIn("restored to a moment before the job came", lost["reason"])
        self.assertEqual(self.alive(runs[1]), [])
        wait_for("its hold to be given back", lambda: runs[1] not in self.holds(), 60)

        self.end("sstays", stays[0])
        self.end("swaits", waits)
        self.once("swaits", waits)
        again = self.start("sagain", site="beta")
        self.assertNotIn(again[1], (done[1], held[1], stays[1], after[1]))  # nor is the number of a forgotten one
        self.end("sagain", again[0])
        for name, ident in (("sdone", done), ("sheld", held), ("sstays", stays), ("safter", after), ("sagain", again)):
            with self.subTest(name=name):
                self.once(name, ident[0])
        self.assertEqual((len(self.began("sruns")), self.charges(runs[0])), (1, []))
        self.settled()
        self.assert_books_close()
        self.assertEqual(self.reconcile(site="beta"), {"MISSING_AT_SITE": [after[1]]})
        self.assertIn("stray_ended", self.grid.daemons["beta"].log.read_text())
        self.assertIn("history_lost", self.grid.daemons["meta"].log.read_text())

    def alive(self, site_job):
        """Its processes, by their environment."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if f"NUI_JOBID={site_job}".encode() in path.read_bytes().split(b"\0"):
                    found.append(path.parent.name)
        return found

    # ---- the metascheduler

    def test_the_metascheduler(self):
        """Jobs that it has forgotten are not run again, and their numbers are not given to others: to the site those
        would be the forgotten ones. A job whose end it has forgotten has ended."""
        done = self.start("mdone")
        self.end("mdone", done[0])
        ends = self.start("mends")
        place = self.copy_of("meta", "meta.sqlite")
        after = self.start("mafter")
        self.end("mafter", after[0])
        self.end("mends", ends[0])
        for ident in (done, after, ends):
            self.charged(ident[0])
        self.put_back("meta", "meta.sqlite", place)
        log = self.grid.daemons["meta"].log
        wait_for("it to hear of forgotten numbers", lambda: "numbers_lost" in log.read_text(), 60, log)

        again = self.start("magain")
        self.assertEqual(int(again[0].split(".")[1]), int(after[0].split(".")[1]) + 1)
        self.end("magain", again[0])
        for name, ident in (("mdone", done), ("magain", again), ("mends", ends)):
            with self.subTest(name=name):
                self.once(name, ident[0])
        self.assertEqual((len(self.began("mafter")), len(self.charges(after[0]))), (1, 1))
        self.nui("alice", "status", after[0], code=5)
        self.settled()
        self.assert_books_close()
        self.assertEqual(self.reconcile(), {})


if __name__ == "__main__":
    main()
