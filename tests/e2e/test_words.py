"""Small things that users have stumbled over: who cancelled, what is free of charge, what is too large, staged in twice, a
site that is taken out of the grid."""
import re

from fixture import GridCase, layout, main, wait_for


class Case(GridCase):
    def refused(self, *options, code=1):
        return self.nui("alice", "submit", "-A", "phys", "-t", "10:00", *options,
                        self.write("true.sh", "#!/bin/sh\ntrue\n"), code=code).stderr


class NoRate(Case):
    @classmethod
    def fund(cls):
        """gamma has no rate."""
        every, cls.grid.sites = cls.grid.sites, [site for site in cls.grid.sites if site != "gamma"]
        super().fund()
        cls.grid.sites = every

    def test_no_rate_is_no_lack_of_funds(self):
        for options in (["--site", "gamma"],
                        ["--component", "left:site=alpha,tasks=1", "--component", "right:site=gamma,tasks=1"],
                        ["--component", "left:site=gamma,tasks=1", "--component", "right:site=alpha,beta,tasks=1"]):
            words = self.refused(*options, "--max-cost", "100000")
            self.assertNotIn("insufficient", words)
            self.assertIn("site gamma has no rate in force", words)


class Words(Case):
    def test_who_cancelled(self):
        script = self.gated_script("never")
        for options in (["--site", "alpha"], ["--hold"],
                        ["--component", "left:site=alpha,tasks=1", "--component", "right:site=beta,tasks=1"]):
            ident = self.grid.submit("alice", "-A", "phys", "-t", "10:00", *options, script)
            self.wait_state(ident, ("Queued",) if "--hold" in options else ("Running",))
            self.nui("alice", "cancel", ident)
            self.wait_state(ident, ("Cancelled",))
            said = wait_for("its sites to say so", lambda: (lambda j: all(c["reason"] for c in j["components"]) and j)(
                self.status("alice", ident)), 60)
            for reason in (said["reason"], *[c["reason"] for c in said["components"]]):
                self.assertRegex(reason, rf"^cancelled by nui://{layout.GRID}/user/alice\b")

    def test_refused_at_once(self):
        self.assertIn("larger than any allowed site: needs 1000 procs, beta has 8", self.refused("-n", "1000"))
        self.assertIn("two files would be brought to 'x'", self.refused("--stage-in", "https://a.example/1=x", "--stage-in",
                                                                "https://a.example/2=x", code=2))
        ident = self.grid.submit("alice", "-A", "phys", "-t", "1:00", "--valid", "+60",
                                 self.write("true.sh", "#!/bin/sh\ntrue\n"))
        self.wait_state(ident, ("Completed",))

    def test_a_site_that_is_taken_out(self):
        """Its jobs say so, and what becomes of them; when it is back so are they."""
        script = self.gated_script("out")
        ident = self.grid.submit("alice", "-A", "phys", "-t", "10:00", "--site", "gamma", script)
        self.wait_state(ident, ("Running",))
        path = self.grid.layout.config("meta")
        whole = path.read_text()

        def configured(text):
            path.write_text(text)
            self.grid.daemons["meta"].kill()
            self.grid.daemons["meta"].start()
        try:
            configured(re.sub(r"SITECFG\[gamma\].*\n?", "", whole))
            said = wait_for("a status", lambda: self.status("alice", ident), 60)
            self.assertEqual(said["state"], "Running")
            self.assertIn("site gamma is in the grid's configuration no more: what it has of the job goes on there and is "
                          "charged", said["reason"])
            self.assertIn("its end is told, or it is cancelled, when the site is back", said["reason"])
            self.nui("alice", "cancel", ident)
            self.assertIn("it is cancelled when the site is back", self.status("alice", ident)["reason"])
        finally:
            configured(whole)
            self.grid.wait_serving()
        said = self.wait_state(ident, ("Cancelled",))
        self.assertRegex(said["reason"], r"^cancelled by nui://demo/user/alice")


if __name__ == "__main__":
    main()
