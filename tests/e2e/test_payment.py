#!/usr/bin/python3
"""What a site does with the bank's answers: the QoS that a fallback account pays for."""
from admin_case import AdminCase
from fixture import layout, main, wait_for


class Payment(AdminCase):
    sites = {"alpha": (1, 4)}
    config = ("RMPOLLINTERVAL 1\nDEFERTIME 1:00:00\nQOSWEIGHT 1\nQOSCFG[own] PRIORITY=50\n"
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


if __name__ == "__main__":
    main()
