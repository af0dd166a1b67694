"""Daemons whose wall clock steps, by hours and days, ahead and back, while the others' stay."""
import json
import os
import pwd
import time
from datetime import datetime, timezone

from fixture import BUILD, GridCase, layout, main, wait_for

HOUR = 3600


class Clocks(GridCase):
    @classmethod
    def fund(cls):
        """Bank and alpha have clocks that can be set."""
        super().fund()
        for name in ("bank", "alpha"):
            daemon = cls.grid.daemons[name]
            daemon.stop()
            cls.clock_file(name).write_bytes(bytes(8))
            daemon.env = {"LD_PRELOAD": str(BUILD / "tests/e2e/libnui_shiftclock.so"),
                          "NUI_TEST_CLOCK": str(cls.clock_file(name)),
                          "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
            if name == "bank":
                cls.hear()
            daemon.start()
        cls.grid.wait_serving()

    @classmethod
    def hear(cls):
        """The bank's operator has a program that hears of what is wrong."""
        program = cls.job_dir() / "hook"
        program.write_text(f"#!/bin/sh\necho \"$1|$2|$3\" >> {cls.job_dir()}/heard\n")
        program.chmod(0o755)
        with open(cls.grid.layout.config("bank"), "a", encoding="utf-8") as f:
            f.write(f"NOTIFICATIONPROGRAM {program}\nNOTIFICATIONACCOUNT {pwd.getpwuid(os.geteuid()).pw_name}\n"
                    "NOTIFICATIONEVENTS CLOCKAHEAD\n")

    def heard(self):
        path = self.job_dir() / "heard"
        return [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []

    @classmethod
    def clock_file(cls, name):
        return cls.grid.layout.state / f"clock-{name}"

    def set_clock(self, name, seconds):
        with open(self.clock_file(name), "r+b") as f:
            f.write(int(seconds * 1_000_000).to_bytes(8, "little", signed=True))

    def log(self, name):
        return self.grid.daemons[name].log.read_text()

    def deposit(self):
        return self.grid.nui(layout.AGENCY, "deposit", "-A", "phys", 1)

    def wait_writing(self):
        wait_for("the bank to write again", lambda: self.deposit().returncode == 0, 30, self.grid.daemons["bank"].log)

    def newest(self):
        """Seconds from now to the newest line of the statement."""
        at = datetime.fromisoformat(self.statement()["lines"][-1]["time"].replace("Z", "+00:00"))
        return (at - datetime.now(timezone.utc)).total_seconds()

    def test_the_bank(self):
        """Nothing is written, and nothing expires, by a clock that is two hours ahead; unless an operator says so."""
        self.nui(layout.OPERATOR, "account", "create", "brief", "--project", "physics")
        self.nui(layout.AGENCY, "deposit", "-A", "brief", 1000, "--end", "+1:00:00")
        before, heard = len(self.statement()["lines"]), len(self.heard())
        self.set_clock("bank", 2 * HOUR)
        refused = self.deposit()
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertRegex(refused.stderr, "the bank.s clock is (2:00:0|1:59:5)")
        self.assertIn("nui clock accept", refused.stderr)
        self.assertEqual(len(refused.stderr.splitlines()), 1)
        wait_for("a line in the log", lambda: "clock_ahead" in self.log("bank"), 10)
        told = wait_for("the operator's program", lambda: self.heard()[heard:], 60)
        self.assertEqual(told[0][:2], ["ClockAhead", "bank"])
        self.assertRegex(told[0][2], "^the bank.s clock is 0?(2:00:0|1:59:5).* nothing is written until it is right, or an "
                                     r"operator says that it is \(nui clock accept\)$")
        self.assertIn(self.exact(layout.OPERATOR, "clock")["ahead"][:6], ("2:00:0", "1:59:5"))
        # reading goes on; what has not ended has not expired
        self.assertEqual(self.balance("brief")["available"], 1000)
        self.assertEqual(len(self.statement()["lines"]), before)
        # so it is for a bank that begins with such a clock
        self.grid.daemons["bank"].stop()
        self.grid.daemons["bank"].start()
        wait_for("it to be refused", lambda: "clock is" in self.deposit().stderr, 30)
        self.grid.wait_bank()
        self.assertEqual(self.balance("brief")["available"], 1000)

        self.set_clock("bank", 0)
        self.wait_writing()
        self.assertLess(abs(self.newest()), 60)
        self.assertIn("clock_believed", self.log("bank"))
        wait_for("that it is over", lambda: self.heard()[-1] == ["ClockBelieved", "bank", "the bank's clock is believed again"], 60)
        self.assertEqual([line[0] for line in self.heard()[heard:]], ["ClockAhead", "ClockAhead", "ClockBelieved"])  # a restart between
        self.assertEqual(self.balance("brief")["available"], 1000)
        nothing = self.grid.nui(layout.OPERATOR, "clock", "accept", "-d", "why not")
        self.assertEqual(nothing.returncode, 1, nothing.stderr)

        # an operator's word, in the history
        self.set_clock("bank", HOUR / 2)
        self.assertEqual(self.deposit().returncode, 4)
        self.nui("alice", "clock", "accept", "-d", "I say so", code=3)
        self.nui(layout.AGENCY, "clock", "accept", "-d", "we say so", code=3)
        self.nui(layout.OPERATOR, "clock", "accept", code=2)
        self.nui(layout.OPERATOR, "clock", "accept", "-d", "the database had stood still")
        self.assertEqual(self.deposit().returncode, 0)
        self.assertGreater(self.newest(), HOUR / 2 - 60)
        self.nui(layout.OPERATOR, "verify")
        self.nui(layout.OPERATOR, "verify", "--rules")

        # back again: the ledger does not go back, and says so
        self.set_clock("bank", 0)
        self.assertEqual(self.deposit().returncode, 0)
        self.assertGreater(self.newest(), HOUR / 2 - 60)
        wait_for("a line in the log", lambda: "clock_behind" in self.log("bank"), 10)
        self.assert_books_close()

    def clock_of(self, site):
        done = self.nui("alice", "sites", "--json")
        return next(row for row in json.loads(done.stdout) if row["site"] == site)["clock"]

    def test_differences(self):
        """A clock that is more than a minute from the metascheduler's is named to whoever looks at the sites."""
        self.assertEqual((self.clock_of("alpha"), self.clock_of("beta"), self.nui("alice", "sites").stderr), (None, None, ""))
        for hours, word in ((2, "ahead"), (-2, "behind")):
            self.set_clock("alpha", hours * HOUR)
            said = wait_for("alpha's clock", lambda: (c := self.clock_of("alpha")) and word in c and c, 60)
            self.assertRegex(said, f"^0?(2:00:0.|1:59:..)[.0-9]* {word}$")
            self.assertIsNone(self.clock_of("beta"))
        wait_for("a line in the log", lambda: "site clock_differs site=alpha ahead=" in self.log("meta"), 10)
        self.set_clock("alpha", 0)
        wait_for("it to be right", lambda: self.clock_of("alpha") is None, 60)
        self.set_clock("bank", 2 * HOUR)
        said = wait_for("the bank's clock", lambda: self.nui("alice", "sites").stderr, 60)
        self.assertRegex(said, r"^nui sites: the bank's clock is 0?(2:00:0.|1:59:..)[.0-9]* ahead of the metascheduler's\n$")
        # so each site says, which may have no metascheduler to say it
        said = wait_for("beta's word", lambda: self.nui(layout.OPERATOR, "diagnose", "-R", "--site", "beta").stdout.partition("WARNING:")[2], 60)
        self.assertRegex(said, r"^  the bank's clock is 0?(2:00:0.|1:59:..)[.0-9]* ahead of this site's\n")
        rows = json.loads(self.nui(layout.OPERATOR, "diagnose", "-R", "--site", "beta", "--json").stdout)
        self.assertRegex(next(row for row in rows if row["kind"] == "BANK")["clock"], r"^0?(2:00:0.|1:59:..)[.0-9]* ahead$")
        self.set_clock("bank", 0)
        wait_for("it to be right", lambda: not self.nui("alice", "sites").stderr, 60)
        self.wait_writing()

    def test_certificates(self):
        """Who is refused for the bank's clock is told of clocks, with what the own one shows."""
        for days, words in ((-400, "not valid yet"), (4000, "expired")):
            self.set_clock("bank", days * 24 * HOUR)
            refused = self.grid.nui("alice", "balance", "-A", "phys")
            self.assertIn(refused.returncode, (3, 4), refused.stderr)
            self.assertEqual(len(refused.stderr.splitlines()), 1)
            self.assertIn(words, refused.stderr)
            self.assertIn("its clock", refused.stderr)
        self.set_clock("bank", 0)
        self.assertEqual(self.grid.nui("alice", "balance", "-A", "phys").returncode, 0)
        self.wait_writing()

    def test_a_site(self):
        """A clock that steps by days cancels no running job, and what it ran is charged by what it took."""
        ident = self.grid.submit("alice", "-A", "phys", "-t", "10:00", "-n", 1, "--site", "alpha",
                                 self.gated_script("steady"))
        self.wait_state(ident, ("Running",))
        nodes, procs = layout.SITES["alpha"]
        waits = self.grid.submit("alice", "-A", "phys", "-t", "10:00", "-n", nodes * procs, "--site", "alpha",
                                 self.gated_script("waits"))
        held = self.wait_state(waits, ("Queued",))["components"][0]["site_job_id"]
        for days in (3, -3, 400):
            self.set_clock("alpha", days * 24 * HOUR)
            if days == 3:  # the schedule sees this moment
                self.nui("alice", "sethold", "--site", "alpha", "-u", held)
            mark = len(self.log("alpha"))
            wait_for("it to be looked at", lambda: self.grid.nui("alice", "showq", "--site", "alpha").returncode in (0, 3, 4), 30)
            until = time.monotonic() + 6  # some polls of the resource manager
            wait_for("some passes", lambda: time.monotonic() > until, 20)
            self.assertNotIn("cancel", self.log("alpha")[mark:].lower())
            self.assertTrue(self.grid.supervisors())
        self.set_clock("alpha", 0)
        # what begins now is not counted from the days ahead, by which it would be over its limit at once
        short = self.grid.submit("alice", "-A", "phys", "-t", "1:00", "-n", 1, "--site", "alpha",
                                 self.gated_script("short"))
        self.wait_state(short, ("Running",))
        wait_for("the step back to be seen", lambda: "clock_set_back" in self.log("alpha"), 30)
        self.open_gate("short")
        self.wait_state(short, ("Completed",))
        self.open_gate("steady")
        self.wait_state(ident, ("Completed",), seconds=90)
        self.settled(seconds=90)
        self.assertEqual(len(self.charges(ident)), 1)
        self.assertLess(-self.charges(ident)[0]["posted"], 600)
        self.nui("alice", "cancel", waits)


if __name__ == "__main__":
    main()
