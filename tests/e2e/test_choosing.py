"""When, where and how large: sizes to choose from, alternatives, cheapest before a deadline, the latest
start, through the real client and three sites of different prices."""
import json

from fixture import GridCase, layout, main, wait_for


class Choosing(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rate("beta", "2")

    @classmethod
    def rate(cls, site, value):
        assert cls.grid.nui(layout.OPERATOR, "rate", "set", site, value).returncode == 0

    def rows(self, *options, code=0):
        return json.loads(self.nui("alice", "estimate", "--json", "-A", "phys", *options, code=code).stdout)

    def submit(self, *options):
        return self.grid.submit("alice", "-A", "phys", *options)

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
