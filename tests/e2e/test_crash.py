"""kill -9 of each process of the grid, at moments of a job's life, then a restart.

Nothing acknowledged is lost, nothing runs twice, nothing is charged twice, the books close.
"""
import os
import random
import sys

from fixture import GridCase, main, wait_for

VICTIMS = ("bank", "meta", "alpha", "beta", "postgresql")


class Crash(GridCase):
    def kill_and_restart(self, *names):
        for name in names:
            (self.grid.postgres if name == "postgresql" else self.grid.daemons[name]).kill()
        for name in names:
            (self.grid.postgres if name == "postgresql" else self.grid.daemons[name]).start()

    def check_once(self, ident, name, components):
        """The job ran and was charged once per component; nothing is held; the books close."""
        began = self.began(name)
        self.assertEqual([line.split()[0] for line in began], sorted(components), began)
        self.settled()
        charges = self.charges(ident)
        self.assertEqual(len(charges), len(components), charges)
        for line in charges:
            self.assertLess(line["posted"], 0, line)
        self.assert_books_close()
        wait_for("supervisors to end", lambda: not self.grid.supervisors(), 10)

    def story(self, victims, options, components):
        """Kill at once after the submit was acknowledged, between the commit of a co-allocated job
        and its start, and again while the job runs."""
        name = "-".join((*victims, *components))
        script = self.gated_script(name)
        ident = self.grid.submit("alice", "-A", "phys", "-t", "5:00", *options, script)
        self.kill_and_restart(*victims)
        if len(components) > 1 and self.wait_state(ident, ("Reserved", "Running"))["state"] == "Reserved":
            self.kill_and_restart(*victims)
        self.wait_state(ident, ("Running",))
        wait_for("every component to begin", lambda: len(self.began(name)) == len(components), 30)
        self.kill_and_restart(*victims)
        self.open_gate(name)
        job = self.wait_state(ident, ("Completed",))
        self.assertEqual(len(job["components"]), len(components))
        self.check_once(ident, name, components)

    def one_site(self, *victims):
        self.story(victims, ["-n", 1, "--site", "alpha"], ["main"])

    def both(self, *victims):
        self.story(victims, ["--component", "left:site=alpha,tasks=2",
                             "--component", "right:site=beta,tasks=2"], ["left", "right"])

    def test_everything_at_once(self):
        everything = ("meta", "bank", "alpha", "beta", "gamma", "postgresql")
        # restart in the order of an operator: the database first
        name = "everything"
        script = self.gated_script(name)
        ident = self.grid.submit("alice", "-A", "phys", "-t", "5:00",
                                 "--component", "left:site=alpha,tasks=2",
                                 "--component", "right:site=beta,tasks=2", script)
        self.wait_state(ident, ("Running",))
        wait_for("both components to begin", lambda: len(self.began(name)) == 2, 30)
        for part in everything:
            (self.grid.postgres if part == "postgresql" else self.grid.daemons[part]).kill()
        self.open_gate(name)  # the jobs end while nobody looks
        wait_for("the jobs to end", lambda: not self.grid.supervisors(), 20)
        self.grid.start()
        self.wait_state(ident, ("Completed",))
        self.check_once(ident, name, ["left", "right"])

    def test_job_ends_while_the_bank_is_away(self):
        name = "unpaid"
        script = self.gated_script(name)
        ident = self.grid.submit("alice", "-A", "phys", "-t", "5:00", "-n", 2, "--site", "beta", script)
        self.wait_state(ident, ("Running",))
        self.grid.daemons["bank"].kill()
        # What it would cost is not known, which is not 0; and nothing is certain that nobody may pay.
        rows = self.grid.json("alice", "estimate", "-A", "phys", "-t", "5:00")
        self.assertTrue([row for row in rows if row["start"]])
        self.assertEqual({(row["price"], row["price_diff"], row["bound"]) for row in rows}, {(None, None, None)})
        self.assertNotIn("certain", {row["confidence"] for row in rows})
        self.assertTrue(all("bank" in row["reason"] for row in rows), rows)
        self.open_gate(name)
        self.wait_state(ident, ("Completed",))
        self.grid.daemons["bank"].start()
        self.check_once(ident, name, ["main"])

    def submit_when_served(self, *options):
        """As a script would: again after "no answer" (4), which here means that nothing was taken."""
        def accepted():
            done = self.grid.nui("alice", "submit", *options)
            self.assertIn(done.returncode, (0, 4), done.stderr)
            return done.stdout.split()[0] if done.returncode == 0 else None
        return wait_for("the submit to be accepted", accepted, 30, self.grid.layout.log, 0.2)

    def test_storm(self):
        """Jobs of both sorts come in while daemons are killed in random order."""
        seed = int(os.environ.get("NUI_SEED", random.SystemRandom().randrange(10**6)))
        print(f"(NUI_SEED={seed})", file=sys.stderr)
        chance = random.Random(seed)
        script = self.write("storm.sh", f"""#!/bin/sh
echo "$NUI_COMPONENT $NUI_GRID_JOBID $NUI_JOBID" >> {self.job_dir()}/storm.began
chmod a+rw {self.job_dir()}/storm.began 2>/dev/null
i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done
""")
        expected = []
        for number in range(9):
            if number % 3 == 2:
                options = ["--component", "left:site=alpha,tasks=2", "--component",
                           "right:site=beta,tasks=2"]
                parts = ["left", "right"]
            else:
                options, parts = ["-n", chance.randrange(1, 5)], ["main"]
            ident = self.submit_when_served("-A", "phys", "-t", 10, *options, script)
            expected += [(part, ident) for part in parts]
            if number % 2:
                self.kill_and_restart(chance.choice(VICTIMS))
        for ident in sorted({ident for _, ident in expected}):
            self.wait_state(ident, ("Completed",), seconds=120)
        began = [tuple(line.split()[:2]) for line in self.began("storm")]
        self.assertEqual(sorted(began), sorted(expected))
        self.settled()
        charged = [(line["job"], line["site"]) for line in self.statement()["lines"]
                   if line["kind"] == "charge" and line["job"] in {i for _, i in expected}]
        self.assertEqual(len(charged), len(expected), charged)
        self.assertEqual(len(set(charged)), len(expected), "two parts of a job are on two sites")
        self.assert_books_close()


def add_cases():
    for victim in VICTIMS:
        setattr(Crash, f"test_one_site_{victim}", lambda self, v=victim: self.one_site(v))
        setattr(Crash, f"test_coallocated_{victim}", lambda self, v=victim: self.both(v))


add_cases()

if __name__ == "__main__":
    main()
