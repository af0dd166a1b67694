#!/usr/bin/python3
"""Start-time estimates of a site that works: what waiting jobs are told, first and later and on demand,
each answer written before it is seen, scored when they start, and remembered over a kill -9."""
import os
import sqlite3
import sys
import unittest
from datetime import datetime

from fixture import main
from onesite import SiteCase, layout, wait_for


def moment(text):
    return datetime.fromisoformat(text).timestamp()


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Estimates(SiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.account = layout.account_of("alice")
        cls.shared = cls.state / "shared"
        cls.shared.mkdir()
        cls.shared.chmod(0o1777)

    def submit(self, site, seconds, limit, tasks=2):
        script = self.shared / f"sleep{seconds}.sh"
        script.write_text(f"#!/bin/sh\nsleep {seconds}\n")
        script.chmod(0o755)
        return self.ok(site, "msub", "-l", f"nodes=1:ppn={tasks},walltime={limit}", script,
                       account=self.account).strip()

    def job(self, site, ident):
        return self.data(site, "checkjob", ident)["job"]

    def state_of(self, site, job, state):
        return self.job(site, job)["state"] == state

    def ended(self, site, job):
        return self.state_of(site, job, "Completed")

    def record(self, site):
        return {r["answers"]: r for r in self.data(site, "diagnose", "-e") if r["class"] == "[ALL]"}

    def test_life(self):
        site = self.site()
        site.write(f"JOBDIR {self.state}/jobs\nPORTRANGE 20200-20299\nADMIN1 root\nNODECFG[n1] PROCS=2\n"
                   "RMPOLLINTERVAL 1\n")
        site.start()
        self.assertEqual(set(self.record(site)), {"first"})
        self.assertEqual(self.record(site)["first"]["scored"], 0)

        # nobody ahead: certain, by every method that looks at the present
        said = {f["method"]: f for f in
                self.data(site, "showstart", "-e", "all", "2@1:00:00")}
        self.assertEqual(set(said), {"limits", "priority", "history", "simulation"})
        self.assertTrue(said["simulation"]["certain"])

        # a history: jobs that ask for an hour and need ten minutes
        for _ in range(3):
            job = self.submit(site, 0, "1:00:00")
            wait_for(f"{job} to end", lambda: self.ended(site, job), 120, site.log)
        site.process.kill()
        with sqlite3.connect(f"{site.dir}/local.db") as db:
            self.assertEqual(db.execute("UPDATE history SET start_us = end_us - 600000000").rowcount,
                             3)
        site.start()

        # one runs, one waits: by limits in an hour, by what is known of such jobs far sooner
        first = self.submit(site, 600, "1:00:00")
        second = self.submit(site, 1, "1:00:00")
        wait_for("the first to run", lambda: self.state_of(site, first, "Running"), 60,
                 site.log)
        said = {f["method"]: f for f in self.data(site, "showstart", "-e", "all", second)}
        begin = moment(self.job(site, first)["start_time"])
        self.assertAlmostEqual(moment(said["limits"]["median"]) - begin, 3600, delta=30)
        self.assertLess(moment(said["simulation"]["median"]) - begin, 1800)
        for f in said.values():
            order = [moment(f[k]) for k in ("low95", "low50", "median", "high50", "high95")]
            self.assertEqual(order, sorted(order), f)
        one = self.data(site, "showstart", "-e", "sim", second)
        self.assertEqual([f["method"] for f in one], ["simulation"])
        held = self.submit(site, 1, "1:00:00")
        self.ok(site, "sethold", held)
        said = self.data(site, "showstart", "-e", "sim", held)[0]
        self.assertIsNone(said["median"])
        self.assertIn("not before its release", said["without"])
        self.ok(site, "canceljob", held)
        table = self.ok(site, "showstart", "-e", "all", "2@10:00")
        self.assertIn("Earliest start in", table)
        self.assertIn("simulation", table)

        # an answer is on disk before it is seen, the first as well as one by another method
        third = self.submit(site, 1, "1:00:00")
        said = self.data(site, "showstart", "-e", "sim", third)[0]
        told = moment(said["median"])
        limits = moment(self.data(site, "showstart", "-e", "limits", third)[0]["median"])
        rows = self.rows(site, third)
        self.assertEqual([k for k, *_ in rows], ["first", "limits"])
        self.assertAlmostEqual(rows[0][1], told, delta=61)
        self.assertAlmostEqual(rows[1][1], limits, delta=1)
        self.data(site, "showstart", "-e", "limits", third) # the same again is no other answer
        self.assertEqual(len(self.rows(site, third)), 2, self.rows(site, third))

        # the one ahead goes: another answer, with what moved it
        self.ok(site, "canceljob", second)
        wait_for("the answer to move", lambda: len(self.rows(site, third)) > 2, 60, site.log)
        kind, moved, cause = self.rows(site, third)[2]
        self.assertEqual(kind, "later")
        self.assertLess(moved, told - 60)
        self.assertRegex(cause, "^earlier by .*: .*1 left the queue")

        # killed and started again, it is told the same; when it starts all of them are scored
        site.process.kill()
        site.start()
        kept = self.rows(site, third)
        self.assertEqual([k for k, *_ in kept[:3]], ["first", "limits", "later"])
        self.ok(site, "canceljob", first)
        wait_for(f"{third} to end", lambda: self.ended(site, third), 120, site.log)
        wait_for("the score", lambda: self.record(site)["first"]["scored"] == 1, 60, site.log)
        later = len([k for k, *_ in self.rows(site, third) if k == "later"])
        record = self.record(site)
        self.assertEqual((record["limits"]["scored"], record["later"]["scored"]), (1, later))
        self.assertFalse(record["first"]["earned"]) # one is no record
        self.assertEqual((record["limits"]["coverage_95"], record["limits"]["uncertain"]), (1, 1))
        self.assertGreater(record["limits"]["bias_s"], 3600)
        wait_for("the starts to be on disk", lambda: not self.unstarted(site, third), 60, site.log)

        # and the record outlives it too
        site.process.kill()
        site.start()
        self.assertEqual(self.record(site), record)
        self.assertIn("ended jobs known: ", self.ok(site, "diagnose", "-e"))

        self.refused(site, "showstart", "-e", "tarot", "1@1:00", code=2, says="one of all")

    def query(self, site, sql, *args):
        with sqlite3.connect(f"file:{site.dir}/local.db?mode=ro", uri=True) as db:
            return db.execute(sql, args).fetchall()

    def rows(self, site, job):
        """What a job was told: the kind of answer, the median as a moment, what had moved it."""
        number = int(job.rsplit(".", 1)[1])
        return self.query(site, "SELECT 'first', (given_us + median) / 1e6, '' FROM estimate WHERE"
                          " number = ?1 UNION ALL SELECT * FROM (SELECT kind, (given_us + median) / 1e6,"
                          " cause FROM estimate_later WHERE number = ?1 ORDER BY sequence)", number)

    def unstarted(self, site, job):
        number = int(job.rsplit(".", 1)[1])
        return self.query(site, "SELECT 1 FROM estimate WHERE number = ?1 AND started_us = 0 UNION ALL"
                          " SELECT 1 FROM estimate_later WHERE number = ?1 AND started_us = 0", number)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
