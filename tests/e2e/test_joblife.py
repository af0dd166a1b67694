"""The life of a grid job: dependencies across sites, of co-allocated jobs too, holds, and what a kill -9
of the metascheduler leaves of them."""
import hashlib
import hmac
import json
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fixture import GridCase, main, wait_for

SECRET = b"a secret of the grid and its hook"


class Hook(BaseHTTPRequestHandler):
    """answers: the status codes of the next requests at a path, then 204."""
    answers, got = {}, []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        rest = self.answers.get(self.path, [])
        code = rest.pop(0) if rest else 204
        self.got.append((self.path, code, self.headers["Nui-Signature"], self.headers["Idempotency-Key"], body))
        self.send_response(code)
        self.end_headers()

    def log_message(self, *args):
        pass


class JobLife(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        work, path = cls.grid.layout.work, cls.grid.layout.config("meta")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=hook",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", work / "hook.key", "-out",
                        work / "hook.pem"], check=True, capture_output=True)
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        cls.addClassCleanup(cls.server.server_close)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(work / "hook.pem", work / "hook.key")
        cls.server.socket = tls.wrap_socket(cls.server.socket, server_side=True)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.shutdown)
        cls.url = f"https://127.0.0.1:{cls.server.server_port}"
        (work / "hook.secret").write_bytes(SECRET + b"\n")
        path.write_text(path.read_text() + f"""
NOTIFICATIONURL {cls.url}/grid
NOTIFICATIONKEY {work}/hook.secret
NOTIFICATIONCA {work}/hook.pem
NOTIFICATIONALLOW {cls.url}/mine/
""")
        cls.grid.daemons["meta"].stop()
        cls.grid.daemons["meta"].start()
        cls.grid.wait_serving()

    def told(self, path, ident):
        """What was taken there of the job, in order."""
        bodies = [json.loads(body) for p, code, _, _, body in list(Hook.got) if p == path and code == 204]
        return [b for b in bodies if b["job"] == ident]

    def test_when_a_component_fails(self):
        """The others end as well, unless their owner wants them to go on; nobody pays for what did not run."""
        script = self.write("one-fails.sh", f"""#!/bin/sh
echo >> {self.job_dir()}/fails.$NUI_COMPONENT.$NUI_GRID_JOBID
if [ $NUI_COMPONENT = left ]; then
    until [ -e {self.job_dir()}/fails.right.$NUI_GRID_JOBID ]; do sleep 0.05; done
    exit 7
fi
until [ -e {self.job_dir()}/fails.gate ]; do sleep 0.05; done
""")
        pair = ["--component", "left:site=alpha,tasks=1", "--component", "right:site=beta,tasks=1", script]
        ident = self.grid.submit("alice", "-A", "phys", "-t", "10:00", "--name", "both", *pair)
        job = self.wait_state(ident, ("Failed",))
        self.assertIn("component left at alpha", job["reason"])
        states = {c["component"]: c["state"] for c in job["components"]}
        self.assertEqual(states["left"], "Failed")
        wait_for("the other to have ended", lambda: {c["component"]: c["state"] for c in self.status("alice", ident)[
            "components"]}["right"] == "Cancelled", 60)
        on = self.grid.submit("alice", "-A", "phys", "-t", "10:00", "--on-failure", "continue", "--name", "alone", *pair)
        wait_for("the first to have failed", lambda: [c["state"] for c in self.status("alice", on)["components"]] ==
                 ["Failed", "Running"], 60)
        self.assertEqual(self.status("alice", on)["state"], "Running")
        self.open_gate("fails")
        job = self.wait_state(on, ("Failed",))
        self.assertEqual([c["state"] for c in job["components"]], ["Failed", "Completed"])
        self.assertIn("component left at alpha", job["reason"])
        for options, words, code in ((["--on-failure", "weep", *pair], "is not cancel or continue", 2),
                                     (["--on-failure", "cancel", script], "is for jobs of several components", 1)):
            done = self.nui("alice", "submit", "-A", "phys", "-t", "10:00", *options, code=code)
            self.assertIn(words, done.stderr)

    def test_webhooks(self):
        """The grid's hook and the user's hear of each step, once taken; signed; again after 503 and a kill -9."""
        Hook.answers["/mine/a"] = [503, 503]
        ident = self.submit("--retries", 1, "--retry-delay", 1, "--name", "told", "--notify", f"{self.url}/mine/a",
                            "--site", "beta", self.failing("told", 3))
        self.wait_state(ident, ("Completed",))
        self.kill_meta()
        for path in ("/grid", "/mine/a"):
            wait_for("the end to be told", lambda: [b for b in self.told(path, ident) if b["event"] == "JobEnd"], 60)
            seen = self.told(path, ident)
            order = [b["event"] for i, b in enumerate(seen) if b["key"] not in [x["key"] for x in seen[:i]]]
            # a short run may be heard of by its end only
            self.assertEqual([e for e in order if e != "JobStart"], ["JobRetry", "JobEnd"], order)
            last = seen[-1]
            self.assertEqual((last["state"], last["name"], last["retries"], last["grid"]),
                             ("Completed", "told", 1, "demo"))
            self.assertEqual((last["components"][0]["site"], last["components"][0]["exit_code"]), ("beta", 0))
        tries = [(code, key) for p, code, _, key, _ in Hook.got if p == "/mine/a"]
        self.assertEqual([code for code, _ in tries[:2]], [503, 503])
        self.assertEqual(tries[0][1], tries[1][1])
        for path, _, signature, _, body in list(Hook.got):
            if path != "/grid":
                self.assertIsNone(signature)
                continue
            moment, mac = (field.split("=", 1)[1] for field in signature.split(","))
            self.assertLess(abs(time.time() - int(moment)), 3600)
            self.assertEqual(mac, hmac.new(SECRET, moment.encode() + b"." + body, hashlib.sha256).hexdigest())
        done = self.nui("alice", "submit", "-A", "phys", "-t", 60, "--notify", "https://127.0.0.2:1/mine/a",
                        self.ok_script(), code=3)
        self.assertIn("NOTIFICATIONALLOW", done.stderr)

    def test_webhook_configuration(self):
        config = self.grid.layout.config("meta").read_text()
        broken = self.grid.layout.config("meta").with_name("broken-meta.cfg")
        for bad, says in (("NOTIFICATIONURL ftp://x/", "wanted http:// or https://"),
                          ("NOTIFICATIONEVENTS JOBEND LUNCH", "'LUNCH': wanted JOBSTART,"),
                          ("NOTIFICATIONKEY /nonexistent", "cannot be read"),
                          ("NOTIFICATIONCA /nonexistent", "cannot be read"),
                          ("NOTIFICATIONALLOW https://hooks.example.org", "a / after its host")):
            lines = [line for line in config.splitlines() if not line.startswith(bad.split()[0])]
            broken.write_text("\n".join(lines + [bad]) + "\n")
            broken.chmod(0o600)
            done = subprocess.run([str(self.grid.programs["nui-meta"]), "--config", str(broken), "--check"],
                                  text=True, capture_output=True)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn(says, done.stdout + done.stderr)

    def submit(self, *options):
        return self.grid.submit("alice", "-A", "phys", "-t", "1:00", *options)

    def reason(self, ident):
        return self.status("alice", ident)["reason"] or ""

    def free(self, site):
        rows = json.loads(self.nui("alice", "sites", "--json").stdout)
        return next(r["procs_free"] for r in rows if r["site"] == site)

    def ok_script(self):
        return self.write("ok.sh", "#!/bin/sh\necho fine\n")

    def kill_meta(self):
        self.grid.daemons["meta"].kill()
        self.grid.daemons["meta"].start()

    def test_order_over_three_sites(self):
        """One after the other on three sites, a pair at the end; the metascheduler is killed in between."""
        gate = self.gated_script("first")
        first = self.submit("--site", "alpha", gate)
        second = self.submit("--site", "beta", "--depend", f"afterok:{first}", self.ok_script())
        third = self.submit("--site", "gamma", "--depend", f"afterok:{first}:{second}", self.ok_script())
        pair = self.submit("--component", "left:site=alpha,tasks=1", "--component", "right:site=beta,tasks=1",
                           "--depend", f"afterany:{third}", self.ok_script())
        started = self.submit("--site", "gamma", "--depend", f"after:{first}", self.ok_script())
        failed = self.submit("--site", "gamma", "--depend", f"afternotok:{first}", self.ok_script())
        self.wait_state(first, ("Running",))
        self.wait_state(started, ("Completed",))
        self.assertIn(f"waits for {first} (afterok)", self.reason(second))
        self.assertEqual(self.status("alice", pair)["state"], "Pending")
        self.kill_meta()
        self.assertIn(f"{second} (afterok)", self.reason(third))
        self.open_gate("first")
        jobs = [self.wait_state(i, ("Completed",)) for i in (first, second, third, pair)]
        ends = [max(c["end_time"] for c in job["components"]) for job in jobs]
        starts = [min(c["start_time"] for c in job["components"]) for job in jobs]
        self.assertEqual([job["components"][0]["site"] for job in jobs], ["alpha", "beta", "gamma", "alpha"])
        for before, after in zip(ends, starts[1:]):
            self.assertLessEqual(before, after)
        self.wait_state(failed, ("Refused",))
        self.assertIn("which can never be", self.reason(failed))

    def test_after_a_failure(self):
        bad = self.submit("--site", "beta", self.write("bad.sh", "#!/bin/sh\nexit 3\n"))
        well = self.submit("--site", "alpha", "--depend", f"afterok:{bad}", self.ok_script())
        notok = self.submit("--site", "alpha", "--depend", f"afternotok:{bad}", self.ok_script())
        self.wait_state(notok, ("Completed",))
        self.assertEqual(self.status("alice", bad)["components"][0]["exit_code"], 3)
        self.wait_state(well, ("Refused",))
        self.assertIn("which can never be", self.reason(well))

    def test_holds(self):
        """A pair that came held; one in a site's queue; one that waits for another."""
        pair = self.submit("--hold", "--component", "left:site=alpha,tasks=1", "--component",
                           "right:site=beta,tasks=1", self.ok_script())
        self.assertIn("held by its owner", self.reason(pair))
        self.kill_meta()
        self.assertEqual(self.status("alice", pair)["state"], "Pending")
        self.nui("alice", "releasehold", "-u", pair)
        self.wait_state(pair, ("Completed",))
        done = self.nui("alice", "sethold", "-u", pair, code=1)
        self.assertIn("has ended", done.stderr)

        gate = self.gated_script("hold")
        fill = self.submit("--site", "gamma", "-n", 2, gate)
        self.wait_state(fill, ("Running",))
        done = self.nui("alice", "sethold", "-u", fill, code=1)
        self.assertIn("has started", done.stderr)
        queued = self.submit("--site", "gamma", "-n", 1, self.ok_script())
        waits = self.submit("--site", "alpha", "--depend", f"afterany:{fill}", self.ok_script())
        self.wait_state(queued, ("Queued",))
        self.nui("alice", "sethold", "-u", queued, waits)
        self.nui("bob", "releasehold", "-u", queued, code=5)
        self.open_gate("hold")
        self.wait_state(fill, ("Completed",))
        wait_for("gamma to be free", lambda: self.free("gamma") == 2, 30)
        self.assertEqual(self.status("alice", queued)["state"], "Queued")
        wait_for("the hold", lambda: "held by its owner" in self.reason(waits), 20)
        self.nui("alice", "releasehold", "-u", queued, waits)
        self.wait_state(queued, ("Completed",))
        self.wait_state(waits, ("Completed",))

    def failing(self, name, *codes):
        """A job whose runs end with these codes, one after the other, and then with 0."""
        place = self.job_dir()
        return self.write(f"{name}.sh", f"""#!/bin/sh
echo "$NUI_JOBID" >> {place}/{name}.runs
chmod a+rw {place}/{name}.runs 2>/dev/null
n=$(wc -l < {place}/{name}.runs)
set -- {' '.join(map(str, codes))}
[ $n -gt $# ] && exit 0
shift $((n - 1))
exit $1
""")

    def runs(self, name):
        path = self.job_dir() / f"{name}.runs"
        return path.read_text().split() if path.exists() else []

    def test_retries(self):
        """Run again until it is well, each run with an id and a charge of its own; the metascheduler is
        killed while one waits for its next run."""
        ident = self.submit("--retries", 3, "--retry-delay", 3, self.failing("thrice", 1, 75))
        waits = self.submit("--depend", f"afterok:{ident}", self.ok_script())
        wait_for("the first failure", lambda: "run 2 of 4" in self.reason(ident), 60)
        self.assertIn("exit code 1", self.reason(ident))
        self.kill_meta()
        job = self.wait_state(ident, ("Completed",))
        runs = self.runs("thrice")
        self.assertEqual((len(runs), len(set(runs)), job["retries"]), (3, 3, 2), runs)
        self.wait_state(waits, ("Completed",))
        wait_for("three charges", lambda: len(self.charges(ident)) == 3, 30)

    def test_retries_are_over(self):
        """Not after another code, nor once they are used up; a cancelled one stays so."""
        other = self.submit("--retries", 3, "--retry-on", "75,100-120", "--retry-delay", 0,
                            self.failing("other", 110, 7))
        spent = self.submit("--retries", 1, "--retry-delay", 0, self.failing("spent", 1, 2, 3))
        self.wait_state(other, ("Failed",))
        self.wait_state(spent, ("Failed",))
        self.assertEqual((len(self.runs("other")), len(self.runs("spent"))), (2, 2))
        self.assertEqual(self.status("alice", other)["components"][0]["exit_code"], 7)
        waits = self.submit("--retries", 1, "--retry-delay", "1:00:00", self.failing("waits", 1))
        wait_for("the failure", lambda: "run 2 of 2" in self.reason(waits), 60)
        self.nui("alice", "cancel", waits)
        self.wait_state(waits, ("Cancelled",))
        self.settled()
        self.assert_books_close()

    def test_a_pair_is_run_again_as_a_whole(self):
        place = self.job_dir()
        script = self.write("pair.sh", f"""#!/bin/sh
echo "$NUI_JOBID" >> {place}/pair.$NUI_COMPONENT
[ $NUI_COMPONENT = right ] && [ $(wc -l < {place}/pair.right) = 1 ] && exit 9
exit 0
""")
        pair = self.submit("--component", "left:site=alpha,tasks=1", "--component", "right:site=beta,tasks=1",
                           "--retries", 1, "--retry-delay", 3, script)
        wait_for("the failure", lambda: "run 2 of 2" in self.reason(pair), 60)
        self.kill_meta()
        job = self.wait_state(pair, ("Completed",))
        self.assertEqual(job["retries"], 1)
        runs = [(place / f"pair.{c}").read_text().split() for c in ("left", "right")]
        self.assertEqual([len(set(r)) for r in runs], [2, 2], runs)
        self.settled()
        self.assert_books_close()

    def test_outputs_come_home(self):
        """Both streams of both components, and of each job of an array, without asking for them."""
        home = self.grid.layout.work / "home"
        home.mkdir()
        script = self.write("says.sh", "#!/bin/sh\necho \"out $NUI_COMPONENT $NUI_ARRAY_INDEX\"\necho bad >&2\n"
                                       "exit ${NUI_ARRAY_INDEX:-0}\n")
        done = self.nui("alice", "submit", "-A", "phys", "-t", "1:00", "--component", "left:site=alpha,tasks=1",
                        "--component", "right:site=beta,tasks=1", "--save", home, script)
        pair = done.stdout.split()[0]
        for c in ("left", "right"):
            self.assertEqual((home / f"{pair}.{c}.out").read_text(), f"out {c} \n")
            self.assertEqual((home / f"{pair}.{c}.err").read_text(), "bad\n")
        done = self.nui("alice", "submit", "-A", "phys", "-t", "1:00", "--array", "0-2", "--save", home, script, code=1)
        array = done.stdout.split("[")[0]
        ids = [f"{array}[{k}]" for k in range(3)]
        self.assertEqual([(home / f"{i}.out").read_text() for i in ids], [f"out main {k}\n" for k in range(3)])
        again = self.grid.layout.work / "made" / "again"
        done = self.nui("alice", "output", "--save", again, *ids)
        self.assertEqual(sorted(done.stdout.split()), sorted(str(again / f"{i}.{s}") for i in ids for s in ("err", "out")))
        self.assertEqual(sorted(p.name for p in again.iterdir()), sorted(f"{i}.{s}" for i in ids for s in ("err", "out")))
        done = self.nui("alice", "output", "--save", again / f"{ids[0]}.out" / "x", ids[0], code=1)
        self.assertIn("Not a directory", done.stderr)
        self.nui("bob", "output", "--save", again, ids[0], code=5)

    def test_files_come_home(self):
        """The files of each component, and of each job of an array, by the submission itself or asked for later."""
        home = self.grid.layout.work / "files"
        script = self.write("makes.sh", "#!/bin/sh\nmkdir out\necho $NUI_COMPONENT $NUI_ARRAY_INDEX > out/a.dat\n"
                                        "exit ${NUI_ARRAY_INDEX:-0}\n")
        done = self.nui("alice", "submit", "-A", "phys", "-t", "1:00", "--output-dir", home / "one", script)
        one = done.stdout.split()[0]
        self.assertEqual(sorted(str(p.relative_to(home)) for p in home.rglob("*") if p.is_file()),
                         ["one/out/a.dat", "one/stderr", "one/stdout"])
        self.assertEqual((home / "one/out/a.dat").read_text(), "main\n")
        said = json.loads(self.nui("alice", "status", "--json", one).stdout)["job"]
        self.assertGreater(said["files_until"], said["end_time"])
        done = self.nui("alice", "submit", "-A", "phys", "-t", "1:00", "--component", "left:site=alpha,tasks=1",
                        "--component", "right:site=beta,tasks=1", "--output-dir", home / "two", script)
        two = done.stdout.split()[0]
        self.assertEqual([(home / "two" / c / "out/a.dat").read_text() for c in ("left", "right")], ["left\n", "right\n"])
        self.nui("alice", "submit", "-A", "phys", "-t", "1:00", "--array", "0-2", "--output-dir", home / "many", script, code=1)
        self.assertEqual([(home / "many" / str(k) / "out/a.dat").read_text() for k in range(3)], [f"main {k}\n" for k in range(3)])
        done = self.nui("alice", "fetch", "-d", home / "later", "--component", "right", two, "*.dat")
        self.assertEqual(done.stdout, f"{home}/later/out/a.dat\n")
        done = self.nui("alice", "fetch", "-d", home / "later", "--component", "middle", two, code=5)
        self.assertIn("no component 'middle'", done.stderr)
        self.nui("bob", "fetch", "-d", home / "bobs", one, code=5)
        self.assertFalse((home / "bobs").exists())

    def test_an_array_spreads(self):
        """As many jobs as there are processors: they run at one time, on all three sites."""
        script = self.gated_script("spread")
        began = self.job_dir() / "spread.began"  # several accounts write it at one moment
        began.touch()
        began.chmod(0o666)
        done = self.nui("alice", "submit", "-A", "phys", "-t", "10:00", "--array", "1-18", script)
        array = done.stdout.split("[")[0]
        ids = [f"{array}[{k}]" for k in range(1, 19)]
        try:
            wait_for("all to run", lambda: len(self.began("spread")) == 18, 90)
        finally:
            self.open_gate("spread")
        jobs = [self.wait_state(i, ("Completed",)) for i in ids]
        sites = [job["components"][0]["site"] for job in jobs]
        self.assertEqual({s: sites.count(s) for s in ("alpha", "beta", "gamma")}, {"alpha": 8, "beta": 8, "gamma": 2})

    def test_bad_input(self):
        script = self.ok_script()
        mine = self.submit("--site", "alpha", script)
        for options, words in ((["--depend", "afterok:grid.99999"], "no job grid.99999"),
                               (["--depend", f"whenever:{mine}"], "is no dependency"),
                               (["--component", "a:site=alpha,tasks=1", "--component",
                                 "b:site=beta,tasks=1", "--depend", "afterok:alpha.1"], "of the grid only"),
                               (["--retries", 1, "--flags", "NORESTART"], "NORESTART"),
                               (["--on-site-loss", "resubmit", "--flags", "NORESTART"], "NORESTART"),
                               (["--notify", "gopher://x/"], "http://"),
                               (["--on-site-loss", "weep"], "report or resubmit"),
                               (["--retries", 101], "between 1 and 100"),
                               (["--retry-on", 3], "need --retries"),
                               (["--retries", 1, "--retry-on", "0"], "exit codes from 1"),
                               (["--retries", 1, "--retry-delay", "2:00:00"], "at most an hour")):
            done = self.grid.nui("alice", "submit", "-A", "phys", "-t", 60, *options, script)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1)
        self.wait_state(mine, ("Completed",))


if __name__ == "__main__":
    main()
