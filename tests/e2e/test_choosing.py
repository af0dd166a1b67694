"""When, where and how large: sizes to choose from, alternatives, cheapest before a deadline, the latest
start, through the real client and three sites of different prices."""
import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from datetime import datetime

from fixture import Forge, GridCase, layout, main, wait_for


class Choosing(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.forge = Forge(cls.grid)
        cls.rate("beta", "2")

        path = cls.grid.layout.config("meta")
        path.write_text(path.read_text() + "GRIDLICENSE[matlab] COUNT=5\nGRIDLICENSE[cad] COUNT=1\n"
                        "MOVEINTERVAL 1\nMOVEGAIN 10\n")
        cls.restart_meta()

    @classmethod
    def restart_meta(cls):
        cls.grid.daemons["meta"].kill()
        cls.grid.daemons["meta"].start()
        cls.grid.wait_serving()

    @classmethod
    def rate(cls, site, value):
        assert cls.grid.nui(layout.OPERATOR, "rate", "set", site, value).returncode == 0

    def rows(self, *options, code=0):
        return json.loads(self.nui("alice", "estimate", "--json", "-A", "phys", *options, code=code).stdout)

    def submit(self, *options):
        return self.grid.submit("alice", "-A", "phys", *options)

    def wait_answers(self, ident):
        """What each site said of the job: its reasons."""
        def said():
            both = json.loads(self.nui("alice", "status", ident, "--json").stdout)
            return {a["site"]: a["reason"] for a in both["answers"]}
        return wait_for("the sites' answers", said, 30)

    def tasks_script(self):
        return self.write("tasks.sh", "#!/bin/sh\necho \"tasks $NUI_TASKS\"\n")

    # ---- sizes

    def test_the_size_that_ends_first(self):
        rows = self.rows("--trl", "2@10:00,4@6:00,8@4:00")
        best = rows[0]
        self.assertEqual((best["sites"], best["tasks"]), ("alpha", "8"), rows)
        self.assertEqual(best["price"], 8 * 240)
        self.assertEqual({(r["sites"], r["tasks"]) for r in rows if r["price"] is not None},
                         {(s, t) for s in ("alpha", "beta") for t in ("2", "4", "8")} | {("gamma", "2")})
        self.assertEqual([best[d] for d in ("start_diff", "completion_diff", "price_diff")], [None] * 3)
        second = rows[1] # as large at the dear site: at the same time, at twice the price
        self.assertEqual((second["sites"], second["tasks"], second["price_diff"]), ("beta", "8", 8 * 240), rows)
        self.assertRegex(second["completion_diff"], r"^00:00:0\d$")
        small = next(r for r in rows if (r["sites"], r["tasks"]) == ("alpha", "2"))
        self.assertRegex(small["completion_diff"], r"^00:0[56]:\d\d$")  # six minutes: either site counts from when it was asked
        self.assertEqual(small["price_diff"], 2 * 600 - 8 * 240)
        shown = self.nui("alice", "estimate", "-A", "phys", "--trl", "2@10:00,8@4:00").stdout.splitlines()
        self.assertIn("PRICE+", shown[0])
        self.assertIn("-720", next(li for li in shown if li.split()[:2] == ["alpha", "2"]))
        ident = self.submit("--trl", "2@10:00,4@6:00,8@4:00", self.tasks_script())
        job = self.wait_state(ident, ("Completed",))
        self.assertEqual(job["components"][0]["procs"], 8)
        self.assertIn("tasks 8", self.nui("alice", "output", ident).stdout)
        self.settled()
        line = next(li for li in self.statement()["lines"] if li["job"] == ident and li["kind"] == "hold")
        self.assertEqual(line["held"], 8 * 240, line)

    def test_the_size_that_costs_least(self):
        sizes = "2@10:00,4@6:00,8@4:00" # 1200, 1440 and 1920 processor-seconds
        self.assertEqual(self.rows("--trl", sizes, "--prefer", "cheapest")[0]["tasks"], "2")
        self.assertEqual(self.rows("--trl", sizes, "--deadline", "+20:00")[0]["tasks"], "2")
        self.assertEqual(self.rows("--trl", sizes, "--deadline", "+8:00")[0]["tasks"], "4")
        self.assertEqual(self.rows("--trl", sizes, "--max-cost", 1500)[0]["tasks"], "4")
        self.assertEqual(self.rows("--trl", sizes, "--deadline", "+20:00", "--prefer", "earliest")[0]["tasks"],
                         "8")
        ident = self.submit("--trl", sizes, "--deadline", "+8:00", self.tasks_script())
        job = self.wait_state(ident, ("Completed",))
        self.assertEqual((job["components"][0]["procs"], job["components"][0]["site"]), (4, "alpha"))

    def test_sizes_of_a_group(self):
        """Both parts may be 4 or 8 wide: 8 + 8 end first; the site of 2 is no alternative."""
        parts = ["--component", "left:site=alpha,gamma,trl=4@10:00/8@4:00",
                 "--component", "right:site=beta,trl=4@10:00/8@4:00"]
        rows = self.rows(*parts)
        self.assertEqual((rows[0]["sites"], rows[0]["tasks"]), ("alpha+beta", "8+8"), rows)
        self.assertEqual(rows[0]["price"], 8 * 240 + 2 * 8 * 240)
        ident = self.submit(*parts, self.tasks_script())
        job = self.wait_state(ident, ("Completed",))
        self.assertEqual([c["procs"] for c in job["components"]], [8, 8])
        cheap = self.submit(*parts, "--prefer", "cheapest", self.tasks_script())
        job = self.wait_state(cheap, ("Completed",))
        # 4 * 600 = 2400 are dearer than 8 * 240 = 1920
        self.assertEqual([c["procs"] for c in job["components"]], [8, 8])
        self.assert_books_close()

    # ---- what is signed as the most it may cost

    def signed(self, ident):
        """The job as its user signed it, from the metascheduler's disk."""
        with closing(sqlite3.connect(f"file:{self.grid.layout.state}/meta/meta.sqlite?mode=ro", uri=True)) as db:
            envelope, = db.execute("SELECT envelope FROM job WHERE number = ?", [int(ident.split(".")[1])]).fetchone()
        common = self.forge.contract.common
        return common.Job.FromString(common.Envelope.FromString(envelope).body)

    def told(self, *options, code=0):
        done = self.nui("alice", "submit", "-A", "phys", "--hold", *options, self.tasks_script(), code=code)
        ids = done.stdout.split()
        for ident in ids:
            self.addCleanup(self.nui, "alice", "cancel", ident)
        return ids, done.stderr.strip()

    def test_a_bound_is_always_signed(self):
        ask = ["-n", 2, "-t", "1:00", "--site", "alpha,beta"]
        self.assertEqual({r["bound"] for r in self.rows(*ask)}, {2 * 2 * 2 * 60})  # the dearest, beta, twice
        (ident,), words = self.told(*ask)
        self.assertEqual(words, "nui submit: signed for at most 480 credits (estimate 240, times 2)")
        job = self.signed(ident)
        self.assertEqual((job.cost_max_micro, job.cost_default, job.question), (480_000000, True, False))
        self.assertEqual(float(self.status("alice", ident)["cost_bound"]), 480)
        # each run, and each of an array
        (ident,), words = self.told(*ask, "--retries", 2)
        self.assertEqual(words, "nui submit: signed for at most 1440 credits (estimate 240, times 2, 3 runs)")
        self.assertEqual(self.signed(ident).cost_max_micro, 1440_000000)
        ids, words = self.told(*ask, "--array", "1-3")
        self.assertEqual(words, "nui submit: each signed for at most 480 credits (estimate 240, times 2)")
        self.assertEqual([self.signed(i.split("[")[0]).cost_max_micro for i in ids], [480_000000])
        # the dearest size at the dearest sites, whatever is chosen
        (ident,), words = self.told("--component", "a:site=alpha,beta,trl=1@2:00/4@1:00",
                                    "--component", "b:site=gamma,tasks=1,time=60")
        self.assertEqual(words, "nui submit: signed for at most 1080 credits (estimate 540, times 2)")
        # what the user says is signed as it is, and the two say so
        (ident,), words = self.told(*ask, "--max-cost", 300)
        self.assertEqual((words, self.signed(ident).cost_max_micro, self.signed(ident).cost_default), ("", 300_000000, False))
        (ident,), words = self.told(*ask, "--max-cost", "none")
        self.assertEqual(words, "nui submit: signed without a cost bound: only the account's credits bound what is charged")
        self.assertEqual((self.signed(ident).cost_max_micro, self.signed(ident).cost_any), (0, True))
        self.assertEqual({r["bound"] for r in self.rows(*ask, "--max-cost", "none")}, {None})
        self.told(*ask, "--max-cost", "any", code=2)

    def test_a_bound_of_a_clusters_own_job(self):
        """msub asks the bank what the site could have held for the job at most, whole nodes where it gives them."""
        def told(*options, code=0):
            done = self.nui("alice", "msub", "--site", "beta", "-A", "phys", "--hold", *options,
                            self.tasks_script(), code=code)
            ids = done.stdout.split()
            for ident in ids:
                self.addCleanup(self.nui, "alice", "canceljob", ident)
            return [self.signed_there(i) for i in ids], done.stderr.strip()
        signed = "nui msub: signed for at most {} credits ({})".format
        (job,), words = told("--tasks", 2, "-t", "1:00")
        self.assertEqual(words, signed(480, "estimate 240, times 2"))
        self.assertEqual((job.cost_max_micro, job.cost_default, job.question), (480_000000, True, False))
        jobs, words = told("--tasks", 2, "-t", "1:00", "--array", "1-2")
        self.assertEqual(words, "nui msub: each signed for at most 480 credits (estimate 240, times 2)")
        self.assertEqual([job.cost_max_micro for job in jobs], [480_000000] * 2)
        self.nui(layout.OPERATOR, "site", "modify", "beta", "--node-procs", 4)
        self.addCleanup(self.nui, layout.OPERATOR, "site", "modify", "beta", "--node-procs", 0)
        (job,), words = told("--tasks", 1, "-t", "1:00")
        self.assertEqual((words, job.cost_max_micro), (signed(960, "estimate 480, times 2"), 960_000000))
        # nothing is held for what signs no limit, so the least bounds it
        (job,), words = told("--tasks", 1)
        self.assertIn(signed(1, "no wallclock limit is signed, and the bank holds nothing without one: say -t"), words)
        self.assertEqual(job.cost_max_micro, 1_000000)
        # what the user says is signed as it is
        (job,), words = told("--tasks", 1, "-t", "1:00", "--max-cost", 300)
        self.assertEqual((words, job.cost_max_micro, job.cost_default), ("", 300_000000, False))
        (job,), words = told("--tasks", 1, "-t", "1:00", "--max-cost", "none")
        self.assertEqual(words, "nui msub: signed without a cost bound: only the account's credits bound what is charged")
        self.assertEqual((job.cost_max_micro, job.cost_any), (0, True))
        # who names no bank, and says nothing, would sign no bound
        path = self.grid.layout.config("alice")
        was = path.read_text()
        try:
            path.write_text("".join(line for line in was.splitlines(True) if not line.startswith("BANK")))
            _, words = told("--tasks", 2, "-t", "1:00", code=3)
            self.assertIn("jobs are charged at site beta, and this one's user signed no bound of what it may cost", words)
            (job,), words = told("--tasks", 2, "-t", "1:00", "--max-cost", 300)
            self.assertEqual((words, job.cost_max_micro), ("", 300_000000))
            (ident,), words = self.told("-n", 1, "-t", "1:00", "--site", "alpha")  # nui-meta knows prices
            self.assertEqual(words, "nui submit: signed for at most 120 credits (estimate 60, times 2)")
        finally:
            path.write_text(was)

    def signed_there(self, ident):
        """The job as its user signed it, from the site's disk."""
        site, number = ident.split(".")
        with closing(sqlite3.connect(f"file:{self.grid.layout.state}/{site}/local.db?mode=ro", uri=True)) as db:
            envelope, = db.execute("SELECT bytes FROM envelope WHERE number = ?", [int(number)]).fetchone()
        common = self.forge.contract.common
        return common.Job.FromString(common.Envelope.FromString(envelope).body)

    def test_the_factor_is_the_users(self):
        path = self.grid.layout.config("alice")
        was = path.read_text()
        try:
            path.write_text(was + "COSTFACTOR 1.25\n")
            _, words = self.told("-n", 1, "-t", "1:00", "--site", "alpha")
            self.assertEqual(words, "nui submit: signed for at most 75 credits (estimate 60, times 1.25)")
            path.write_text(was + "COSTFACTOR 0.5\n")
            _, words = self.told("-n", 1, "-t", "1:00", "--site", "alpha", code=1)
            self.assertIn("COSTFACTOR: is not between 1 and 1000", words)
        finally:
            path.write_text(was)

    def test_a_default_bound_chooses_no_site(self):
        """The estimate's doubling leaves out no site; what has no price is not signed at all."""
        ident = self.submit("-n", 8, "-t", "10:00", "--site", "alpha", self.gated_script("choosebound"))
        self.wait_state(ident, ("Running",))
        try:
            wait_for("the estimate to see the job", lambda: self.rows("-n", 8, "-t", "2:00")[0]["sites"] == "beta", 30)
            other = self.submit("-n", 8, "-t", "2:00", self.tasks_script())
            job = self.wait_state(other, ("Completed",))
            self.assertEqual(job["components"][0]["site"], "beta")
        finally:
            self.open_gate("choosebound")
        self.wait_state(ident, ("Completed",))
        self.grid.daemons["gamma"].kill()
        try:
            def refused():
                done = self.grid.nui("alice", "submit", "-A", "phys", "-n", 1, "-t", "1:00", "--site", "gamma",
                                     "--hold", self.tasks_script())
                return done.stderr if done.returncode else self.nui("alice", "cancel", done.stdout.strip()) and ""
            words = wait_for("the site to be silent", refused, 60, self.grid.layout.log)
            self.assertEqual(words.strip(), "nui submit: no site that could run the job answers, so it has no price and "
                             "nothing was signed; say --max-cost CREDITS to sign a bound of your own, or --max-cost none")
            self.told("-n", 1, "-t", "1:00", "--site", "gamma", "--max-cost", 120)
        finally:
            self.grid.daemons["gamma"].start()
            self.grid.wait_serving()

    # ---- alternatives and prices

    def test_the_cheapest_site_before_a_deadline(self):
        """alpha is full for ten minutes; beta, which is dear, is free at once."""
        script = self.gated_script("fill")
        fill = self.submit("-n", 8, "-t", "10:00", "--site", "alpha", script)
        self.wait_state(fill, ("Running",))
        try:
            ask = ["-n", 8, "-t", "2:00", "--site", "alpha,beta"]
            wait_for("the estimate to see the job", lambda: self.rows(*ask)[0]["sites"] == "beta", 30)
            self.assertEqual(self.rows(*ask, "--deadline", "+5:00")[0]["sites"], "beta")
            self.assertEqual(self.rows(*ask, "--deadline", "+1:00:00")[0]["sites"], "alpha")
            self.assertEqual(self.rows(*ask, "--max-cost", 1000)[0]["sites"], "alpha")
            done = self.nui("alice", "submit", "-A", "phys", *ask, "--deadline", "+5:00", "--max-cost", 1000,
                            script, code=1)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1)
            # an alternative of a component, likewise
            group = ["-t", "2:00", "--component", "a:site=alpha,beta,tasks=6",
                     "--component", "b:site=gamma,tasks=1"]
            self.assertEqual(self.rows(*group)[0]["sites"], "beta+gamma")
            self.assertEqual(self.rows(*group, "--prefer", "cheapest")[0]["sites"], "alpha+gamma")

            # why each is no sooner, or no way at all, with the value
            text = {r["sites"]: r["reason"] for r in self.rows(*ask[:4], "--deadline", "+5:00", "--max-cost", 1000, code=1)}
            self.assertRegex(text["alpha"], r"^ends at .*, the job's deadline is ")
            self.assertEqual(text["beta"], "costs 1920, the job's bound is 1000")
            self.assertEqual(text["gamma"], "needs 8 procs, gamma has 2")
            text = {r["sites"]: r["reason"] for r in self.rows(*ask, "--start-by", "+1:00")}
            self.assertRegex(text["alpha"], r"^starts at .*, the job's latest start is ")
            later = next(r for r in self.rows(*group) if r["sites"] == "alpha+gamma")
            self.assertRegex(later["reason"], r"^a at alpha: needs 6 tasks, 0 could start now; expected to clear at ")
            waits = self.submit("-n", 8, "-t", "1:00", "--after", "+1:00:00", script)
            said = self.wait_answers(waits)
            self.assertEqual(said["gamma"], "needs 8 procs, gamma has 2")
            self.assertRegex(said["alpha"], "^not before .*, as the job asks$")
            self.nui("alice", "cancel", waits)

            # no start at alpha before it frees up
            done = self.nui("alice", "submit", "-A", "phys", "-n", 8, "-t", "1:00", "--site", "alpha",
                            "--start-by", "+1:00", script, code=1)
            self.assertIn("latest start", done.stderr)
            done = self.nui("alice", "submit", "-A", "phys", "-t", "1:00", "--start-by", "+1:00",
                            "--component", "a:site=alpha,tasks=8", "--component", "b:site=gamma,tasks=1",
                            script, code=1)
            self.assertIn("latest start", done.stderr)
            self.assertEqual(self.rows("-n", 8, "-t", "1:00", "--site", "alpha,beta", "--start-by",
                                       "+1:00", "--prefer", "cheapest")[0]["sites"], "beta")
        finally:
            self.open_gate("fill")
        self.wait_state(fill, ("Completed",))

    def test_taken_back_at_the_latest_start(self):
        script = self.gated_script("late")
        ident = self.submit("-n", 1, "-t", "1:00", "--site", "gamma", "--hold", "--start-by", "+4", script)
        job = self.wait_state(ident, ("Refused",))
        self.assertIn("latest start", job["reason"])
        self.assertEqual(self.began("late"), [])
        runs = self.submit("-n", 1, "-t", "1:00", "--site", "gamma", "--start-by", "+20", script)
        self.wait_state(runs, ("Running",))
        self.open_gate("late")
        self.wait_state(runs, ("Completed",))

    # ---- offsets, and what is given back at each state

    def test_offsets(self):
        """The second part begins four seconds after the first, by the moments that the sites were given, and the
        window is that of the common moment."""
        place = self.job_dir()
        script = self.write("when.sh", f"#!/bin/sh\necho $NUI_START_TIME > {place}/when.$NUI_COMPONENT\n")
        ident = self.submit("-t", "1:00", "--after", "+5", "--start-by", "+5:00",
                            "--component", "first:site=alpha,tasks=1,offset=-4",
                            "--component", "second:site=beta,tasks=1", script)
        job = self.wait_state(ident, ("Completed",))
        first, second = (float((place / f"when.{name}").read_text()) for name in ("first", "second"))
        self.assertAlmostEqual(second - first, 4, places=2)
        begins = datetime.fromisoformat(job["components"][1]["start_time"])
        self.assertGreaterEqual((begins - datetime.fromisoformat(job["submit_time"])).total_seconds(), 4)
        self.settled()

    def test_cancelled_at_each_state(self):
        """Pending, reserved for later, running: all parts are given back, and the licences."""
        pair = ["-t", "5:00", "--component", "a:site=alpha,tasks=2,licence=cad", "--component", "b:site=gamma,tasks=1"]
        self.addCleanup(self.open_gate, "cancelled")
        script = self.gated_script("cancelled")
        later = self.submit(*pair, "--after", "+1:00:00", script)
        self.wait_state(later, ("Reserved",))
        runs = self.submit(*pair, script)
        self.wait_state(runs, ("Running",))
        self.assertEqual(self.licence(name="cad")[0]["in_use"], 1)
        for ident in (later, runs):
            self.nui("alice", "cancel", ident)
            self.wait_state(ident, ("Cancelled",))
        self.grid.daemons["gamma"].stop()
        try:
            waits = self.submit(*pair, script)
            wait_for("it to wait for gamma", lambda: "gamma" in self.status("alice", waits)["reason"], 60)
            self.assertEqual(self.status("alice", waits)["state"], "Pending")
            self.nui("alice", "cancel", waits)
            self.wait_state(waits, ("Cancelled",))
        finally:
            self.grid.daemons["gamma"].start()
            self.grid.wait_serving()
        wait_for("the licence to be back", lambda: self.licence(name="cad")[0]["free"] == self.licence(name="cad")[0]["count"], 30)
        self.settled()
        self.assert_books_close()

    # ---- licences of the grid

    def licence(self, who="alice", name="matlab"):
        """Its row of all, and its steps."""
        rows = json.loads(self.nui(who, "licences", "--json").stdout)
        return (next(r for r in rows if r["licence"] == name),
                json.loads(self.nui(who, "licences", name, "--json").stdout))

    def test_an_array_of_licences(self):
        """As many of it run as there are licences; a cancel of all of it, by filter or by id, gives all back, also after a kill -9."""
        self.addCleanup(self.open_gate, "licensed")
        script = self.gated_script("licensed")

        def states(number):
            both = json.loads(self.nui("alice", "status", number, "--json").stdout)
            return {row["state"]: row["count"] for row in both["array"]}
        for cancel in (lambda number: ["--name", "licensed"], lambda number: [number]):
            ident = self.nui("alice", "submit", "-A", "phys", "-t", "10:00", "--max-cost", 10000, "--name", "licensed", "-L",
                             "matlab:2", "--array", "1-6", script).stdout.strip()
            number = ident.split("[")[0]
            wait_for("two to run", lambda: states(number).get("Running") == 2, 60)
            wait_for("the licences to be in use", lambda: self.licence()[0]["in_use"] == 4, 60)
            self.assertEqual(self.licence()[0]["free"], 1)
            self.nui("alice", "cancel", *cancel(number))
            self.restart_meta()
            wait_for("all of it to be over", lambda: states(number) == {"Cancelled": 6}, 60)
            wait_for("all licences to be back", lambda: self.licence()[0]["free"] == 5, 60)
            self.assertEqual(self.licence()[0]["in_use"], 0)
        self.settled()
        self.assert_books_close()

    def test_licences_through_time(self):
        """Three of five are taken for ten minutes: a job that needs three has the slot after that, one that
        needs two begins at once; that holds through kill -9; and what is given back early is used early."""
        first = self.submit("-n", 1, "-t", "10:00", "-L", "matlab:3", "--site", "alpha", self.gated_script("first"))
        self.addCleanup(self.open_gate, "first")
        self.addCleanup(self.open_gate, "second")
        self.wait_state(first, ("Running",))
        second = self.submit("-n", 1, "-t", "1:00", "-L", "matlab:3", self.gated_script("second"))
        job = self.wait_state(second, ("Reserved",))
        first_job = self.status("alice", first)
        begins, ends = (datetime.fromisoformat(j["start_time"]) for j in (job, first_job))
        self.assertGreaterEqual((begins - ends).total_seconds(), 599, (job, first_job))
        both = json.loads(self.nui("alice", "status", second, "--json").stdout)
        why = {a["reason"] for a in both["answers"]}
        self.assertTrue(why and all("waits for 3 of licence matlab: 2 of 5 free, enough from" in w for w in why), why)
        self.assertIn("waits for 3 of licence matlab", self.nui("alice", "status", second).stdout)

        rows = self.rows("-n", 1, "-t", "1:00", "-L", "matlab:3")
        self.assertTrue(all("waits for 3 of licence matlab" in r["reason"] for r in rows), rows)
        now = self.rows("-n", 1, "-t", "1:00", "-L", "matlab:2")[0]
        self.assertIsNone(now["reason"])
        self.assertLess(datetime.fromisoformat(now["start"]), begins)
        pair = ["-t", "20", "--component", "a:site=alpha,tasks=1,licence=matlab",
                "--component", "b:site=beta,tasks=1,licence=matlab"]
        self.assertIsNone(self.rows(*pair)[0]["reason"])

        self.restart_meta()
        row, steps = self.licence()
        self.assertEqual((row["count"], row["in_use"], row["reserved"], row["free"], row["grid_count"]), (5, 3, 0, 2, 5))
        self.assertEqual([s["reserved"] for s in steps if s["reserved"]], [3] * (len(steps) - 1), steps)
        self.assertEqual(steps[0]["jobs"], f"{first}:3(alice)")
        self.assertIn(f"{second}:3(alice)", [s["jobs"] for s in steps])
        self.assertEqual({s["jobs"] for s in self.licence("bob")[1]}, {None}) # counts, not whose
        self.assertEqual(self.licence(layout.OPERATOR)[1][0]["jobs"], f"{first}:3(alice)")
        self.assertIn(f"{second}:3(alice)", self.nui("alice", "licences", "matlab").stdout)

        both_parts = self.submit(*pair, self.write("short.sh", "#!/bin/sh\nsleep 1\n"))
        self.wait_state(both_parts, ("Completed",))
        self.assertEqual(self.status("alice", second)["state"], "Reserved")
        self.open_gate("first")
        self.wait_state(first, ("Completed",))
        self.wait_state(second, ("Running",))
        self.open_gate("second")
        self.wait_state(second, ("Completed",))
        wait_for("all licences to be back", lambda: self.licence()[0]["free"] == 5, 30)
        self.settled()
        self.assert_books_close()

    def test_licences_are_never_over_used(self):
        """Six jobs that need two of five each, over their limits or not; the metascheduler is killed."""
        place = self.job_dir()
        script = self.write("use.sh", f"#!/bin/sh\necho begin >> {place}/used\nsleep 2\necho end >> {place}/used\n")
        (place / "used").touch()
        (place / "used").chmod(0o666)
        idents = [self.submit("-n", 1, "-t", 5, "-L", "matlab:2", script) for _ in range(6)]
        wait_for("the first one", lambda: (place / "used").read_text(), 60)
        self.restart_meta()
        for ident in idents:
            self.wait_state(ident, ("Completed",), seconds=120)
        used = most = 0
        for line in (place / "used").read_text().split():
            used += 1 if line == "begin" else -1
            most = max(most, used)
        self.assertEqual((used, most), (0, 2))

    def test_licence_of_a_cancelled_job(self):
        """It takes its time to end: until then the licence is its own."""
        used = self.job_dir() / "cancelled-use"
        used.touch()
        used.chmod(0o666)
        slow = self.write("slow.sh", f"#!/bin/sh\ntrap 'sleep 2; echo end >> {used}; exit' TERM\necho begin >> {used}\n"
                          "while :; do sleep 0.1; done\n")
        first = self.submit("-n", 1, "-t", "5:00", "-L", "cad", "--site", "alpha", slow)
        wait_for("it to begin", used.read_text, 60)
        second = self.submit("-n", 1, "-t", "1:00", "-L", "cad", "--site", "beta",
                             self.write("next.sh", f"#!/bin/sh\necho next >> {used}\n"))
        self.nui("alice", "cancel", first)
        self.wait_state(first, ("Cancelled",))
        self.wait_state(second, ("Completed",))
        self.assertEqual(used.read_text().split(), ["begin", "end", "next"])

    def test_licences_that_cannot_be(self):
        script = self.tasks_script()
        for options, words in (
                (["-L", "matlab:6"], "asks for 6 of licence matlab, the grid has 5"),
                (["-L", "matlab:2", "--array", "1-3%2"], "cannot be limited"),
                (["-L", "cad,matlab", "--depend", "afterok:alpha.1"], "jobs of the grid only"),
                (["-L", "nobody"], "has the licence nobody")):
            done = self.nui("alice", "submit", "-A", "phys", "-t", 60, *options, script, code=1)
            self.assertIn(words, done.stderr)
        self.assertIn("no licence nobody", self.nui("alice", "licences", "nobody", code=5).stderr)

    # ---- the same request once more

    def jobs_named(self, name):
        return [j["job_id"] for j in json.loads(self.nui("alice", "jobs", "--ended", "--json").stdout) if j["name"] == name]

    def test_a_key_names_the_request(self):
        """Sent again with its key it is the same job, whatever else it says, also after kill -9 of nui-meta."""
        script = self.tasks_script()
        def send(*options):
            return self.nui("alice", "submit", "-A", "phys", "-t", 60, "--key", "run 7", *options, script).stdout.split()
        first = send()
        self.restart_meta()
        self.assertEqual(send("-n", 2), first)
        several = send("--array", "1-3")
        self.assertTrue(len(several) == 1 and several[0].endswith("[1-3]") and several != first, several)
        self.assertEqual(send("--array", "1-3"), several)
        done = self.nui("alice", "submit", "-A", "phys", "-t", 60, "--key", "", script, code=2)
        self.assertIn("--key has 1 to 200 characters", done.stderr)

    def test_a_submission_without_answer_is_asked_for(self):
        """Its client is killed while the metascheduler is silent: the same command again is the same job."""
        kept = self.grid.layout.work / "state-alice" / "nui" / "unanswered"
        script = self.tasks_script()
        args = ("submit", "-A", "phys", "-t", 60, "--max-cost", 100, "--name", "unanswered", script)
        meta = self.grid.daemons["meta"].process.send(signal.SIGSTOP)
        try:
            client = subprocess.Popen([str(self.grid.programs["nui"]), *map(str, args)], stdin=subprocess.DEVNULL,
                                      env=self.grid.environment("alice"), cwd=self.grid.layout.work)
            wait_for("it to be signed and kept", lambda: kept.is_dir() and list(kept.iterdir()), 60)
            client.kill()
            client.wait(60)
        finally:
            os.kill(meta, signal.SIGCONT)
        done = self.nui("alice", *args)
        self.assertIn("had no answer: it is sent again", done.stderr)
        self.assertEqual(self.jobs_named("unanswered"), done.stdout.split())
        self.assertEqual(list(kept.iterdir()), [])
        second = self.nui("alice", *args) # answered: the next one is another job
        self.assertEqual(second.stderr, "")
        self.assertNotEqual(second.stdout, done.stdout)

    # ---- what is wrong is said

    def test_bad_input(self):
        script = self.tasks_script()
        for options, words in (
                (["--trl", "8,8", "-t", 60], "twice"),
                (["--trl", "8,x", "-t", 60], "TASKS"),
                (["--trl", "8@60,4"], "no walltime"),
                (["--trl", "2,4", "-n", 2, "-t", 60], "--tasks"),
                (["--trl", "2,4", "-N", 2, "-t", 60], "--nodes"),
                (["-t", 60, "--prefer", "soon"], "earliest or cheapest"),
                (["-t", 60, "--start-by", "@1000"], "in the past")):
            done = self.nui("alice", "submit", "-A", "phys", *options, script, code=2)
            self.assertIn(words, done.stderr)
        done = self.nui("alice", "submit", "-A", "phys", "--trl", "100,200", "-t", 60, script, code=1)
        self.assertIn("larger than any", done.stderr)


if __name__ == "__main__":
    main()
