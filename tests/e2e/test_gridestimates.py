#!/usr/bin/python3
"""Estimates through the grid: what users are told before and while they wait, how each site's record
shows, and that the metascheduler goes by it. The record of weeks is written into the sites' databases
while their daemons are down (killed), in the shape of theirs; everything else happens."""
import sqlite3
import time
import unittest
from datetime import datetime

from fixture import GridCase, main, wait_for

WEEK = 7 * 24 * 3600
HOUR = 3600


def moment(text):
    return datetime.fromisoformat(text).timestamp()


def seconds(text):
    """Of [HH:]MM:SS."""
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


def us(seconds):
    return int(seconds * 1e6)


class Estimates(GridCase):
    sites = {"alpha": (1, 2), "beta": (1, 2)}

    def record_write(self, site, *blocks):
        """Jobs of the last weeks that were told an hour, 40 minutes to two hours: how many, how long
        they waited, of which class."""
        with sqlite3.connect(self.grid.layout.state / site / "local.db") as db:
            number = 100000
            for count, waited, class_name in blocks:
                for i in range(count):
                    given = us(time.time() - 2 * WEEK + i * 600)
                    told = [us(h * HOUR) for h in (1, .9, 1.1, .67, 2)]
                    db.execute("INSERT INTO estimate VALUES (?,?,?,?,40,0,?,?,?,?,?,?,?,?,?,?)",
                               (number, given, given + us(waited * HOUR), class_name, *told, *told))
                    number += 1

    def history_write(self, site):
        """What has ended here ran for ten minutes."""
        with sqlite3.connect(self.grid.layout.state / site / "local.db") as db:
            changed = db.execute("UPDATE history SET start_us = end_us - ?, submit_us = end_us - ?",
                                 (us(600), us(600))).rowcount
        self.assertEqual(changed, 1)

    def estimate(self, *args):
        rows = self.grid.json("alice", "estimate", "-A", "phys", *args)
        return {r["sites"]: r for r in rows}, [r["sites"] for r in rows]

    def job(self, ident):
        return self.status("alice", ident)

    def submit(self, seconds, limit, *args):
        script = self.write(f"sleep{seconds}.sh", f"#!/bin/sh\nsleep {seconds}\n")
        return self.grid.submit("alice", "-A", "phys", "-n", 2, "-t", limit, *args, script)

    def records(self):
        """What jobs were told first."""
        return {(r["site"], r["class"]): r for r in self.grid.json("alice", "sites", "-e")
                if r["answers"] == "first"}

    def test_from_the_record_to_the_start(self):
        # nothing was scored yet: no columns are made up
        for row in self.grid.json("alice", "sites"):
            self.assertEqual((row["state"], row["nodes_total"], row["procs_total"]), ("Up", 1, 2))
            self.assertIsNone(row["estimate_coverage_95"])
            self.assertIsNone(row["estimate_median_error"])
        self.assertEqual({k: r["scored"] for k, r in self.records().items()},
                         {("alpha", "[ALL]"): 0, ("beta", "[ALL]"): 0})

        # a history: jobs that ask for an hour and need ten minutes
        for ident in [self.submit(0, HOUR, "--site", site) for site in ("alpha", "beta")]:
            self.wait_state(ident, ("Completed",))
        # what the metascheduler was told before it sent them is their answer: at once, which is certain
        wait_for("the answers to be scored", lambda: all(
            r["scored"] == 1 for r in self.records().values()), 60, self.grid.layout.log)
        for row in self.records().values():
            self.assertEqual((row["uncertain"], row["coverage_95"]), (0, None))

        # alpha is always hours late; beta holds what it says, but for one class
        for site, blocks in (("alpha", [(60, 9, "")]), ("beta", [(400, 1, ""), (40, 9, "short")])):
            self.grid.daemons[site].kill()
            self.record_write(site, *blocks)
            self.history_write(site)
            self.grid.daemons[site].start()
        wait_for("both records to be reported",
                 lambda: all(self.records().get((s, "[ALL]"), {"scored": 0})["scored"] >= 60
                             for s in ("alpha", "beta")), 60, self.grid.layout.log)
        records = self.records()
        self.assertEqual(set(records), {("alpha", "[ALL]"), ("beta", "[ALL]"), ("beta", "short")})
        late, good = records["alpha", "[ALL]"], records["beta", "[ALL]"]
        self.assertEqual((late["coverage_95"], late["coverage_50"], late["earned"]), (0, 0, False))
        self.assertEqual((seconds(late["median_error"]), late["bias_s"]), (8 * HOUR, -8 * HOUR))
        self.assertAlmostEqual(good["coverage_95"], 400 / 440, delta=1e-6)
        self.assertEqual((good["coverage_50"], good["earned"]), (good["coverage_95"], True))
        self.assertEqual((seconds(good["median_error"]), good["bias_s"]), (0, 0))
        short = records["beta", "short"]
        self.assertEqual((short["scored"], short["uncertain"], short["coverage_95"]), (40, 40, 0))
        rows = {r["site"]: r for r in self.grid.json("alice", "sites")}
        self.assertEqual((rows["alpha"]["estimate_coverage_95"], rows["beta"]["estimate_coverage_95"]),
                         (0, good["coverage_95"]))
        self.assertEqual(seconds(rows["alpha"]["estimate_median_error"]), 8 * HOUR)

        # both are full for an hour by limits, for minutes by what is known of such jobs
        running = {s: self.submit(900, HOUR, "--site", s) for s in ("alpha", "beta")}
        for ident in running.values():
            self.wait_state(ident, ("Running",))
        begin = time.time()
        by_site, order = self.estimate("-n", 2, "-t", HOUR)
        for row in by_site.values():
            ends = [moment(row[k]) for k in ("low95", "low50", "median", "high50", "high95")]
            self.assertEqual(ends, sorted(ends))
            self.assertLess(moment(row["median"]) - begin, HOUR / 2)  # both say soon
            self.assertGreater(moment(row["latest"]) - begin, HOUR * .9)  # a reservation: in an hour
        # beta is believed, alpha is not: it is expected when it could promise
        self.assertEqual(order, ["beta", "alpha"])
        self.assertAlmostEqual(moment(by_site["beta"]["start"]), moment(by_site["beta"]["median"]),
                               delta=2)
        self.assertAlmostEqual(moment(by_site["alpha"]["start"]), moment(by_site["alpha"]["latest"]),
                               delta=60)
        self.assertIn(by_site["beta"]["confidence"], ("high", "fair"))
        self.assertIsNone(by_site["alpha"]["confidence"])  # a word must be earned

        # nor is beta in the class that it is always late with
        short = self.estimate("-n", 2, "-t", HOUR, "--class", "short")[0]["beta"]
        self.assertAlmostEqual(moment(short["start"]), moment(short["latest"]), delta=60)

        # so that is where a job goes that may go anywhere
        first = self.submit(1, 4 * HOUR)
        job = self.wait_state(first, ("Queued",))
        self.assertEqual([c["site"] for c in job["components"]], ["beta"])
        second = self.submit(1, 2 * HOUR, "--site", "beta")
        told = wait_for("the second to be told", lambda: self.told(second), 60, self.grid.layout.log)
        ends = [moment(told[f"expected_{k}"]) for k in ("low95", "low50", "median", "high50", "high95")]
        self.assertEqual(ends, sorted(ends))
        self.assertIn(told["confidence"], ("high", "fair"))
        self.assertIsNone(told["expected_without"])
        self.assertIn("Expected", self.nui("alice", "status", second).stdout)

        # the one ahead goes: earlier, and why
        self.nui("alice", "cancel", first)
        moved = wait_for("the second to move", lambda: self.moved(second), 90, self.grid.layout.log)
        self.assertLess(moment(moved["expected_median"]), moment(told["expected_median"]))
        self.assertRegex(moved["moved"], r"^earlier by .*: .*1 left the queue")

        # on both sites at once: the moment that they agreed on
        both = self.grid.submit("alice", "-A", "phys", "-t", 60, "--component", "a:site=alpha,tasks=1",
                                "--component", "b:site=beta,tasks=1",
                                self.write("both.sh", "#!/bin/sh\n"))
        agreed = wait_for("both sites to promise", lambda: self.told(both), 60, self.grid.layout.log)
        self.assertEqual(agreed["confidence"], "certain")
        self.assertAlmostEqual(moment(agreed["expected_median"]), moment(agreed["start_time"]), delta=1)
        self.assertEqual(agreed["expected_low95"], agreed["expected_high95"])
        self.assertGreater(moment(agreed["start_time"]) - begin, HOUR * .9)

        # held: no moment, and the reason
        third = self.submit(1, HOUR, "--site", "beta", "--hold")
        held = wait_for("the held one to say why",
                        lambda: (j := self.job(third)) and j["expected_without"] and j, 60,
                        self.grid.layout.log)
        self.assertIsNone(held["expected_median"])
        self.assertIn("not before its release", held["expected_without"])

        # all that wait, in the order in which they are expected to start: what nobody knows is last
        rows = self.grid.json("alice", "jobs", "--start")
        self.assertEqual([r["job_id"] for r in rows], [second, both, third])
        self.assertEqual([r["expected"] for r in rows], [self.job(i)["expected_median"] for i in (second, both)] + [None])
        self.assertLess(moment(rows[0]["earliest"]), moment(rows[0]["latest"]))
        self.assertNotIn("price_max", rows[0])
        self.nui("alice", "jobs", "--start", "--ended", code=2)

        # it starts: both its answers are scored, and the grid sees that
        before = self.records()["beta", "[ALL]"]["scored"]
        for ident in (both, third, running["beta"], running["alpha"]):
            self.nui("alice", "cancel", ident)
        self.wait_state(second, ("Completed",))
        wait_for("the scores to be reported",
                 lambda: self.records()["beta", "[ALL]"]["scored"] > before, 60, self.grid.layout.log)
        later = {(r["site"], r["class"]): r for r in self.grid.json("alice", "sites", "-e")
                 if r["answers"] == "later"}
        self.assertEqual(set(later), {("beta", "[ALL]")})
        self.assertGreater(later["beta", "[ALL]"]["scored"], 0)

    def test_long_queue_answers_from_its_table(self):
        """More jobs than a site looks through for one question: what its last survey says of such shapes, which
        is on disk, scored and in the record of its kind when the job that came for it starts."""
        log = self.grid.layout.log
        running = self.submit(900, HOUR, "--site", "alpha")
        self.wait_state(running, ("Running",))
        self.nui("alice", "msub", "--site", "alpha", "-A", "phys", "--array", "1-3000", "--hold", "-t", 60,
                 self.write("held.sh", "#!/bin/sh\n"))
        wait_for("a survey of the long queue", lambda: self.estimate(
            "-n", 2, "-t", HOUR, "--site", "alpha")[0]["alpha"]["median"], 120, log)
        job = self.submit(1, HOUR, "--site", "alpha")
        self.wait_state(job, ("Queued",))
        answers = self.answers("alpha", job)
        self.assertEqual(len(answers), 1, answers)
        given, median, started = answers[0]
        self.assertGreater(given + median, us(time.time()))  # it is not told that it starts now
        self.assertEqual(started, 0)
        self.assertNotIn("table", {r["answers"] for r in self.grid.json("alice", "sites", "-e")})
        self.nui("alice", "cancel", running)
        self.wait_state(job, ("Running", "Completed"), seconds=120)
        wait_for("its start to be on disk", lambda: self.answers("alpha", job)[0][2], 60, log)
        wait_for("the score to be reported", lambda: [
            r["scored"] for r in self.grid.json("alice", "sites", "-e")
            if (r["answers"], r["site"], r["class"]) == ("table", "alpha", "[ALL]")] == [1], 60, log)

    def answers(self, site, ident):
        """Those from the table about a job of the grid: when given, the median, when it started; microseconds."""
        number = int(self.job(ident)["components"][0]["site_job_id"].rsplit(".", 1)[1])
        with sqlite3.connect(f"file:{self.grid.layout.state / site / 'local.db'}?mode=ro", uri=True) as db:
            return db.execute("SELECT given_us, median, started_us FROM estimate_later WHERE number = ?"
                              " AND kind = 'table'", (number,)).fetchall()

    def told(self, ident):
        job = self.job(ident)
        return job if job and job["expected_median"] else None

    def moved(self, ident):
        job = self.told(ident)
        return job if job and job["moved"] and "left" in job["moved"] else None


if __name__ == "__main__":
    main()
