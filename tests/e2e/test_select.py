"""Cancel, hold and status by what jobs are like: filters, ranges, and a question before more than ten."""
import json
import os
import pty
import subprocess

from fixture import GridCase, layout, main, wait_for


class Select(GridCase):
    def submit(self, name, *options, script=None):
        script = script or self.gated_script("never")
        return self.nui("alice", "submit", "-A", "phys", "-t", "10:00", "--max-cost", 1000, "--name", name, *options,
                        script).stdout.split()[0]

    def states(self, *options, who="alice"):
        rows = json.loads(self.nui(who, "jobs", "--ended", "--elements", "--json", *options).stdout)
        return {row["job_id"]: row["state"] for row in rows}

    def reach(self, what, wanted, *options):
        return wait_for(what, lambda: self.states(*options) == wanted, 60)

    def tearDown(self):
        """No test's jobs are another's."""
        self.grid.nui("alice", "cancel", "--all", "--yes")

    def test_cancel_by_filter(self):
        runs = self.submit("run-1")
        self.wait_state(runs, ("Running",))
        held = self.submit("run-2", "--hold")
        other = self.submit("other", "--hold")
        array = self.submit("run-3", "--array", "1-4", "--hold")
        number = array.split("[")[0]
        self.wait_state(held, ("Queued",))
        self.assertIn("no job that has not ended is like that",
                      self.nui("alice", "cancel", "--name", "nothing*", code=5).stderr)
        self.assertIn("there is no state 'Waiting'", self.nui("alice", "cancel", "--state", "Waiting", code=2).stderr)
        self.assertIn("which jobs?", self.nui("alice", "cancel", code=2).stderr)
        self.assertIn("not both", self.nui("alice", "cancel", "--all", runs, code=2).stderr)
        # of those that are named only those that are like that
        self.nui("alice", "cancel", "--state", "Running", held, other, code=5)
        done = self.nui("alice", "cancel", "--name", "run-*", "--state", "Pending,Queued", "--json")
        self.assertEqual(sum(row["jobs"] for row in json.loads(done.stdout)), 5)
        self.reach("five to be over", {runs: "Running", held: "Cancelled",
                                       **{f"{number}[{i}]": "Cancelled" for i in range(1, 5)}}, "--name", "run-*")
        self.assertEqual(self.states("--name", "other").keys(), {other})
        # another's only for operators, who say whose
        self.assertIn("only operators", self.nui("bob", "cancel", "--user", "alice", code=3).stderr)
        self.nui("bob", "cancel", "--all", code=5)
        self.nui(layout.OPERATOR, "cancel", "--all", code=5)
        site = self.status("alice", runs)["components"][0]["site"]
        self.assertIn(f"job {runs} cancelled", self.nui(layout.OPERATOR, "cancel", "--user", "al*", "--site", site,
                                                        "--state", "Running").stdout)
        self.reach("it to end", {runs: "Cancelled"}, "--name", "run-1")
        self.assertNotEqual(self.states("--name", "other"), {other: "Cancelled"})

    def test_those_that_wait_first(self):
        """Also over several jobs, and of an array those that wait are one call before those that run."""
        array = self.submit("order", "--array", "1-6%2")
        number = array.split("[")[0]
        wait_for("two to run", lambda: list(self.states("--name", "order").values()).count("Running") == 2, 60)
        running = {i for i, s in self.states("--name", "order").items() if s == "Running"}
        done = self.nui("alice", "cancel", "--name", "order")
        lines = done.stdout.split("\n")[:-1]
        self.assertEqual(len(lines), 2, done.stdout)
        self.assertIn("4 jobs cancelled", lines[0])
        self.assertIn("2 jobs cancelled", lines[1])
        self.assertEqual(running, {f"{number}[1]", f"{number}[2]"})
        self.reach("all to be over", {f"{number}[{i}]": "Cancelled" for i in range(1, 7)}, "--name", "order")

    def test_asked_before_more_than_ten(self):
        array = self.submit("many", "--array", "1-11", "--hold")
        number = array.split("[")[0]
        self.assertIn("these are 11 jobs: --yes", self.nui("alice", "cancel", "--name", "many", code=2).stderr)
        self.assertNotIn("Cancelled", self.states("--name", "many").values())
        # ten are not asked about; jobs that are named never
        self.nui("alice", "jobhold", "--name", "many", f"{number}[1-10]")

        def terminal(answer):
            lead, end = pty.openpty()
            os.write(lead, answer)
            try:
                return subprocess.run([self.grid.programs["nui"], "cancel", "--name", "many"], stdin=end, stderr=end,
                                      stdout=subprocess.PIPE, text=True, timeout=600,
                                      env=self.grid.environment("alice"))
            finally:
                os.close(end)
                os.close(lead)
        refused = terminal(b"n\n")
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertNotIn("Cancelled", self.states("--name", "many").values())
        done = terminal(b"y\n")
        self.assertEqual(done.returncode, 0)
        self.assertIn("cancelled", done.stdout)
        self.reach("all to be over", {f"{number}[{i}]": "Cancelled" for i in range(1, 12)}, "--name", "many")

    def test_hold_and_status(self):
        script = self.gated_script("kept")
        array = self.submit("kept", "--array", "1-4%1", script=script)
        number = array.split("[")[0]
        wait_for("one to run", lambda: "Running" in self.states("--name", "kept").values(), 60)
        self.assertIn("3 jobs held", self.nui("alice", "jobhold", "--name", "kept", "--state", "Pending").stdout)
        self.open_gate("kept")
        self.reach("the first to end", {f"{number}[1]": "Completed", **{f"{number}[{i}]": "Pending" for i in (2, 3, 4)}},
                   "--name", "kept")
        self.nui("alice", "jobrelease", f"{number}[3]")
        wait_for("the third", lambda: self.states("--name", "kept")[f"{number}[3]"] == "Completed", 60)
        (shown,) = json.loads(self.nui("alice", "status", "--name", "kept", "--json").stdout)
        self.assertEqual(shown["job"]["job_id"], f"{number}[2,4]")
        self.assertEqual([(r["state"], r["count"]) for r in shown["array"]], [("Pending", 2)])
        single = self.submit("plain", "--hold")
        both = json.loads(self.nui("alice", "status", "--name", "kept", "--state", "Completed", number, single,
                                   "--json").stdout)
        self.assertEqual([s["job"]["job_id"] for s in both], [f"{number}[1,3]"])
        both = json.loads(self.nui("alice", "status", number, single, "--json").stdout)
        self.assertEqual([s["job"]["job_id"] for s in both], [array, single])
        self.assertIn("--csv is of one job", self.nui("alice", "status", number, single, "--csv", code=2).stderr)
        self.assertEqual(json.loads(self.nui("alice", "jobrelease", "--name", "kept", "--json").stdout),
                         [{"job_id": f"{number}[2,4]", "jobs": 2}])
        self.reach("all of it", {f"{number}[{i}]": "Completed" for i in range(1, 5)}, "--name", "kept")


if __name__ == "__main__":
    main()
