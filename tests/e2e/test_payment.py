#!/usr/bin/python3
"""What a site does with its bank: the QoS that a fallback account pays for, a bank that is away (AMCFG
JFACTION), charges while a job runs (FLUSHINTERVAL), and what a job costs that lost its node."""
import re
from decimal import Decimal

from admin_case import AdminCase
from fixture import layout, main, wait_for


class Payment(AdminCase):
    sites = {"alpha": (1, 4)}
    config = ("RMPOLLINTERVAL 1\nJOBACTIONONNODEFAILURE CANCEL\nDEFERTIME 1:00:00\nQOSWEIGHT 1\nQOSCFG[own] PRIORITY=50\n"
              "QOSCFG[spare] PRIORITY=10\nQOSCFG[gold] PRIORITY=100\n"
              "ACCOUNTCFG[poor] QLIST=own,spare QDEF=own\nACCOUNTCFG[vain] QLIST=own QDEF=own\n")

    @classmethod
    def fund(cls):
        """poor and vain have nothing and fall back to phys, with a QoS that the job may have, and not."""
        super().fund()
        for words in (["rate", "set", "alpha", 1, "--qos", "spare=0.5", "--qos", "*=1"],
                      ["account", "create", "poor", "--project", "physics", "--fallback", "phys@spare"],
                      ["account", "create", "vain", "--project", "physics", "--fallback", "phys@gold"]):
            done = cls.grid.nui(layout.OPERATOR, *words)
            assert done.returncode == 0, done.stderr

    def start(self, name, account, *options):
        ident = self.grid.submit("alice", "-A", account, "--site", "alpha", *options,
                                 self.gated_script(name))
        return ident, wait_for(f"{ident} to be at alpha", lambda: self.at_site(ident), 60)

    def amcfg(self, words):
        """Other words of AMCFG; the site is killed and started with them."""
        config = self.grid.layout.config("alpha")
        lines = [l for l in config.read_text().splitlines() if not l.startswith("AMCFG")]
        config.write_text("\n".join([*lines, f"AMCFG[bank] TIMEOUT=2 {words}", ""]))
        self.grid.daemons["alpha"].kill()
        self.grid.daemons["alpha"].start()

    def job(self, site_id):
        return self.data("checkjob", site_id)["job"]

    def test_the_fallbacks_qos(self):
        ident, site_id = self.start("fallback", "poor", "-n", 2, "-t", 600)
        self.wait_local(site_id, "Running")
        self.assertEqual(self.job(site_id)["qos"], "spare")
        self.assertEqual(self.job(site_id)["account"], "phys")
        held = next(h for h in self.grid.json("alice", "hold", "list") if h["job"] == ident)
        self.assertEqual(held["amount"], 600)  # 2 * 600 s at half the price

        # also after a restart, and until it waits again
        self.grid.daemons["alpha"].kill()
        self.grid.daemons["alpha"].start()
        self.wait_local(site_id, "Running")
        self.assertEqual(self.job(site_id)["qos"], "spare")
        self.here("schedctl", "-s")
        self.here("mjobctl", "-R", site_id)
        self.wait_local(site_id, "Idle")
        self.assertEqual(self.job(site_id)["qos"], "own")
        self.here("schedctl", "-r")
        wait_for("another start", lambda: len(self.began("fallback")) == 2, 60, self.grid.layout.log)
        self.assertEqual(self.job(site_id)["qos"], "spare")
        self.open_gate("fallback")
        self.wait_state(ident, ("Completed",))
        self.settled()

    def test_a_qos_that_it_may_not_have(self):
        before = self.settled()
        ident, site_id = self.start("vain", "vain", "-n", 1, "-t", 600)
        wait_for("it to say why it waits", lambda: "CannotDebitAccount: account phys would pay for it with QoS "
                 "gold, which it may not have here" in self.here("checkjob", site_id).stdout, 20,
                 self.grid.layout.log)
        self.assertEqual(self.job(site_id)["qos"], "own")
        self.assertEqual(self.began("vain"), [])
        self.assertEqual(self.settled(), before)  # what it was granted went back
        self.nui("alice", "cancel", ident)

    def test_a_bank_that_is_away(self):
        before = self.settled()
        jobs = {name: self.start(name, "phys", "-n", 2, "-t", 600, "--hold")
                for name in ("cancelled", "put-off", "anyway")}
        bank = self.grid.daemons["bank"]
        bank.kill()
        try:
            ident, site_id = jobs["cancelled"]
            self.amcfg("JFACTION=CANCEL")
            self.here("releasehold", "-a", site_id)
            self.wait_local(site_id, "Cancelled")
            ident, site_id = jobs["put-off"]
            self.amcfg("DEFERJOBONFAILURE=TRUE")
            self.here("releasehold", "-a", site_id)
            wait_for("it to be deferred", lambda: "BankFailure: the bank does not answer" in
                     self.here("checkjob", site_id).stdout, 60, self.grid.layout.log)
            self.here("canceljob", site_id)
            # NONE: it runs, also over a kill -9 of the site
            ident, site_id = jobs["anyway"]
            self.amcfg("JFACTION=NONE")
            self.here("releasehold", "-a", site_id)
            wait_for("it to run", lambda: self.began("anyway"), 60, self.grid.layout.log)
            self.amcfg("JFACTION=NONE")
            self.wait_local(site_id, "Running")
            self.open_gate("anyway")
            self.wait_local(site_id, "Completed")
        finally:
            bank.start()
            self.amcfg("")
        # and is charged, once; nothing stays held for the others
        rows = wait_for("the charge", lambda: self.charges(ident), 60, self.grid.layout.log)
        after = self.settled()
        self.assertEqual([len(self.charges(i)) for i, _ in jobs.values()], [0, 0, 1])
        self.assertEqual(rows[0]["posted"], after["available"] - before["available"])
        self.assertEqual(self.began("cancelled") + self.began("put-off"), [])
        self.assert_books_close()

    def lose_node(self, name, words):
        """What a job costs whose node goes down while it runs."""
        before = self.settled()
        self.amcfg(words)
        ident, site_id = self.start(name, "phys", "-n", 2, "-t", 600)
        wait_for("it to run", lambda: self.began(name), 60, self.grid.layout.log)
        self.here("mnodectl", "-m", "state=down", "alpha01")
        self.wait_local(site_id, "Cancelled")
        self.here("mnodectl", "-m", "state=up", "alpha01")
        wait_for("its charge", lambda: self.exact("alice", "hold", "list") == [], 60,
                 self.grid.layout.log)
        self.amcfg("")
        self.assertEqual(self.job(site_id)["reason_code"], "NodeFailure")
        return before["available"] - self.settled()["available"]

    def test_a_node_that_fails(self):
        self.assertEqual(self.lose_node("free", "NODEFAILURE=FREE FLUSHINTERVAL=1"), 0)
        self.assertGreater(self.lose_node("dear", "NODEFAILURE=CHARGE"), 0)
        self.assert_books_close()

    def test_charges_while_it_runs(self):
        before = self.settled()
        self.amcfg("FLUSHINTERVAL=1")
        ident, site_id = self.start("long", "phys", "-n", 2, "-t", 600)
        self.wait_local(site_id, "Running")
        wait_for("two charges", lambda: len(self.charges(ident)) > 1, 60, self.grid.layout.log)
        # both ends lost: nothing is charged twice, and it goes on
        for daemon in ("alpha", "bank"):
            self.grid.daemons[daemon].kill()
            self.grid.daemons[daemon].start()
        count = wait_for("the statement", lambda: len(self.charges(ident)), 60,
                         self.grid.layout.log)
        wait_for("more of them", lambda: len(self.charges(ident)) > count, 60,
                 self.grid.layout.log)
        self.open_gate("long")
        self.wait_state(ident, ("Completed",))
        after = self.settled()
        self.amcfg("")
        lines = self.charges(ident)
        posted = sum(line["posted"] for line in lines)
        self.assertEqual(posted, after["available"] - before["available"])
        whole = re.fullmatch(r"2 procs .* = ([0-9.]+) credits, less what was charged before",
                             lines[-1]["description"])
        self.assertTrue(whole, lines[-1])
        self.assertEqual(Decimal(whole[1]), -posted)
        self.assert_books_close()


if __name__ == "__main__":
    main()
