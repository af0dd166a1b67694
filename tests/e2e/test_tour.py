"""The tour, step by step, with what came of it asserted; then the tour as the quickstart runs it."""
import contextlib
import io
import re
import ssl
import subprocess
import time
import unittest
from datetime import datetime

from fixture import SAMPLES, GridCase, layout, main
from mauireaders import seconds

from grid.tour import Tour


class Steps(GridCase):
    def test_whoami(self):
        for kind, name in [("user", "alice"), ("user", "bob"), ("agency", layout.AGENCY),
                           ("operator", layout.OPERATOR)]:
            self.assertIn(f"nui://{layout.GRID}/{kind}/{name}", self.nui(name, "whoami").stdout)

    def test_whoami_says_how_long_the_certificate_lasts(self):
        cert = self.grid.layout.id_dir("user", "alice") / "cert.pem"
        text = subprocess.run(["openssl", "x509", "-in", cert, "-noout", "-enddate"], check=True,
                              capture_output=True, text=True).stdout
        end = ssl.cert_time_to_seconds(text.strip().split("=", 1)[1])
        before = time.time()
        mine = self.grid.json("alice", "whoami")
        after = time.time()
        self.assertEqual(end, datetime.fromisoformat(mine["certificate_end_time"].replace("Z", "+00:00")).timestamp())
        self.assertTrue(end - after - 1 <= seconds(mine["certificate_left"]) <= end - before + 1, mine)
        self.assertIn("It lasts", self.nui("alice", "whoami").stdout)

    def test_sites(self):
        rows = self.grid.json("alice", "sites")
        self.assertEqual({r["site"]: r["procs_total"] for r in rows},
                         {s: n * p for s, (n, p) in layout.SITES.items()})

    def test_estimate_changes_nothing_and_prices_exactly(self):
        before = self.statement()["lines"]
        rows = self.grid.json("alice", "estimate", "-A", "phys", "-n", 2, "-t", 60)
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertEqual(row["price"], 120)
        self.assertEqual(self.statement()["lines"], before)

    def test_one_site(self):
        ident = self.grid.submit("alice", "-A", "phys", SAMPLES / "hello.sh")
        job = self.wait_state(ident, ("Completed",))
        self.assertEqual(len(job["components"]), 1)
        self.assertIn("1 + 2 + ... + 20000 = 200010000", self.nui("alice", "output", ident).stdout)
        self.settled()
        lines = [l for l in self.statement()["lines"] if l["job"] == ident]
        self.assertEqual([l["kind"] for l in lines][:2], ["hold", "charge"])
        self.assertEqual(lines[0]["held"], 120)
        self.assertEqual(sum(l["held"] for l in lines), 0)
        self.assert_books_close()

    def test_by_its_name_in_the_grid(self):
        """Commands of one site find it where it is; of a pair a person has to say whom she means."""
        ident = self.grid.submit("alice", "-A", "phys", "--site", "beta", SAMPLES / "hello.sh")
        self.wait_state(ident, ("Completed",))
        job = self.grid.json("alice", "checkjob", ident)["job"]
        self.assertEqual((job["grid_job_id"], job["job_id"].split(".")[0]), (ident, "beta"))
        pair = self.grid.submit("alice", "-A", "phys", "-t", 60, "--component", "left:site=alpha,tasks=1",
                                "--component", "right:site=beta,tasks=1", SAMPLES / "pair.py")
        self.wait_state(pair, ("Completed",))
        self.assertIn(f"{pair} is at alpha and at beta: --site says which", self.nui("alice", "showstart", pair, code=1).stderr)
        self.assertIn("alpha.", self.nui("alice", "checkjob", "--site", "alpha", pair).stdout)

    def test_two_sites(self):
        ident = self.grid.submit("alice", "-A", "phys", "-t", 60, "--component",
                                 "left:site=alpha,tasks=2", "--component", "right:site=beta,tasks=3",
                                 SAMPLES / "pair.py")
        job = self.wait_state(ident, ("Completed",))
        self.assertEqual([c["site"] for c in job["components"]], ["alpha", "beta"])
        said = [self.nui("alice", "output", ident, part).stdout for part in ("left", "right")]
        results = [re.search(r"joint result: (\d+)", text).group(1) for text in said]
        self.assertEqual(results[0], results[1])
        apart = int(re.search(r"started within (\d+) ms", said[0]).group(1))
        self.assertLess(apart, 2000)
        self.settled()
        charges = self.charges(ident)
        self.assertEqual(sorted(l["site"] for l in charges), ["alpha", "beta"])
        self.assert_books_close()
        # One job, whatever it ran at; what it cost, and for how much of processors, wherever it is asked.
        paid = abs(sum(l["posted"] for l in charges))
        used = {r["job"]: r for r in self.exact("alice", "usage", "--by", "job")}[ident]
        self.assertEqual((used["jobs"], used["net"]), (1, paid))
        self.assertAlmostEqual(float(used["proc_hours"]) * 3600, float(paid), delta=5)  # at a rate of 1 for each second
        row = next(r for r in self.exact("alice", "jobs", "--ended", "--cost") if r["job_id"] == ident)
        self.assertEqual(row["charged"], paid)
        self.assertNotIn("charged", self.exact("alice", "jobs", "--ended")[0])
        self.assertRegex(self.nui("alice", "jobs", "--ended", "--totals", "--format", "job_id,charged").stdout,
                         r"(?m)^\d+ jobs?, .* processor-hours, [\d.]+ credits$")


    def test_sample_configurations_are_good(self):
        for name in ("nui-bank", "nui-meta", "nui-local", "nui-gate"):
            done = subprocess.run([self.grid.programs[name], "--config",
                                   SAMPLES / f"{name}.cfg", "--check"], capture_output=True,
                                  text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = self.grid.nui("alice", "--config", SAMPLES / "nui.cfg", "whoami")
        self.assertRegex(done.stderr, r"samples/ca\.pem")  # all that is missing are its files


class WholeTour(unittest.TestCase):
    def test_as_the_quickstart_runs_it(self):
        """On a grid of its own, twice: it may be run again at any time."""
        case = type("TourGrid", (GridCase,), {"gate": True, "fund": classmethod(lambda cls: None), "store": True})
        case.setUpClass()
        try:
            for _ in range(2):
                said = io.StringIO()
                try:
                    with contextlib.redirect_stdout(said):
                        Tour(case.grid).run()
                except Exception:
                    print(said.getvalue())
                    raise
                self.assertIn("all 9 steps passed", said.getvalue())
                self.assertEqual(case.grid.stop(), [])
            # After that it goes on: what there is stays as it is, and nothing is shown anew; but where it is wanted.
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                Tour(case.grid).go(False)
            self.assertIn("it goes on where it was", said.getvalue())
            self.assertNotIn("deposit", said.getvalue())
            granted = case.grid.json("alice", "balance", "-A", "phys")[0]["granted"]
            self.assertEqual(granted, 200000)
            self.assertTrue(case.grid.json("alice", "jobs", "--ended"))
            self.assertEqual(case.grid.stop(), [])
            asked = []
            tour = Tour(case.grid)
            tour.run = lambda: asked.append("the tour")
            tour.go(True)
            self.assertEqual(asked, ["the tour"])
        finally:
            case.doClassCleanups()


if __name__ == "__main__":
    main()
