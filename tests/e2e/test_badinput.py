"""Bad input: one clear sentence, the right exit code, nothing changed."""
import subprocess

from fixture import SAMPLES, GridCase, layout, main

HELLO = SAMPLES / "hello.sh"


class BadInput(GridCase):
    def snapshot(self):
        grid = self.grid
        return (grid.nui("alice", "jobs", "--json").stdout, self.balance(),
                grid.nui(layout.OPERATOR, "account", "--json", "list").stdout,
                self.statement()["lines"])

    def refused(self, code, words, *args, who="alice"):
        before = self.snapshot()
        done = self.nui(who, *args, code=code)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertRegex(done.stderr, words)
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.snapshot(), before)
        return done

    def test_unknown_option(self):
        self.refused(2, "--frob", "submit", "--frob", HELLO)
        self.refused(2, "--frob", "balance", "--frob")
        self.refused(2, "--frob", "sites", "--frob")

    def test_unknown_command(self):
        self.refused(2, "frobnicate", "frobnicate")

    def test_malformed_values(self):
        for options in (["-t", "abc"], ["-t", "1:2:3:4:5"], ["-t", "-5"], ["-t", "0"], ["-n", "x"],
                        ["-n", "-1"], ["-n", "0"], ["-n", "99999999999"], ["--mem", "12Q"],
                        ["--mem", "-1"], ["--max-cost", "1.2345678"], ["--after", "yesterdayish"]):
            with self.subTest(options=options):
                self.refused(2, options[1].lstrip("-") or ".", "submit", "-A", "phys", *options, HELLO)

    def test_missing_arguments(self):
        self.refused(2, "script", "submit", "-A", "phys", "-t", "60")
        self.refused(2, ".", "status")
        self.refused(2, ".", "deposit", "-A", "phys", who=layout.AGENCY)

    def test_missing_file(self):
        done = self.grid.nui("alice", "submit", "-A", "phys", "-t", 60, "no-such-script.sh")
        self.assertIn(done.returncode, (1, 5))
        self.assertIn("no-such-script.sh", done.stderr)
        self.refused(5, "no-such.cfg", "--config", "no-such.cfg", "jobs")

    def test_unknown_names(self):
        self.refused(5, r"grid\.4711", "status", "grid.4711")
        self.refused(5, r"grid\.4711", "cancel", "grid.4711")
        self.refused(5, "nowhere", "deposit", "-A", "nowhere", "10", who=layout.AGENCY)
        self.refused(1, "nowhere", "submit", "-A", "nowhere", "-t", 60, HELLO)
        self.refused(1, "atlantis", "submit", "-A", "phys", "-t", 60, "--site", "atlantis", HELLO)

    def test_amounts(self):
        for amount in ("-5", "0", "1.2345678", "1e3", "lots", "99999999999999999999"):
            with self.subTest(amount=amount):
                self.refused(2, ".", "deposit", "-A", "phys", amount, who=layout.AGENCY)

    def test_larger_than_any_site(self):
        self.refused(1, "(?i)proc|large|site|capacity|fit", "submit", "-A", "phys", "-n", 9, "-t", 60,
                     HELLO)

    def test_one_impossible_component(self):
        self.refused(1, "right", "submit", "-A", "phys", "-t", 60,
                     "--component", "left:site=alpha,tasks=2",
                     "--component", "right:site=gamma,tasks=3", HELLO)

    def test_malformed_components(self):
        for component in ("left:tasks", "left:tasks=x", "left:frob=1", ":tasks=1"):
            with self.subTest(component=component):
                self.refused(2, ".", "submit", "-A", "phys", "-t", 60, "--component", component, HELLO)
        self.refused(2, "left", "submit", "-A", "phys", "-t", 60, "--component", "left:tasks=1",
                     "--component", "left:tasks=1", HELLO)

    def test_no_credits(self):
        self.refused(1, "(?i)account|member|credit|fund", "submit", "-A", "phys", "-t", 60, HELLO,
                     who="bob")
        self.refused(1, "(?i)fund|credit|short", "submit", "-A", "phys", "-n", 8, "-t", "10:00:00",
                     HELLO)

    def test_too_large_a_request(self):
        big = self.write("big.sh", "#!/bin/sh\n" + "# filler\n" * 80000)
        self.refused(1, "larger than 524288 bytes", "submit", "-A", "phys", "-t", 60, big)

    def test_daemon_down(self):
        for daemon, words in (("meta", ["jobs"]), ("meta", ["submit", "-A", "phys", "-t", "60", HELLO]),
                              ("bank", ["balance"])):
            with self.subTest(daemon=daemon, words=words):
                self.assertTrue(self.grid.daemons[daemon].stop())
                try:
                    done = self.nui("alice", *words, code=4)
                    self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                    self.assertIn(str(self.grid.ports[daemon]), done.stderr)
                finally:
                    self.grid.daemons[daemon].start()
        self.grid.wait_serving()

    def test_bad_configuration_of_a_daemon(self):
        for name in ("bank", "meta", "alpha"):
            daemon = self.grid.daemons[name]
            good = daemon.config.read_text()
            done = self.daemon(name, daemon.config, "--check")
            self.assertEqual(done.returncode, 0, done.stderr)
            for bad, words in ((good + "LOGLEVEL shouting\n", "LOGLEVEL.*shouting"),
                               (good.replace("LOGLEVEL ", "LOGLEVELL "), "LOGLEVELL.*LOGLEVEL"),
                               (good.replace("GRID ", "#GRID "), "GRID")):
                done = self.daemon(name, self.write("bad.cfg", bad), "--check")
                self.assertEqual(done.returncode, 1, f"{name}: {words}: {done.stderr}")
                self.assertRegex(done.stderr, words)
            done = self.daemon(name, "no-such.cfg", "--check")
            self.assertEqual(done.returncode, 1)
            self.assertIn("no-such.cfg", done.stderr)
            self.assertEqual(self.daemon(name, daemon.config, "--frob").returncode, 2)

    def test_a_second_daemon_on_one_state_is_refused(self):
        for name in ("bank", "meta", "alpha"):
            daemon = self.grid.daemons[name]
            before = daemon.pid()
            done = self.daemon(name, daemon.config)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(daemon.pid(), before)
        self.nui("alice", "sites")
        self.nui("alice", "balance")

    def daemon(self, name, config, *options):
        return subprocess.run([self.grid.daemons[name].program, "--config", config, *options],
                              capture_output=True, text=True, timeout=600,
                              cwd=self.grid.layout.work)


if __name__ == "__main__":
    main()
