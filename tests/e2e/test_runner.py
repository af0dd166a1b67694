"""Real processes: environment, account, limits, and a site that comes back to them."""
import json
import os
import re
import subprocess
from pathlib import Path

from fixture import GridCase, layout, main, wait_for


class Runner(GridCase):
    def run_job(self, *options, script, states=("Completed",)):
        ident = self.grid.submit("alice", "-A", "phys", *options, script)
        return ident, self.wait_state(ident, states)

    def test_environment(self):
        script = self.write("env.sh", "#!/bin/sh\nid -un\nenv | grep ^NUI_ | sort\n"
                            "echo nodes $(cat $NUI_NODEFILE)\necho args $*\necho $COLOUR\n")
        ident = self.grid.submit("alice", "-A", "phys", "-n", 3, "-t", 60, "--site", "alpha",
                                 "--env", "COLOUR=blue", script, "one", "two")
        self.wait_state(ident, ("Completed",))
        lines = self.nui("alice", "output", ident).stdout.splitlines()
        self.assertEqual(lines[0], layout.account_of("alice"))
        env = dict(line.split("=", 1) for line in lines if line.startswith("NUI_"))
        self.assertRegex(env["NUI_JOBID"], r"^alpha\.\d+$")
        self.assertEqual(env["NUI_SITE"], "alpha")
        self.assertEqual(env["NUI_TASKS"], "3")
        self.assertEqual(env["NUI_COMPONENT"], "main")
        self.assertRegex(env["NUI_PEERS"], r"^main=[\w.-]+:\d+$")
        self.assertEqual(env["NUI_PEERS"].rsplit(":", 1)[1], env["NUI_PORT"])
        first = self.grid.ports["jobs"]
        self.assertIn(int(env["NUI_PORT"]), range(first, first + layout.JOB_PORTS))
        self.assertIn("NUI_START_TIME", env)
        nodes = next(line for line in lines if line.startswith("nodes ")).split()[1:]
        self.assertEqual(len(nodes), 3, "one line per task")
        self.assertTrue(all(re.match(r"^alpha0[1-4]$", n) for n in nodes), nodes)
        self.assertIn("args one two", lines)
        self.assertIn("blue", lines)

    def test_parts_share_a_secret(self):
        """Both parts have the same, over a restart of a site; another job has another, an ordinary one none; and
        nothing that is shown or written down says it."""
        script = self.write("secret.sh", "#!/bin/sh\necho secret $NUI_SECRET\n")

        def group(wait=None):
            ident = self.grid.submit("alice", "-A", "phys", "-t", 60, "--component", "left:site=alpha,tasks=2",
                                     "--component", "right:site=beta,tasks=1", script)
            if wait:
                self.wait_state(ident, (wait,))
                self.grid.daemons["beta"].kill()
                self.grid.daemons["beta"].start()
            self.wait_state(ident, ("Completed",), seconds=120)
            return ident, {self.nui("alice", "output", ident, part).stdout for part in ("left", "right")}

        self.grid.submit("alice", "-A", "phys", "--site", "beta", "-t", 20, "-n", 8, self.gated_script("before"))
        wait_for("beta to be full", lambda: self.began("before"), 60)
        first, said = group(wait="Reserved")
        self.assertEqual(len(said), 1, said)
        secret = re.fullmatch(r"secret ([0-9a-f]{32})\n", said.pop()).group(1)
        other = group()[1]
        self.assertEqual(len(other), 1, other)
        self.assertNotIn(secret, other.pop())
        alone, _ = self.run_job("-n", 1, "-t", 60, script=script)
        self.assertEqual(self.nui("alice", "output", alone).stdout, "secret\n")
        shown = [self.nui("alice", "status", first).stdout, self.nui("alice", "status", "--json", first).stdout]
        shown += [path.read_text(errors="replace") for path in self.grid.layout.log.iterdir()]
        self.assertGreater(len(shown), 3)
        for text in shown:
            self.assertNotIn(secret, text)

    def test_many_followers(self):
        """A daemon has one inotify instance (of 128 for all of a user's processes), whatever runs and is followed."""
        def instances(pid):
            links = [os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir() if f.is_symlink()]
            return sum("inotify" in link for link in links)
        ident = self.grid.submit("alice", "-A", "phys", "-n", 1, "-t", "5:00", "--site", "alpha", self.gated_script("many"))
        self.wait_state(ident, ("Running",))
        self.assertTrue(wait_for("the job to begin", lambda: self.began("many"), 60))
        followers = [subprocess.Popen([str(self.grid.programs["nui"]), "output", "--follow", *stream, ident], text=True,
                                      env=self.grid.environment("alice"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for stream in ((), ("--stderr",)) * 4]
        try:
            held = lambda: sum("/work/std" in os.readlink(f) for f in  # noqa: E731
                               Path(f"/proc/{self.grid.daemons['alpha'].pid()}/fd").iterdir() if f.is_symlink())
            wait_for("all to be followed", lambda: held() >= len(followers), 60)
            self.assertEqual(instances(self.grid.daemons["alpha"].pid()), 1)
            followers[2].kill()
            self.open_gate("many")
            self.wait_state(ident, ("Completed",))
            for n, follower in enumerate(followers):
                said = follower.communicate(timeout=600)[0]
                if n != 2:
                    self.assertEqual(said, "main passed the gate\n" if n % 2 == 0 else "")
        finally:
            for follower in followers:
                follower.kill()
                follower.wait()

    def test_a_mistake_ends_the_wait(self):
        """Who waits for a job that fails at once by its own fault hears why, with a failure's code, and pays nothing."""
        before = len(self.statement()["lines"])
        for text, options, why in (("#!/bin/bsah\necho\n", (), "names /bin/bsah, which does not exist here"),
                                   ("#!/bin/sh\necho\n", ("--chdir", "/nowhere"), "/nowhere, does not exist at this site")):
            done = self.nui("alice", "submit", "--wait", "-A", "phys", "-n", 1, "-t", 60, "--site", "alpha", *options,
                            self.write("bsah.sh", text), code=1)
            self.assertIn(why, done.stdout + done.stderr)
        self.settled()
        self.assertEqual(len([l for l in self.statement()["lines"][before:] if l["posted"] < 0]), 0)

    def test_a_lost_deadline_costs_nothing(self):
        """It waits in the site's queue, held, until it can no longer be over in time."""
        first = self.grid.submit("alice", "-A", "phys", "--site", "gamma", "-n", 2, "-t", 12, self.gated_script("before2"))
        self.wait_state(first, ("Running",))
        late = self.grid.submit("alice", "-A", "phys", "--site", "gamma", "-t", 5, "--deadline", "+0:20",
                                self.write("late.sh", "#!/bin/sh\necho ran\n"))
        self.nui("alice", "sethold", "-u", late)
        self.open_gate("before2")
        self.wait_state(first, ("Completed",))
        self.wait_state(late, ("Failed",), seconds=150)
        self.assertIn("cannot end by its deadline", json.dumps(self.status("alice", late)))
        self.settled()
        self.assertEqual(self.charges(late), [])
        self.assertEqual(len(self.charges(first)), 1)
        self.assert_books_close()

    def test_exit_code(self):
        _, job = self.run_job("-n", 1, "-t", 60, script=self.write("seven.sh", "#!/bin/sh\nexit 7\n"),
                              states=("Failed",))
        self.assertEqual(job["components"][0]["exit_code"], 7)

    def test_wallclock_limit(self):
        script = self.write("stubborn.sh", "#!/bin/sh\ntrap '' TERM\necho begun\n"
                            "while :; do sleep 0.1; done\n")
        ident, job = self.run_job("-n", 1, "-t", 2, script=script, states=("Failed",))
        self.assertEqual(job["components"][0]["state"], "Timeout")
        self.assertIn("begun", self.nui("alice", "output", ident).stdout)
        wait_for("its processes to be gone", lambda: not self.grid.supervisors(), 10)
        self.settled()
        charged = -sum(line["posted"] for line in self.charges(ident))
        self.assertGreaterEqual(charged, 2)
        self.assertLess(charged, 9)  # the limit, the grace, and a little

    def test_a_restarted_site_finds_its_jobs(self):
        script = self.gated_script("orphan", code=9)
        ident = self.grid.submit("alice", "-A", "phys", "-n", 1, "-t", "5:00", "--site", "gamma",
                                 script)
        self.wait_state(ident, ("Running",))
        wait_for("the job to begin", lambda: self.began("orphan"), 20)
        self.grid.daemons["gamma"].kill()
        self.open_gate("orphan")
        wait_for("the job to end", lambda: not self.grid.supervisors(), 20)
        self.grid.daemons["gamma"].start()
        job = self.wait_state(ident, ("Failed",))
        self.assertEqual(job["components"][0]["exit_code"], 9)
        self.assertEqual(len(self.began("orphan")), 1)
        self.settled()
        self.assertEqual(len(self.charges(ident)), 1)

    def test_an_orderly_restart_leaves_jobs_alone(self):
        script = self.gated_script("patient")
        ident = self.grid.submit("alice", "-A", "phys", "-n", 1, "-t", "5:00", "--site", "beta", script)
        self.wait_state(ident, ("Running",))
        wait_for("the job to begin", lambda: self.began("patient"), 20)
        self.assertTrue(self.grid.daemons["beta"].stop(), "it had to be killed")
        self.grid.daemons["beta"].start()
        self.open_gate("patient")
        self.wait_state(ident, ("Completed",))
        self.assertEqual(len(self.began("patient")), 1)

    def test_cancel(self):
        script = self.gated_script("unwanted")
        ident = self.grid.submit("alice", "-A", "phys", "-n", 1, "-t", "5:00", script)
        self.wait_state(ident, ("Running",))
        self.nui("bob", "cancel", ident, code=5)  # another's job is as good as none
        self.nui("alice", "cancel", ident)
        self.wait_state(ident, ("Cancelled",))
        wait_for("its processes to be gone", lambda: not self.grid.supervisors(), 15)
        self.settled()
        self.assert_books_close()

    def test_jobs_never_run_as_root(self):
        if os.geteuid() != 0:
            self.skipTest("we are not root")
        _, job = self.run_job("-n", 1, "-t", 60, script=self.write("who.sh", "#!/bin/sh\nid -u\n"))
        ident = job["job_id"]
        self.assertNotEqual(self.nui("alice", "output", ident).stdout.strip(), "0")


if __name__ == "__main__":
    main()
