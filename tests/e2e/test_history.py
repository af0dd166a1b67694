"""What ran and what it used: nui jobs picks, orders and sums up jobs that run and jobs that have ended."""
import json
import os
import time
import unittest
from decimal import Decimal

from fixture import GridCase, main, wait_for


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class History(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.grid.layout.config("meta")
        path.write_text(path.read_text() + "JOBHISTORYTIME 1\n")
        cls.restart_meta("stop")

    @classmethod
    def restart_meta(cls, how):
        getattr(cls.grid.daemons["meta"], how)()
        cls.grid.daemons["meta"].start()
        cls.grid.wait_serving()

    def submit(self, name, code=0, *options):
        script = self.write(f"{name}.sh", f"#!/bin/sh\nexit {code}\n")
        return self.nui("alice", "submit", "-A", "phys", "-t", "60", "--name", name, *options, script).stdout.strip()

    def jobs(self, *args, who="alice"):
        return json.loads(self.nui(who, "jobs", "--json", *args).stdout)

    def names(self, *args, **options):
        return [job["name"] for job in self.jobs(*args, **options)]

    def test_ended_ones(self):
        began = int(time.time())
        ended = {"good-1": 0, "good-2": 0, "bad": 7}
        for name, code in ended.items():
            self.wait_state(self.submit(name, code, "--tasks", "2" if name == "good-2" else "1"), ("Completed", "Failed"))
        held = self.submit("waits", 0, "--hold")
        self.assertEqual(self.names(), ["waits"])
        self.assertEqual(self.names("--ended"), [*ended, "waits"])
        self.assertEqual(self.names("--state", "failed"), ["bad"])
        self.assertEqual(self.names("--name", "good-*", "--ended"), ["good-1", "good-2"])
        self.assertEqual(self.names("--from", f"@{began - 1}"), [*ended, "waits"])
        self.assertEqual(self.names("--to", f"@{began - 5}"), [])
        self.assertEqual(self.names("--ended", "--account", "nobody,phys"), [*ended, "waits"])
        self.assertEqual(self.names("--ended", "--account", "nobody"), [])
        self.assertEqual(self.names("--ended", "--site", "nowhere"), [])
        self.assertEqual(self.names("--ended", "--limit", "2"), ["bad", "waits"])
        self.assertEqual(self.names("--ended", "--all", "--user", "alice", who="operator"), [*ended, "waits"])
        self.assertEqual(self.names("--ended", "--all", "--user", "bob", who="operator"), [])
        self.assertEqual([(job["exit_code"], job["procs"]) for job in self.jobs("--ended", "--name", "[gb]*")],
                         [(0, 1), (0, 2), (7, 1)])
        row = self.jobs("--ended", "--format", "end_time,elapsed,name", "--sort", "-name")
        self.assertEqual([job["name"] for job in row], ["waits", "good-2", "good-1", "bad"])
        self.assertEqual(list(row[0]), ["end_time", "elapsed", "name"])
        self.assertEqual((row[0]["end_time"], row[0]["elapsed"]), (None, None))
        self.assertRegex(row[1]["elapsed"], r"^00:0\d:\d\d$")
        said = self.nui("alice", "jobs", "--ended", "--state", "Completed,Failed", "--totals").stdout
        self.assertRegex(said, r"\n3 jobs, 4 processors, 0\.\d\d processor-hours\n$")
        for args, why in ((("--state", "Lost"), "there is no state 'Lost'"), (("--format", "cost"), "no column 'cost'"),
                          (("--sort", "-x"), "no column 'x'"), (("--user", "bob"), "is for --all")):
            self.assertIn(why, self.nui("alice", "jobs", *args, code=2).stderr)
        self.nui("alice", "cancel", held)

    def test_what_it_cost(self):
        ident = self.submit("paid", 3, "--tasks", "2")
        self.wait_state(ident, ("Failed",))
        job = wait_for("the charge", lambda: (lambda s: s["charged"] is not None and s)(self.status("alice", ident)), 60,
                       self.grid.layout.log)
        self.assertEqual(job["exit"], "exit code 3")
        self.assertEqual(job["components"][0]["charged"], job["charged"])
        booked = sum(line["posted"] for line in self.charges(ident))
        self.assertEqual(booked, -Decimal(str(job["charged"])))
        self.assertLess(booked, 0)
        said = self.nui("alice", "status", ident).stdout
        self.assertIn("exit code 3\n", said)
        self.assertFalse([line for line in said.splitlines() if line.split(":")[-1].strip() == "-"], said)
        killed = self.nui("alice", "submit", "-A", "phys", "-t", "60",
                          self.write("killed.sh", "#!/bin/sh\nkill -9 $$\n")).stdout.strip()
        self.wait_state(killed, ("Failed",))
        self.assertEqual(self.status("alice", killed)["exit"], "killed by signal 9 (Killed)")

    def test_more_than_a_page(self):
        """More than the daemon gives at a time."""
        array = self.nui("alice", "submit", "-A", "phys", "-t", "60", "--hold", "--array", "1-620", "--name", "many",
                         self.write("many.sh", "#!/bin/sh\ntrue\n")).stdout.strip()
        idents = [f"{array.split('[')[0]}[{i}]" for i in range(1, 621)]
        self.assertEqual([job["job_id"] for job in self.jobs("--name", "many", "--elements")], idents)
        done = self.nui("alice", "jobs", "--json", "--name", "many", "--elements", "--limit", "600")
        self.assertEqual([job["job_id"] for job in json.loads(done.stdout)], idents[20:])
        self.assertIn("older ones", done.stderr)

    def test_what_was_forgotten(self):
        """Once its signature has ended, too; not what a live job waits for; the bank has it still."""
        began, short = f"@{int(time.time()) - 1}", ("--valid", "8")
        gone, kept = (self.submit(name, 3, *short) for name in ("gone", "kept"))
        follows = self.submit("follows", 0, "--depend", f"afterany:{kept}", "--hold")
        array = self.submit("row", 0, *short, "--array", "1-3").split("[")[0]
        left = {*(f"{array}[{i}]" for i in (1, 2, 3)), gone}
        later = self.submit("later")
        for ident in (kept, later):
            self.wait_state(ident, ("Completed", "Failed"))

        def there(*args, **options):
            return {job["job_id"]: job for job in self.jobs("--ended", "--elements", *args, **options)}
        wait_for("the four to be forgotten", lambda: not left & there().keys(), 60, self.grid.layout.log)
        self.assertLessEqual({kept, follows, later}, there().keys())
        self.assertIn("is not kept here any more", self.nui("alice", "status", gone, code=5).stderr)
        self.assertIn("--from TIME asks the bank", self.nui("alice", "jobs", "--ended").stderr)
        self.assertIn("neither their names nor their states",
                      self.nui("alice", "jobs", "--from", began, "--state", "Failed").stderr)
        for how in ("kill", "stop"):
            self.restart_meta(how)
            said = self.nui("alice", "jobs", "--json", "--cost", "--from", began)
            self.assertIn("4 of them, ended by ", said.stderr)
            rows = {job["job_id"]: job for job in json.loads(said.stdout)}
            self.assertLessEqual({*left, kept, follows, later}, rows.keys())
            self.assertEqual([row["job_id"] for row in json.loads(said.stdout)][-1], later)
        row = rows[gone]
        self.assertEqual([row[key] for key in ("name", "user", "account", "state", "procs", "exit_code", "submit_time")],
                         [None, "alice", "phys", "Unknown", 1, None, None])
        self.assertRegex(row["elapsed"], r"^00:0\d:\d\d$")
        self.assertGreater(row["charged"], 0)
        self.assertTrue(row["sites"] and row["end_time"])
        self.assertFalse(left & there("--from", began, who="bob").keys())
        self.assertLessEqual(left, there("--from", began, "--all", who="operator").keys())
        self.assertFalse(left & there("--from", began, "--site", "nowhere").keys())
        self.grid.daemons["bank"].stop()
        said = self.nui("alice", "jobs", "--json", "--from", began)
        self.assertIn("the bank cannot be asked", said.stderr)
        self.assertIn(kept, said.stdout)
        self.grid.daemons["bank"].start()
        self.nui("alice", "cancel", follows)
        wait_for("what nobody waits for to be forgotten", lambda: kept not in there(), 60, self.grid.layout.log)


if __name__ == "__main__":
    main()
