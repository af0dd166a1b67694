#!/usr/bin/python3
"""What a site does with its bank: the QoS that a fallback account pays for, a bank that is away (AMCFG
JFACTION), charges while a job runs (FLUSHINTERVAL), what a job costs that lost its node, and how the two are
reconciled after what should not happen has."""
import json
import re
import sqlite3
import time
from contextlib import closing
from decimal import Decimal

from admin_case import AdminCase
from fixture import layout, main, wait_for


class Payment(AdminCase):
    sites = {"alpha": (1, 4)}
    config = ("RMPOLLINTERVAL 1\nJOBACTIONONNODEFAILURE CANCEL\nDEFERTIME 1:00:00\nQOSWEIGHT 1\nQOSCFG[own] PRIORITY=50\n"
              "QOSCFG[spare] PRIORITY=10\nQOSCFG[gold] PRIORITY=100\n"
              "ACCOUNTCFG[poor] QLIST=own,spare QDEF=own\nACCOUNTCFG[vain] QLIST=own QDEF=own\n"
              "ACCOUNTCFG[freecycle] QLIST=spare QDEF=spare\n")

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

    def test_ended_at_its_limit(self):
        """A job that runs into its limit costs what was held for it; the moment that its end takes is nobody's dispute."""
        ident, site_id = self.start("overlong", "phys", "-n", 2, "-t", 2)
        self.wait_local(site_id, "Timeout")
        (line,) = wait_for("its charge", lambda: self.charges(ident), 60, self.grid.layout.log)
        self.assertEqual(line["posted"], -4)
        self.assertEqual([r for r in self.exact(layout.OPERATOR, "reconcile", "list") if r["site_job"] == site_id], [])

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

    def test_a_quote(self):
        """What was quoted is what is held and charged, though the card has changed; for one job."""
        quote = self.grid.json("alice", "quote", "-t", 600, "-n", 2, "--site", "alpha", "-A", "phys",
                               "--keep", "1:00:00")[0]
        self.assertEqual(quote["price"], 1200)
        self.operate("rate", "set", "alpha", 3)
        try:
            ident, site_id = self.start("quoted", "phys", "-n", 2, "-t", 600, "--quote", quote["quote"])
            self.wait_local(site_id, "Running")
            held = next(h for h in self.grid.json("alice", "hold", "list") if h["job"] == ident)
            self.assertEqual(held["amount"], 1200)
            late = self.nui("alice", "submit", "-A", "phys", "--site", "alpha", "-n", 1, "-t", 600, "--quote",
                            quote["quote"], self.gated_script("late"), code=1)
            self.assertEqual(late.stderr.strip(),
                             f"nui submit: {quote['quote']} is for one job, and {ident} has used it")
            # used while the job waits: the site says why it does not start
            other = self.grid.json("alice", "quote", "-t", 60, "--site", "alpha", "-A", "phys", "--keep", "1:00:00")[0]
            late, late_id = self.start("late", "phys", "-n", 1, "-t", 60, "--hold", "--quote", other["quote"])
            self.operate("hold", "create", "-A", "phys", "--user", "alice", "-t", 60, "--part", "alpha/alpha.by-hand/1",
                         "--quote", other["quote"])
            self.here("releasehold", "-a", late_id)
            wait_for("it to say why it waits", lambda: f"{other['quote']} is for one job, and alpha.by-hand has used it" in
                     self.here("checkjob", late_id).stdout, 60, self.grid.layout.log)
            self.nui("alice", "cancel", late)
            held = next(h for h in self.grid.json(layout.OPERATOR, "hold", "list") if h["site_job"] == "alpha.by-hand")
            self.operate("hold", "release", held["hold"], "-d", "it ran nowhere")
            self.open_gate("quoted")
            self.wait_state(ident, ("Completed",))
            line = wait_for("the charge", lambda: self.charges(ident), 60, self.grid.layout.log)[0]
            self.assertRegex(line["description"], r"^2 procs \* [0-9.]+ s \* 1 = ")
        finally:
            self.operate("rate", "set", "alpha", 1, "--qos", "spare=0.5", "--qos", "*=1")
        self.settled()

    def test_machine_and_node_types(self):
        """The site says where a job runs: on which machine, and how many processors on nodes of each type."""
        config = self.grid.layout.config("alpha")
        was = config.read_text()
        config.write_text(was + "NODECFG[alpha01] NODETYPE=fat\nNODECFG[alpha02] PROCS=1 MEM=1G\n")
        self.amcfg("MACHINE=phoenix")
        self.operate("rate", "set", "alpha", 1, "--machine", "phoenix=2", "--machine", "*=7", "--node-type", "fat=4",
                     "--node-type", "*=1", "--qos", "spare=0.5", "--qos", "*=1")
        try:
            ident, site_id = self.start("typed", "phys", "-N", 2, "-n", 2, "-t", 600)
            self.wait_local(site_id, "Running")
            held = next(h for h in self.grid.json("alice", "hold", "list") if h["job"] == ident)
            self.assertEqual(held["amount"], 2 * 600 * 2 * 2.5)  # 2.5: one processor at 4, one at 1
            self.open_gate("typed")
            self.wait_state(ident, ("Completed",))
            line = wait_for("the charge", lambda: self.charges(ident), 60, self.grid.layout.log)[0]
            self.assertRegex(line["description"], r"^2 procs \* [0-9.]+ s \* 1 \* machine 2 \* node types 2.5 = ")
            # allocations that are for one machine
            self.operate("account", "create", "elsewhere", "--project", "physics")
            self.operate("deposit", "-A", "elsewhere", 100000, "--for", "machine=other")
            done = self.nui("alice", "submit", "-A", "elsewhere", "--site", "alpha", "-n", 1, "-t", 60,
                            self.gated_script("there"), code=1)
            self.assertIn("none of its allocations is for this user, site, machine and QoS", done.stderr)
            self.operate("deposit", "-A", "elsewhere", 500, "--for", "machine=phoenix")
            here, here_id = self.start("there", "elsewhere", "-n", 1, "-t", 60)
            self.wait_local(here_id, "Running")
            self.open_gate("there")
            self.wait_state(here, ("Completed",))
        finally:
            self.operate("rate", "set", "alpha", 1, "--qos", "spare=0.5", "--qos", "*=1")
            config.write_text(was)
            self.amcfg("")
        self.settled()

    def held(self, name, *ask):
        """What the bank holds for alice's job, asked of the grid and of the site itself; then it ends, and is charged."""
        for words in (("submit", "-n", 1), ("msub", "--tasks", 1)):
            done = self.nui("alice", *words, "-A", "phys", "--site", "alpha", "-t", 600, *ask,
                            self.gated_script(f"{name}-{words[0]}"))
            ident = done.stdout.strip()
            hold = wait_for("its hold", lambda: next((h for h in self.grid.json("alice", "hold", "list")
                                                      if ident in (h["job"], h["site_job"])), None), 60, self.grid.layout.log)
            self.open_gate(f"{name}-{words[0]}")
            line = wait_for("the charge", lambda: next((l for l in self.statement()["lines"] if l["kind"] == "charge" and
                                                        l["job"] in (ident, hold["site_job"])), None), 60, self.grid.layout.log)
            yield hold["amount"], line["description"]

    def test_memory_and_generic_resources(self):
        """They are paid for as they were signed, and what they cost is within the bound that was signed."""
        config = self.grid.layout.config("alpha")
        was = config.read_text()
        config.write_text(was + "NODECFG[alpha01] GRES=gpu:4\n")
        self.amcfg("")
        self.operate("rate", "set", "alpha", 1, "--memory", 3, "--gres", "gpu=10", "--qos", "spare=0.5", "--qos", "*=1")
        ask, cost = ("--mem", "2G", "--gres", "gpu:2"), (1 + 2 * 3 + 2 * 10) * 600
        try:
            for amount, words in self.held("heavy", *ask):
                self.assertEqual(amount, cost)
                self.assertIn(" s * 26 for memory and gres) ", words)
            for words in (("submit", "-n", 1), ("msub", "--tasks", 1)):
                told = self.nui("alice", *words, "-A", "phys", "--site", "alpha", "-t", 600, "--hold", *ask,
                                self.gated_script("bound"))
                self.assertIn(f"signed for at most {2 * cost} credits (estimate {cost}, times 2)", told.stderr)
                self.nui("alice", "cancel" if words[0] == "submit" else "canceljob", told.stdout.strip())
            done = self.nui("alice", "submit", "-n", 1, "-A", "phys", "--site", "alpha", "-t", 600, *ask, "--max-cost", cost - 1,
                            self.gated_script("too-dear"), code=1)
            self.assertIn(f"{cost}", done.stderr)
            self.assertIn(f"{cost - 1}", done.stderr)
            # the site itself takes it, and the bank holds nothing for it
            dear = self.nui("alice", "msub", "--tasks", 1, "-A", "phys", "--site", "alpha", "-t", 600, *ask, "--max-cost", cost - 1,
                            self.gated_script("too-dear")).stdout.strip()
            wait_for("it to say why it waits", lambda: f"costs {cost} credits, the job allows at most {cost - 1}" in
                     self.here("checkjob", dear).stdout, 60, self.grid.layout.log)
            self.assertEqual(self.began("too-dear"), [])
            self.here("canceljob", dear)

            # processor equivalents: as many as its memory is worth at what the operator registered for a processor,
            # whatever the site's own configuration makes of it
            self.operate("rate", "set", "alpha", 1, "--measure", "pe", "--qos", "spare=0.5", "--qos", "*=1")
            self.operate("site", "modify", "alpha", "--proc-memory", "1G")
            self.assertEqual([amount for amount, _ in self.held("worth", "--mem", "2G")], [2 * 600] * 2)
            config.write_text(was.replace("MEM=4G", "MEM=1G"))
            self.amcfg("")
            self.assertEqual([amount for amount, _ in self.held("inflated", "--mem", "1G")], [600] * 2)
        finally:
            self.operate("rate", "set", "alpha", 1, "--qos", "spare=0.5", "--qos", "*=1")
            config.write_text(was)
            self.amcfg("")
        self.settled()
        self.assert_books_close()

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

    def test_an_account_that_is_empty(self):
        """No money and no account to fall back to: the job is put off for DEFERTIME, and waits when there is money again
        until it is released; with JFACTION=CANCEL it ends."""
        for name, words in (("put-off", ""), ("ended", "JFACTION=CANCEL")):
            self.amcfg(words)
            self.operate("account", "create", f"empty-{name}", "--project", "physics")
            self.operate("deposit", "-A", f"empty-{name}", 1200)
            ident, site_id = self.start(f"empty-{name}", f"empty-{name}", "-n", 2, "-t", 600, "--hold")
            self.operate("withdraw", "-A", f"empty-{name}", 1200)
            self.here("releasehold", "-a", site_id)
            if words:
                self.wait_local(site_id, "Cancelled")
                self.assertEqual(self.job(site_id)["reason_code"], "InsufficientFunds")
                self.assertEqual(self.began(f"empty-{name}"), [])
                continue
            why = wait_for("it to be put off", lambda: re.search(r"(BankFailure|CannotDebitAccount): .*empty.*",
                           self.here("checkjob", site_id).stdout), 60, self.grid.layout.log)
            self.assertIn("empty", why[0])
            self.assertIn("DeferCount: 1", self.here("checkjob", site_id).stdout)
            self.operate("deposit", "-A", f"empty-{name}", 1200)
            beside, _ = self.start("beside", "phys", "-n", 1, "-t", 60)
            wait_for("another job to run", lambda: self.began("beside"), 60, self.grid.layout.log)
            self.open_gate("beside")
            self.wait_state(beside, ("Completed",))
            self.assertEqual(self.began(f"empty-{name}"), [], "DEFERTIME is an hour")
            self.here("releasehold", "-a", site_id)
            wait_for("it to run", lambda: self.began(f"empty-{name}"), 60, self.grid.layout.log)
            self.open_gate(f"empty-{name}")
            self.wait_state(ident, ("Completed",))
        self.amcfg("")
        self.settled()
        self.assert_books_close()

    def test_the_sites_fallback_account(self):
        """AMCFG FALLBACKACCOUNT: msub signs for it too; without money on its own account the job goes on with that, with its
        QoS, over a kill -9, and is charged there once. Without the second signature it is put off."""
        self.amcfg("FALLBACKACCOUNT=freecycle")
        for account in ("lean", "freecycle"):
            self.operate("account", "create", account, "--project", "physics")
            self.operate("deposit", "-A", account, 1200)
        told, ids = {}, {}
        for name, options in (("kept", ()), ("alone", ("--no-fallback",)), ("neither", ())):
            done = self.nui("alice", "msub", "--site", "alpha", "-A", "lean", "--tasks", 2, "-t", 600, "--hold", *options,
                            self.gated_script(name))
            told[name], ids[name] = done.stderr, done.stdout.strip()
        says = "nui msub: signed for account freecycle too, which pays where lean cannot (--no-fallback: not)"
        self.assertEqual([says in told[name] for name in ("kept", "alone", "neither")], [True, False, True], told)
        self.operate("withdraw", "-A", "lean", 1200)
        self.here("releasehold", "-a", ids["kept"])
        wait_for("it to run", lambda: self.began("kept"), 60, self.grid.layout.log)
        job = self.job(ids["kept"])
        self.assertEqual((job["account"], job["qos"]), ("freecycle", "spare"))
        self.amcfg("FALLBACKACCOUNT=freecycle")
        self.wait_local(ids["kept"], "Running")
        self.assertEqual(self.job(ids["kept"])["account"], "freecycle")
        self.here("releasehold", "-a", ids["alone"])
        wait_for("it to be put off", lambda: "DeferCount: 1" in self.here("checkjob", ids["alone"]).stdout, 60,
                 self.grid.layout.log)
        self.assertEqual((self.began("alone"), self.job(ids["alone"])["account"]), ([], "lean"))
        self.open_gate("kept")
        self.wait_local(ids["kept"], "Completed")
        wait_for("its charge", lambda: self.charges(ids["kept"], "freecycle"), 60, self.grid.layout.log)
        # neither account can pay
        left = self.settled("freecycle")["available"]
        self.operate("withdraw", "-A", "freecycle", left)
        self.here("releasehold", "-a", ids["neither"])
        wait_for("it to be put off", lambda: "DeferCount: 1" in self.here("checkjob", ids["neither"]).stdout, 60,
                 self.grid.layout.log)
        self.assertEqual(self.began("neither"), [])
        for name in ("alone", "neither"):
            self.here("canceljob", ids[name])
        self.assertEqual((len(self.charges(ids["kept"], "freecycle")), self.charges(ids["kept"], "lean")), (1, []))
        self.amcfg("")
        self.assert_books_close()

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

    def test_a_failure_given_back(self):
        """By the bank itself, where that is its policy for the site: every charge of the job, once."""
        before = self.settled()
        self.operate("site", "modify", "alpha", "--refunds", "yes")
        self.assertIn("what it failed is given back", self.operate("site", "list"))
        self.lose_node("back", "NODEFAILURE=CHARGE FLUSHINTERVAL=1")
        wait_for("it to be given back", lambda: (self.balance() or {}).get("available") == before["available"], 60,
                 self.grid.daemons["bank"].log)

        def lines(kind):
            return [line for line in self.statement()["lines"] if line["kind"] == kind]
        refunds = lines("refund")
        self.assertEqual({line["who"] for line in refunds}, {"bank:refunds"})
        self.assertEqual(-sum(r["posted"] for r in refunds),
                         sum(c["posted"] for c in lines("charge") if c["job"] == refunds[0]["job"]))
        # not twice, whoever dies: the bank looks at all of it again, and at one more; nor under another policy
        self.grid.daemons["bank"].kill()
        self.grid.daemons["bank"].start()
        self.grid.wait_bank()
        before = self.settled()
        self.lose_node("again", "NODEFAILURE=CHARGE")
        wait_for("that to be given back", lambda: (self.balance() or {}).get("available") == before["available"],
                 60, self.grid.daemons["bank"].log)
        self.assertEqual(len(lines("refund")), len(refunds) + 1)
        self.operate("site", "modify", "alpha", "--refund-cap", "4:00:00", "--refund-minimum", "1000000")
        self.assertIn("at most what 14400 s cost, from 1000000 credits on", self.operate("site", "list"))
        self.assertGreater(self.lose_node("kept", "NODEFAILURE=CHARGE"), 0)
        self.operate("site", "modify", "alpha", "--refunds", "no", "--refund-cap", "0", "--refund-minimum", "0")
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

    # ---- nui reconcile

    def reconcile(self, *options):
        """{class: {site job: row}} of what ended since the test began."""
        found = {}
        done = self.operate("reconcile", "--json", "--site", "alpha", "--from", f"@{self.since}", "--to", "+1:00:00",
                            *options)
        for row in json.loads(done, parse_float=Decimal, parse_int=Decimal):
            found.setdefault(row["class"], {})[row["site_job"]] = row
        return found

    def rows(self, *options):
        return {row["row"]: row for row in self.exact(layout.OPERATOR, "reconcile", "list", *options)}

    def classes(self, *options):
        return {name: sorted(rows) for name, rows in self.reconcile(*options).items()}

    def operate(self, *words):
        done = self.grid.nui(layout.OPERATOR, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def ran(self, name):
        """(grid id, site id) of a job that has run at alpha."""
        ident, site_id = self.start(name, "phys", "-n", 1, "-t", 600)
        wait_for("it to run", lambda: self.began(name), 60, self.grid.layout.log)
        self.open_gate(name)
        self.wait_local(site_id, "Completed")
        return ident, site_id

    def alpha_with(self, change, words=""):
        """alpha killed, its store changed, and started again with these words of AMCFG."""
        self.grid.daemons["alpha"].kill()
        with closing(sqlite3.connect(f"{self.grid.layout.state}/alpha/local.db")) as db, db:
            change(db)
        self.amcfg(words)

    def test_reconciled(self):
        self.since = int(time.time()) + 1  # other tests' jobs have ended before
        wait_for("the next second", lambda: time.time() > self.since, 10)
        mine = {"charged": self.ran("charged")}
        wait_for("its charge", lambda: self.charges(mine["charged"][0]), 60, self.grid.layout.log)
        self.settled()
        self.assertEqual(self.classes(), {})
        denied = self.grid.nui("alice", "reconcile", "--site", "alpha")
        self.assertEqual(denied.returncode, 3, denied.stderr)

        # the bank is out of reach: what ran is in the outbox, and nothing is to be done but wait
        config = self.grid.layout.config("alpha")
        before = config.read_text()
        self.addCleanup(self.amcfg, "")
        self.addCleanup(config.write_text, before)
        config.write_text(re.sub(r"(?m)^BANK\b.*$", "BANK 127.0.0.1:1", before))
        self.amcfg("JFACTION=NONE")
        for name in ("lost", "cut", "late"):
            mine[name] = self.ran(name)
        job = {name: site_id for name, (_, site_id) in mine.items()}
        self.assertEqual(self.classes("--apply"), {"MISSING_AT_BANK": sorted([job[n] for n in ("lost", "cut", "late")])})
        self.assertEqual({r["remedy"] for r in self.reconcile()["MISSING_AT_BANK"].values()}, {"wait"})
        for name in ("lost", "cut", "late"):
            self.assertEqual(self.charges(mine[name][0]), [])

        # two messages and one record are lost with a disk; the third message arrives
        def lose(db):
            db.execute("DELETE FROM run WHERE site_job = ?", [job["charged"]])
            for name in ("lost", "cut"):
                (message,) = db.execute("SELECT message FROM run WHERE site_job = ?", [job[name]]).fetchone()
                db.execute("DELETE FROM outbox WHERE destination = 'bank' AND seq = ?", [message])
                db.execute("UPDATE run SET charged_micro = 5 WHERE message = ?", [message])
        config.write_text(before)
        self.alpha_with(lose)
        wait_for("the third", lambda: self.charges(mine["late"][0]), 60, self.grid.layout.log)
        self.assertEqual(self.classes(), {"MISSING_AT_BANK": sorted([job["lost"], job["cut"]]),
                                          "MISSING_AT_SITE": [job["charged"]]})

        # and what people do by hand
        now = int(time.time()) + 1
        wait_for("the second to be over", lambda: time.time() >= now, 5, self.grid.layout.log)
        alice = ["--user", "alice", "-A", "phys"]
        part = self.reconcile()["MISSING_AT_BANK"][job["cut"]]["component"]
        named = ["--component", part] if part else []
        self.operate("charge", "--site", "alpha", "--site-job", job["cut"], "--job", mine["cut"][0], *named, *alice,
                     "-n", 1, "--start", f"@{self.since}", "--end", f"@{self.since + 1}", "--partial")
        self.operate("charge", "--site", "alpha", "--site-job", job["late"], "--job", mine["late"][0], *named,
                     *alice, "-n", 1, "--start", f"@{self.since}", "--end", f"@{now}", "--incarnation", 7)
        self.operate("hold", "create", *alice, "-t", 600, "--part", "alpha/alpha.999/1")
        self.operate("hold", "create", *alice, "-t", 600, "--part", "alpha/alpha.998/1")  # may still come
        self.operate("account", "create", "brief", "--project", "physics")
        ends = int(time.time()) + 10
        self.operate("deposit", "-A", "brief", 1000, "--end", f"@{ends}")
        self.operate("hold", "create", "-A", "brief", "--user", "alice", "-t", 1, "--part", "alpha/alpha.brief.1/1")
        held = next(h["hold"] for h in self.grid.json(layout.OPERATOR, "hold", "list") if h["site_job"] == "alpha.brief.1")
        wait_for("its allocation's end", lambda: time.time() > ends + 2, 30, self.grid.layout.log)
        self.operate("charge", "--site", "alpha", "--site-job", "alpha.brief.1", "--hold", held, "-n", 1,
                     "--start", f"@{ends + 1}", "--end", f"@{ends + 2}")
        self.grid.postgres.sql(f"UPDATE bank.hold SET expires_at = {now - 60}000000 WHERE site_job = 'alpha.999'")
        self.grid.postgres.sql(f"UPDATE bank.hold SET rate_version = 99 WHERE site_job = '{job['charged']}'")
        accounting = self.write("sacct.txt", "JobIDRaw|Submit|Start|End|AllocCPUS|ElapsedRaw|User|Account|State\n"
                                f"4711|{self.stamp(now)}|{self.stamp(now)}|{self.stamp(now + 9)}|4|9|games|phys|COMPLETED\n"
                                f"4711.batch||{self.stamp(now)}|{self.stamp(now + 9)}|4|9|||COMPLETED\n"
                                f"4712|{self.stamp(now)}|Unknown|Unknown|0|0|games|phys|PENDING\n")
        found = self.reconcile("--sacct", accounting)
        self.assertEqual({name: sorted(rows) for name, rows in found.items()},
                         {"MISSING_AT_BANK": [job["lost"]], "AMOUNT_DIFF": [job["cut"]],
                          "MISSING_AT_SITE": [job["charged"]], "DUPLICATE": [job["late"]],
                          "BY_HAND": sorted([job["cut"], job["late"], "alpha.brief.1"]),
                          "STALE_HOLD": ["alpha.999"], "RATE_DIFF": [job["charged"]], "EXPIRED_USE": ["alpha.brief.1"],
                          "UNSEEN": ["4711"]})
        self.assertEqual(found["UNSEEN"]["4711"]["site_ps"], 36)
        self.assertEqual({r["remedy"] for name in ("MISSING_AT_BANK", "AMOUNT_DIFF") for r in found[name].values()},
                         {"charge"})
        self.assertEqual(sorted(self.classes("--late", 0)["LATE"]), sorted([job["charged"], job["late"], job["cut"], "alpha.brief.1"]))

        # kept as rows: each found again is the same one, has an owner, and ends by an operation, by an
        # explanation, or when it is not found again
        self.assertEqual({n for n, rows in found.items() for r in rows.values() if r["row"]}, {"MISSING_AT_BANK"})
        kept = self.reconcile("--record", "--sacct", accounting)
        numbers = [r["row"] for rows in kept.values() for r in rows.values()]
        self.assertEqual(len(set(numbers) - {None}), 11)
        self.assertEqual({n: {j: r["row"] for j, r in rows.items()} for n, rows in self.reconcile("--record").items()},
                         {n: {j: r["row"] for j, r in rows.items()} for n, rows in kept.items() if n != "UNSEEN"})
        self.reconcile("--record", "--late", 0)
        self.reconcile("--record")
        rows = self.rows("--all")
        self.assertEqual(sorted(r["class"] for r in rows.values() if r["state"] == "gone"),
                         ["LATE"] * 5 + ["MISSING_AT_BANK"] * 2)
        byhand = kept["BY_HAND"]["alpha.brief.1"]["row"]
        self.operate("reconcile", "own", byhand, "--owner", "alice")
        self.assertEqual(self.reconcile()["BY_HAND"]["alpha.brief.1"]["owner"].rsplit("/", 1)[-1], "alice")
        self.operate("reconcile", "close", byhand, "-d", "charged by hand")
        again = self.grid.nui(layout.OPERATOR, "reconcile", "close", byhand, "-d", "twice")
        self.assertEqual((again.returncode, again.stderr), (1, f"nui reconcile: row {byhand} is closed\n"))
        nothing = self.grid.nui(layout.OPERATOR, "reconcile", "close", kept["UNSEEN"]["4711"]["row"], "--op", 10 ** 9)
        self.assertEqual(nothing.returncode, 5, nothing.stderr)
        self.assertEqual(self.reconcile("--record")["BY_HAND"]["alpha.brief.1"]["done"], "explained: charged by hand")

        # what has one right answer, once
        done = self.reconcile("--apply")
        self.assertEqual({name: next(iter(done[name].values()))["done"].split()[0] for name in
                          ("MISSING_AT_BANK", "AMOUNT_DIFF", "DUPLICATE", "STALE_HOLD")},
                         {"MISSING_AT_BANK": "charged", "AMOUNT_DIFF": "charged", "DUPLICATE": "refunded",
                          "STALE_HOLD": "released"})
        rows = self.rows("--all")
        for name in ("MISSING_AT_BANK", "AMOUNT_DIFF", "DUPLICATE", "STALE_HOLD"):
            row = rows[next(iter(done[name].values()))["row"]]
            self.assertEqual((row["state"], row["row"]), ("closed", next(iter(kept[name].values()))["row"]))
            proof = self.operate("proof", row["op"])
            self.assertIn({"DUPLICATE": "refund", "STALE_HOLD": "release"}.get(name, "charge"), proof)
        lost = self.charges(mine["lost"][0])
        self.assertEqual(len(lost), 1)
        self.assertEqual(f"charged {-lost[0]['posted']}", done["MISSING_AT_BANK"][job["lost"]]["done"])
        self.operate("hold", "release", next(h["hold"] for h in self.grid.json(layout.OPERATOR, "hold", "list")
                                             if h["site_job"] == "alpha.998"), "-d", "tested")
        self.settled()
        left = {name: rows for name, rows in self.classes("--apply").items() if name != "AMOUNT_DIFF"}
        self.assertEqual(left, {"MISSING_AT_SITE": [job["charged"]], "RATE_DIFF": [job["charged"]],
                                "BY_HAND": sorted([job["cut"], "alpha.brief.1"]), "EXPIRED_USE": ["alpha.brief.1"]})
        self.assertEqual(len(self.charges(mine["lost"][0])), 1)

        # what is for people to decide ends by the operation that they chose
        def newest(kind, account):
            return [l for l in self.statement(account, layout.OPERATOR)["lines"] if l["kind"] == kind][-1]["op"]
        (wrong,) = self.charges(mine["charged"][0])
        self.operate("refund", wrong["op"], "-d", "at a card that is none, and of no record")
        gone = newest("refund", "phys")
        back = newest("charge", "brief")  # what is given back to an allocation that has ended expires with it
        self.operate("charge", "--site", "alpha", "--site-job", "alpha.slurm.4711", *alice, "-n", 4, "--start", f"@{now}",
                     "--end", f"@{now + 5}")
        paid = newest("charge", "phys")
        for name, which, op in (("MISSING_AT_SITE", job["charged"], gone), ("RATE_DIFF", job["charged"], gone),
                                ("EXPIRED_USE", "alpha.brief.1", back), ("UNSEEN", "4711", paid)):
            row = kept[name][which]["row"]
            before = self.rows()[row]
            self.assertRegex(before["age"], r"^[0-9:]+$")
            self.operate("reconcile", "own", row)
            self.assertIn("/operator/", self.rows()[row]["owner"])
            self.operate("reconcile", "close", row, "--op", op, "-d", "decided")
            self.assertEqual([self.rows("--all")[row][k] for k in ("state", "op")], ["closed", op])
        self.assert_books_close()

    @staticmethod
    def stamp(moment):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


if __name__ == "__main__":
    main()
