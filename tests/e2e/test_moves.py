"""A queued job moves to a site that has become clearly better, once, also when daemons are killed on the
way; a held one and one for which the gain is small stay."""
import json

from fixture import GridCase, main, wait_for


class Moves(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.configure(gain="0:05")

    @classmethod
    def configure(cls, gain):
        path = cls.grid.layout.config("meta")
        lines = [line for line in path.read_text().splitlines() if not line.startswith("MOVE")]
        path.write_text("\n".join([*lines, "MOVEINTERVAL 1", f"MOVEGAIN {gain}", "SITELOSTTIME 15", ""]))
        cls.grid.daemons["meta"].stop()
        cls.grid.daemons["meta"].start()
        cls.grid.wait_serving()

    def submit(self, *options):
        return self.grid.submit("alice", "-A", "phys", *options)

    def kill(self, name):
        self.grid.daemons[name].kill()
        self.grid.daemons[name].start()

    def fill(self, name):
        """alpha and beta, 8 processors each, full for an hour; their gates are {name}-alpha and -beta."""
        for site in ("alpha", "beta"):
            ident = self.submit("-n", 8, "-t", "1:00:00", "--site", site, self.gated_script(f"{name}-{site}"))
            self.addCleanup(self.open_gate, f"{name}-{site}")
            self.wait_state(ident, ("Running",))

    def queued(self, name, *options):
        """A job that waits for one of the two; where it is and where it could be."""
        ident = self.submit("-n", 8, "-t", "1:00", "--site", "alpha,beta", *options, self.gated_script(name))
        job = self.wait_state(ident, ("Queued",))
        here = job["components"][0]["site"]
        return ident, here, "beta" if here == "alpha" else "alpha"

    def site_of(self, ident):
        return self.status("alice", ident)["components"][0]["site"]

    def ran_once(self, ident, name, site):
        job = self.wait_state(ident, ("Running",))
        self.assertEqual(job["components"][0]["site"], site)
        self.open_gate(name)
        self.wait_state(ident, ("Completed",))
        began = self.began(name)
        self.assertEqual(len(began), 1, began)
        self.assertIn(f"{site}.", began[0])
        wait_for("one charge", lambda: len(self.charges(ident)) == 1, 30)

    def free(self, site):
        rows = json.loads(self.nui("alice", "sites", "--json").stdout)
        return next(r["procs_free"] for r in rows if r["site"] == site)

    def test_it_moves_once(self):
        self.fill("plain")
        ident, here, there = self.queued("moved")
        self.open_gate(f"plain-{there}")
        self.ran_once(ident, "moved", there)
        self.open_gate(f"plain-{here}")
        self.settled()
        self.assert_books_close()

    def test_killed_on_the_way(self):
        self.fill("killed")
        ident, here, there = self.queued("killed-job")
        self.open_gate(f"killed-{there}")
        for victim in ("meta", there, here, "meta"):
            self.kill(victim)
        self.ran_once(ident, "killed-job", there)
        self.open_gate(f"killed-{here}")
        self.settled()
        self.assert_books_close()

    def test_a_held_one_stays(self):
        self.fill("held")
        ident, here, there = self.queued("held-job")
        self.nui("alice", "sethold", "-u", ident)
        self.open_gate(f"held-{there}")
        wait_for(f"{there} to be free", lambda: self.free(there) == 8, 60)
        # it was looked at since: another one of the same sort, not held, went there and is through
        other = self.submit("-n", 8, "-t", "1:00", "--site", there, self.write("ok.sh", "#!/bin/sh\ntrue\n"))
        self.wait_state(other, ("Completed",))
        self.assertEqual((self.site_of(ident), self.began("held-job")), (here, []))
        self.nui("alice", "releasehold", "-u", ident)
        self.ran_once(ident, "held-job", there)
        self.open_gate(f"held-{here}")

    def test_its_site_is_lost(self):
        """It waits at a site that dies: another one gets it, and the site does not start it when it is back. Those
        whose owners want to be told, the default, stay with it, a co-allocated one whole."""
        self.fill("lost")
        ident, here, there = self.queued("lost-job", "--on-site-loss", "resubmit")
        told = self.submit("-n", 8, "-t", "1:00", "--site", here, self.write("told.sh", "#!/bin/sh\ntrue\n"))
        self.wait_state(told, ("Queued",))
        pair, parts = self.pair("lost-pair")
        self.grid.daemons[here].kill()
        self.open_gate(f"lost-{there}")
        job = self.wait_state(ident, ("Running",))
        self.assertEqual(job["components"][0]["site"], there)
        for stays, state in ((told, "Queued"), (pair, "Reserved")):
            job = self.status("alice", stays)
            self.assertEqual(job["state"], state)
            self.assertRegex(job["reason"], f"site {here} is lost: .*; the job stays with it")
        self.assertEqual([part["site"] for part in job["components"]],
                         [part["site"] for part in parts["components"]])
        self.nui("alice", "cancel", pair)
        self.grid.daemons[here].start()
        self.grid.wait_serving()
        self.open_gate(f"lost-{here}")
        self.ran_once(ident, "lost-job", there)
        self.assertEqual(self.wait_state(told, ("Completed",))["components"][0]["site"], here)
        wait_for("the other site to be free", lambda: self.free(here) == 8, 60)
        self.assertEqual(len(self.began("lost-job")), 1)
        self.settled()
        self.assert_books_close()

    def pair(self, name):
        """A co-allocated job that fills both sites for a minute."""
        place = self.job_dir()
        script = self.write(f"{name}.sh", f"""#!/bin/sh
echo "$NUI_COMPONENT $NUI_JOBID $NUI_START_TIME" >> {place}/{name}.began
chmod a+rw {place}/{name}.began 2>/dev/null
""")
        ident = self.submit("-t", "1:00", "--component", "left:site=alpha,tasks=8",
                            "--component", "right:site=beta,tasks=8", script)
        job = self.wait_state(ident, ("Reserved",))
        return ident, job

    def slid(self, name, ident, before):
        """Through, long before the moment it was promised first, both parts at one moment, once each."""
        job = self.wait_state(ident, ("Completed",))
        self.assertLess(job["end_time"], before["start_time"])
        began = [line.split() for line in self.began(name)]
        self.assertEqual([b[0] for b in began], ["left", "right"], began)
        self.assertEqual(began[0][2], began[1][2])
        wait_for("two charges", lambda: len(self.charges(ident)) == 2, 30)
        self.settled()
        self.assert_books_close()

    def test_a_group_slides(self):
        """It has a moment in an hour; when both sites have freed up it runs at once."""
        self.fill("slide")
        ident, before = self.pair("slide-pair")
        self.open_gate("slide-alpha")
        wait_for("alpha to be free", lambda: self.free("alpha") == 8, 60)
        self.assertEqual(self.status("alice", ident)["state"], "Reserved")
        self.open_gate("slide-beta")
        self.slid("slide-pair", ident, before)

    def test_killed_while_it_slides(self):
        self.fill("slidekill")
        ident, before = self.pair("slidekill-pair")
        self.open_gate("slidekill-alpha")
        self.open_gate("slidekill-beta")
        for victim in ("meta", "alpha", "meta", "beta", "meta"):
            self.kill(victim)
        self.slid("slidekill-pair", ident, before)

    def test_a_group_that_slides_can_be_cancelled(self):
        self.fill("slidecancel")
        ident, _ = self.pair("slidecancel-pair")
        self.open_gate("slidecancel-alpha")
        self.nui("alice", "cancel", ident)
        self.wait_state(ident, ("Cancelled",))
        self.open_gate("slidecancel-beta")
        self.settled()
        self.assertEqual(self.began("slidecancel-pair"), [])


if __name__ == "__main__":
    main()
