"""Leads hear of their project's allocations, each word once: 80 % used, all used, a month before one ends; whatever is killed, and
also when nobody listened for a while."""
import os
import pwd
import re
from datetime import datetime, timedelta, timezone

from fixture import GridCase, layout, main, wait_for


class Leads(GridCase):
    sites = {"alpha": (1, 4)}

    @classmethod
    def fund(cls):
        super().fund()
        cls.heard = cls.job_dir() / "heard"
        cls.deaf = cls.job_dir() / "deaf"
        cls.slow = cls.job_dir() / "slow"
        program = cls.job_dir() / "hook"
        program.write_text(f"#!/bin/sh\necho \"$1|$2|$3|$NUI_PROJECT|$NUI_LEADS|$NUI_KEY\" >> {cls.heard}\n"
                           f"n=0\nwhile test -e {cls.slow} && test $n -lt 200; do sleep 0.1; n=$((n + 1)); done\ntest ! -e {cls.deaf}\n")
        program.chmod(0o755)
        with open(cls.grid.layout.config("bank"), "a", encoding="utf-8") as f:
            f.write(f"NOTIFICATIONPROGRAM {program}\nNOTIFICATIONACCOUNT {pwd.getpwuid(os.geteuid()).pw_name}\nNOTIFICATIONEVENTS ALLOCATION\n")
        cls.again()
        cls.grid.wait_serving()

    @classmethod
    def again(cls):
        cls.grid.daemons["bank"].kill()
        cls.grid.daemons["bank"].start()

    def words(self):
        return [line.split("|") for line in self.heard.read_text().splitlines()] if self.heard.exists() else []

    def wait_words(self, count):
        return wait_for(f"{count} words", lambda: len(self.words()) >= count and self.words(), 90, self.grid.daemons["bank"].log)

    def charge(self, number, seconds):
        """As its site would have: for four processors, from before the hold on, which a tolerance of a minute allows."""
        job = f"alpha.{number}"
        hold = self.nui(layout.OPERATOR, "hold", "create", "-A", "small", "--user", "alice", "-t", seconds, "--part", f"alpha/{job}/4").stdout
        hold = re.search(r"hold\.\d+", hold).group()
        end = datetime.now(timezone.utc).replace(microsecond=0)
        self.nui(layout.OPERATOR, "charge", "--site", "alpha", "--site-job", job, "--hold", hold, "-n", 4,
                 "--start", f"{end - timedelta(seconds=seconds):%FT%TZ}", "--end", f"{end:%FT%TZ}")

    def test_words(self):
        day = datetime.now(timezone.utc)
        for words in (["project", "create", "tiny"], ["project", "add-user", "tiny", "bob", "--role", "lead"],
                      ["project", "add-user", "tiny", "alice"], ["account", "create", "small", "--project", "tiny"]):
            self.nui(layout.OPERATOR, *words)
        self.nui(layout.AGENCY, "deposit", "-A", "small", 275)
        self.charge(901, 54)
        self.assertEqual(self.balance("small", "bob")["available"], 59)
        self.deaf.touch()
        self.charge(902, 1)
        # Nobody took it: it comes again when there is somebody, with its key, and then no more.
        first = tuple(self.wait_words(1)[0])
        self.deaf.unlink()
        self.again()
        wait_for("it to be written down", self.told, 90, self.grid.daemons["bank"].log)
        self.assertEqual(first[:2], ("AllocationUsed", "small"))
        self.assertRegex(first[2], r"^small: of its allocation alloc\.\d+ 80 % is used: 55 of 275 credits are left$")
        self.assertEqual(first[3:5], ("tiny", "nui://demo/user/bob"))
        self.assertEqual({tuple(w) for w in self.words()}, {first})
        # All of it; what the bank has said is not said again by another that was started anew.
        # The database goes away between the telling and the writing down.
        before = len(self.words())
        self.slow.touch()
        self.nui(layout.AGENCY, "withdraw", "-A", "small", 55)
        self.wait_words(before + 1)
        self.grid.postgres.stop()
        self.slow.unlink()
        self.grid.postgres.start()
        wait_for("it to be written down", lambda: len(self.told()) == 2, 90)
        self.again()
        self.grid.wait_serving()
        # One ends soon; another, as short, does not count, nor one that ends late.
        for start, end in ((-40, 20), (-2, 20), (-40, 40)):
            self.nui(layout.AGENCY, "deposit", "-A", "small", 500, "--start", f"{day + timedelta(days=start):%FT%TZ}",
                     "--end", f"{day + timedelta(days=end):%FT%TZ}")
        wait_for("the third to be written down", lambda: len(self.told()) == 3, 90, self.grid.daemons["bank"].log)
        words = self.words()[before:]
        self.assertEqual([w[0] for w in words], ["AllocationUsed", "AllocationEnds"])
        self.assertRegex(words[0][2], r"100 % is used: 0 of 220 credits are left$")
        self.assertRegex(words[1][2], rf"ends at {day + timedelta(days=20):%FT%TZ}, with 500 of 500 credits left$")
        self.nui(layout.OPERATOR, "verify", "--rules")

    def told(self):
        """What the bank has written down."""
        return [line for line in self.grid.daemons["bank"].log.read_text().splitlines() if " leads_told " in line]


if __name__ == "__main__":
    main()
