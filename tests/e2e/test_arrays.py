"""Arrays are one thing: one signature, one id, one line, spread over the sites, with one limit for the whole grid."""
import json
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from fixture import GridCase, main, wait_for

LIVE = {"Pending", "Queued", "Reserved", "Running"}


def counts(text):
    """"Running:3 Queued:7" as numbers."""
    return {word.split(":")[0]: int(word.split(":")[1]) for word in text.split()}


class Arrays(GridCase):
    def submit_array(self, indexes, *options, script=None):
        script = script or self.write("true.sh", "#!/bin/sh\ntrue\n")
        done = self.nui("alice", "submit", "-A", "phys", "-t", "10:00", "--max-cost", 10000, "--array", indexes,
                        *options, script)
        (ident,) = done.stdout.split()
        return ident

    def array(self, ident, who="alice"):
        """State to how many."""
        both = json.loads(self.nui(who, "status", ident, "--json").stdout)
        return {row["state"]: int(row["count"]) for row in both["array"]}

    def row(self, ident, *options):
        rows = json.loads(self.nui("alice", "jobs", "--ended", "--json", *options).stdout)
        return [r for r in rows if r["job_id"] == ident]

    def restart_meta(self):
        self.grid.daemons["meta"].kill()
        self.grid.daemons["meta"].start()
        self.grid.wait_serving()

    def wait_over(self, ident, seconds=300):
        return wait_for(f"{ident} to be over", lambda: (lambda a: not LIVE & set(a) and a)(self.array(ident)), seconds)

    def test_one_id_one_line(self):
        ident = self.submit_array("0-4,9", "--name", "one")
        number = ident.split("[")[0]
        self.assertEqual(ident, f"{number}[0-4,9]")
        self.assertEqual(self.wait_over(ident), {"Completed": 6})
        rows = self.row(ident, "--name", "one")
        self.assertEqual([counts(r["state"]) for r in rows], [{"Completed": 6}])
        self.assertEqual([r["job_id"] for r in json.loads(self.nui(
            "alice", "jobs", "--ended", "--elements", "--name", "one", "--json").stdout)],
            [f"{number}[{i}]" for i in (0, 1, 2, 3, 4, 9)])
        both = json.loads(self.nui("alice", "status", f"{number}[3-9]", "--json").stdout)
        self.assertEqual([(r["state"], int(r["count"]), r["indexes"]) for r in both["array"]], [("Completed", 3, "3-4,9")])
        one = json.loads(self.nui("alice", "status", f"{number}[9]", "--json").stdout)
        self.assertEqual(one["job"]["job_id"], f"{number}[9]")
        self.assertEqual(one["job"]["state"], "Completed")
        self.assertIn("no such index", self.nui("alice", "status", f"{number}[5-8]", code=5).stderr)
        self.assertIn("one of its jobs is needed", self.nui("alice", "output", number, code=1).stderr)
        self.nui("bob", "status", number, code=5)
        # one signature
        with closing(sqlite3.connect(f"file:{self.grid.layout.state}/meta/meta.sqlite?mode=ro", uri=True)) as db:
            have = db.execute("SELECT count(*), sum(length(envelope) > 0) FROM job WHERE array_of = ?",
                              (number.split(".")[1],)).fetchone()
        self.assertEqual(have, (6, 1))
        # each is a run of its own for the bank
        wait_for("each to be charged", lambda: all(len(self.charges(f"{number}[{i}]")) == 1 for i in (0, 1, 2, 3, 4, 9)), 60)

    def test_each_knows_its_index(self):
        script = self.write("index.sh", "#!/bin/sh\necho \"$NUI_ARRAY_INDEX\"\n")
        home = self.grid.layout.work / "arrays"
        home.mkdir()
        ident = self.nui("alice", "submit", "-A", "phys", "-t", "1:00", "--array", "3-7:2", "--save", home, script).stdout.split()[0]
        number = ident.split("[")[0]
        self.assertEqual([(home / f"{number}[{i}].out").read_text() for i in (3, 5, 7)], ["3\n", "5\n", "7\n"])

    def test_one_script_in_memory(self):
        """2,000 jobs of a script of 100 kB: not one of it has a copy."""
        def memory():
            text = (Path("/proc") / str(self.grid.daemons["meta"].pid()) / "status").read_text()
            return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) >> 10
        script = self.write("large.sh", "#!/bin/sh\n" + 10000 * "#23456789\n")
        before = memory()
        ident = self.submit_array("1-2000%1", "--hold", script=script)
        self.assertLess(memory() - before, 150)
        self.restart_meta()
        self.assertEqual(sum(self.array(ident).values()), 2000)
        self.assertLess(memory() - before, 150)
        self.nui("alice", "cancel", ident.split("[")[0])
        self.wait_over(ident)

    def test_a_limit_for_the_grid(self):
        """%3: never more than three are with sites, wherever; the next come as those end."""
        script = self.gated_script("limit")
        ident = self.submit_array("1-7%3", script=script)
        number = ident.split("[")[0]
        try:
            wait_for("three to run", lambda: self.array(ident).get("Running") == 3, 60)
            self.assertEqual(self.array(ident), {"Running": 3, "Pending": 4})
            waits = json.loads(self.nui("alice", "status", f"{number}[7]", "--json").stdout)["job"]
            self.assertIn("3 of it may be with sites", waits["reason"])
            self.restart_meta()
            self.assertEqual(self.array(ident), {"Running": 3, "Pending": 4})
            # waiting ones are cancelled one by one, or many
            self.assertIn("2 jobs", self.nui("alice", "cancel", f"{number}[5-6]").stdout)
            self.assertEqual(self.array(ident), {"Running": 3, "Pending": 2, "Cancelled": 2})
            self.nui("bob", "cancel", number, code=5)
        finally:
            self.open_gate("limit")
        self.assertEqual(self.wait_over(ident), {"Completed": 5, "Cancelled": 2})

    def test_held_by_range(self):
        script = self.gated_script("range")
        ident = self.submit_array("1-4%1", script=script)
        number = ident.split("[")[0]
        wait_for("one to run", lambda: self.array(ident).get("Running") == 1, 60)
        self.nui("alice", "sethold", "-u", f"{number}[2-3]")
        self.open_gate("range")
        wait_for("those that are not held", lambda: self.array(ident).get("Completed") == 2, 60)
        self.assertEqual(self.array(ident), {"Completed": 2, "Pending": 2})
        self.nui("alice", "releasehold", "-u", number)
        self.assertEqual(self.wait_over(ident), {"Completed": 4})

    def test_watched_and_renewed(self):
        """By range: one line whenever another number is in a state; leave for all of it by one signature."""
        script = self.gated_script("watched")
        ident = self.submit_array("1-4%2", "--valid", "+1:00:00", script=script)
        number = ident.split("[")[0]
        wait_for("two to run", lambda: self.array(ident).get("Running") == 2, 60)
        self.nui("alice", "sethold", "-u", f"{number}[4]")
        watch = subprocess.Popen([self.grid.programs["nui"], "watch", f"{number}[1-3]"], stdout=subprocess.PIPE, text=True,
                                 env=self.grid.environment("alice"))
        try:
            self.assertRegex(watch.stdout.readline(), r"^grid\.\d+\[1-3\] Pending:1 Running:2  ")
            self.assertIn(f"{number}: 4 jobs may go on until", self.nui("alice", "renew", number, "--for", "2:00:00").stdout)
            self.assertIn("for longer than that already", self.nui("alice", "renew", f"{number}[2-4]", "--for", "1:30:00",
                                                                    code=1).stderr)
            self.assertIn("3 jobs may go on", self.nui("alice", "renew", f"{number}[2-4]", "--for", "3:00:00").stdout)
            self.nui("bob", "renew", number, code=5)
            self.open_gate("watched")
            lines = watch.communicate(timeout=600)[0].split("\n")
            self.assertEqual(watch.returncode, 0)
            self.assertIn("Completed:3", lines[-2])
        finally:
            watch.kill()
            watch.wait(60)
        self.restart_meta()  # what was renewed is so after a restart
        self.assertIn("for longer than that already", self.nui("alice", "renew", f"{number}[4]", "--for", "2:30:00", code=1).stderr)
        self.nui("alice", "cancel", f"{number}[4]")
        self.wait_over(ident)
        self.assertIn("all of it has ended", self.nui("alice", "renew", number, code=1).stderr)
        self.nui("alice", "watch", number, code=1)
        self.assertIn("no file of", self.nui("alice", "restage", f"{number}[1-4]", code=1).stderr)

    def test_waited_for(self):
        """By all of it: also by those that wait when nothing of it runs."""
        script = self.gated_script("first")
        ident = self.submit_array("1-3%1", script=script)
        number = ident.split("[")[0]
        wait_for("one to run", lambda: self.array(ident).get("Running") == 1, 60)
        self.nui("alice", "sethold", "-u", f"{number}[2-3]")
        self.open_gate("first")
        wait_for("it to end", lambda: self.array(ident) == {"Completed": 1, "Pending": 2}, 60)
        after = self.grid.submit("alice", "-A", "phys", "-t", "1:00", "--depend", f"afterok:{number}",
                                 self.write("after.sh", "#!/bin/sh\ntrue\n"))
        wait_for("it to wait", lambda: "waits for" in (self.status("alice", after)["reason"] or ""), 30)
        self.nui("alice", "releasehold", "-u", number)
        self.wait_state(after, ("Completed",))
        self.assertEqual(self.array(ident), {"Completed": 3})

    def test_two_hundred_over_sites(self):
        """kill -9 of the metascheduler while they are placed, then again in the middle of a cancel."""
        script = self.gated_script("many")
        ident = self.submit_array("1-200", "--component", "a:site=alpha,beta,tasks=1", script=script)
        number = ident.split("[")[0]
        self.grid.daemons["meta"].kill()
        self.grid.daemons["meta"].start()
        self.grid.wait_serving()
        try:
            wait_for("sites to have them", lambda: self.array(ident).get("Pending", 0) == 0 and
                     self.array(ident).get("Running", 0) == 16, 300)
            (row,) = self.row(ident)
            self.assertEqual(row["sites"], "alpha,beta")
            self.assertEqual(sum(self.array(ident).values()), 200)
            self.nui("alice", "cancel", f"{number}[101-200]")
            self.restart_meta()
            wait_for("half of it to be over", lambda: self.array(f"{number}[101-200]").keys() == {"Cancelled"}, 120)
        finally:
            self.open_gate("many")
        self.assertEqual(self.wait_over(ident, 600), {"Completed": 100, "Cancelled": 100})
        # none ran twice, and none that was cancelled
        self.assertEqual(len(self.began("many")), 100)
        self.settled()
        self.assert_books_close()

    def test_co_allocated(self):
        """Each index has a part at both sites at one moment, or none; two at a time; kill -9 of all three; cancelled as one."""
        home = self.job_dir()
        script = self.write("pair.sh", f"""#!/bin/sh
echo "$NUI_ARRAY_INDEX $NUI_COMPONENT" >> {home}/pair.began
chmod a+rw {home}/pair.began 2>/dev/null
until [ -e {home}/pair.gate ]; do sleep 0.05; done
echo "$NUI_ARRAY_INDEX $NUI_COMPONENT"
""")
        ident = self.submit_array("1-5%2", "--component", "left:site=alpha,tasks=1", "--component", "right:site=beta,tasks=1",
                                  script=script)
        number = ident.split("[")[0]
        self.assertEqual(ident, f"{number}[1-5]")
        try:
            wait_for("two to run, both halves", lambda: len(self.began("pair")) == 4, 90)
            for name in ("alpha", "beta", "meta"):
                self.grid.daemons[name].kill()
                self.grid.daemons[name].start()
            self.grid.wait_serving()
            wait_for("both to run on", lambda: self.array(ident) == {"Running": 2, "Pending": 3}, 90)
            self.assertEqual(self.began("pair"), [f"{i} {part}" for i in (1, 2) for part in ("left", "right")])
            one = json.loads(self.nui("alice", "status", f"{number}[2]", "--json").stdout)
            self.assertEqual([c["site"] for c in one["components"]], ["alpha", "beta"])
            self.assertEqual(len({c["start_time"] for c in one["components"]}), 1)
            self.nui("alice", "sethold", "-u", f"{number}[2-3]")  # what runs cannot wait
            self.nui("alice", "cancel", f"{number}[4]")
            self.assertEqual(self.array(ident), {"Running": 2, "Pending": 2, "Cancelled": 1})
        finally:
            self.open_gate("pair")
        wait_for("all but the held one", lambda: self.array(ident) == {"Completed": 3, "Pending": 1, "Cancelled": 1}, 120)
        self.nui("alice", "releasehold", "-u", f"{number}[3]")
        self.assertEqual(self.wait_over(ident), {"Completed": 4, "Cancelled": 1})
        self.assertEqual(self.began("pair"), [f"{i} {part}" for i in (1, 2, 3, 5) for part in ("left", "right")])
        self.assertEqual(self.nui("alice", "output", f"{number}[5]", "right").stdout, "5 right\n")
        wait_for("each half to be charged", lambda: all(len(self.charges(f"{number}[{i}]")) == 2 for i in (1, 2, 3, 5)), 60)
        self.assertEqual(self.charges(f"{number}[4]"), [])
        self.settled()
        self.assert_books_close()

    def test_bad_input(self):
        script = self.write("bad.sh", "#!/bin/sh\ntrue\n")
        for indexes, words in (("1-10001", "more than 10000"), ("3,3", "given twice"), ("5-2", "wanted indexes")):
            done = self.grid.nui("alice", "submit", "-A", "phys", "-t", 60, "--array", indexes, script)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        pair = ["--component", "a:site=alpha,tasks=1", "--component", "b:site=beta,tasks=1"]
        done = self.nui("alice", "submit", "-A", "phys", "-t", 60, "--array", "1-5001", *pair, script, code=1)
        self.assertIn("10000 components in all", done.stderr)
        for ident in ("grid.1[", "grid.1[3-1]", "grid.1[x]"):
            self.assertEqual(self.grid.nui("alice", "status", ident).returncode, 2, ident)
        plain = self.grid.submit("alice", "-A", "phys", "-t", "1:00", script)
        self.assertIn("no array", self.nui("alice", "cancel", f"{plain}[1-3]", code=5).stderr)


if __name__ == "__main__":
    main()
