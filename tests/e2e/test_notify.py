"""Notifications: the hook program and the webhook hear of failures, once each, in order, whatever is
down for a while; the scheduler waits for neither."""
import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from admin_case import AdminCase
from fixture import main, wait_for


class Hook(BaseHTTPRequestHandler):
    """answers: the status codes of the next requests, then 204."""
    answers, got = [], []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.answers.pop(0) if self.answers else 204
        self.got.append((code, self.headers["Content-Type"], self.headers["Idempotency-Key"],
                         json.loads(body)))
        self.send_response(code)
        self.end_headers()

    def log_message(self, *args):
        pass


class Notify(AdminCase):
    @classmethod
    def fund(cls):
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        cls.addClassCleanup(cls.server.server_close)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.shutdown)
        place = cls.job_dir()
        program = place / "hook"
        # It fails as long as hook.broken is there; otherwise it says what it heard.
        program.write_text(f"""#!/bin/sh
[ -e {place}/hook.broken ] && {{ echo "$1 $2" >> {place}/hook.failed; exit 7; }}
echo "$1|$2|$3|$NUI_SITE|$NUI_USER" >> {place}/hook.heard
""")
        program.chmod(0o755)
        cls.config = (f"NOTIFICATIONPROGRAM {program}\nNOTIFICATIONACCOUNT root\n"
                      f"NOTIFICATIONURL http://127.0.0.1:{cls.server.server_port}/events?a=b\n"
                      "AMCFG[bank] ANCHORINTERVAL=1\n")
        super().fund()

    def heard(self):
        path = self.job_dir() / "hook.heard"
        return [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []

    def posted(self, event):
        return [body for code, _, _, body in list(Hook.got) if code < 300 and body["event"] == event]

    def failing(self, name):
        """A job that ended with 3."""
        _, site_id = self.submit(name, "-n", 1, "-t", "60", code=3)
        self.wait_local(site_id, "Running")
        self.open_gate(name)
        self.wait_local(site_id, "Failed")
        return site_id

    def submit(self, name, *options, code=0):
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", *options,
                                 self.gated_script(name, code))
        return ident, wait_for(f"{ident} to be at alpha", lambda: self.at_site(ident), 30)

    def log(self, *words):
        text = (self.grid.layout.log / "alpha.log").read_text(errors="replace")
        return [line for line in text.splitlines() if all(w in line for w in words)]

    def test_1_a_failed_job(self):
        good = self.submit("good", "-n", 1, "-t", "60")[1]
        self.wait_local(good, "Running")
        self.open_gate("good")
        self.wait_local(good, "Completed")
        bad = self.failing("bad")
        wait_for("the webhook", lambda: self.posted("JobFailure"), 30)
        text = f"job {bad} of {self.account} failed: the job ended with an exit code other than 0 " \
               "(exit code 3)"
        self.assertEqual(self.heard(), [["JobFailure", bad, text, "alpha", self.account]])
        code, kind, key, body = Hook.got[-1]
        self.assertEqual((code, kind, len(Hook.got)), (204, "application/json", 1))
        self.assertEqual({k: v for k, v in body.items() if k not in ("time", "key")},
                         {"event": "JobFailure", "site": "alpha", "object": bad, "text": text,
                          "user": self.account})
        self.assertEqual((body["key"], len(key)), (key, 36))
        self.assertRegex(body["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")

    def test_2_tried_again(self):
        """503 and a hook that fails: again later, with the same key; 404: never."""
        Hook.answers[:] = [503, 503, 204, 404]
        before = len(Hook.got)
        (self.job_dir() / "hook.broken").touch()
        first = self.failing("again")
        wait_for("the hook to fail", lambda: (self.job_dir() / "hook.failed").exists(), 30)
        (self.job_dir() / "hook.broken").unlink()
        second = self.failing("lost")
        wait_for("all four", lambda: len(Hook.got) >= before + 4, 60)
        wait_for("what was dropped", lambda: self.log("notify dead_letter", f"object={second}", "by=url",
                                                       "404"), 30)
        got = Hook.got[before:]
        self.assertEqual([(code, body["object"]) for code, _, _, body in got],
                         [(503, first), (503, first), (204, first), (404, second)])
        self.assertEqual(len({key for _, _, key, _ in got}), 2)
        self.assertEqual([line[1] for line in self.heard()[-2:]], [first, second])
        self.assertTrue(self.log("notify not_taken", "by=program"))

    def test_3_survives(self):
        """Nobody hears, the daemon is killed: told after the restart."""
        Hook.answers[:] = [503] * 3
        before = len(Hook.got)
        job = self.failing("survives")
        wait_for("a refusal", lambda: len(Hook.got) > before, 30)
        self.grid.daemons["alpha"].kill()
        Hook.answers[:] = []
        self.grid.daemons["alpha"].start()
        wait_for("it to be told", lambda: any(b["object"] == job for b in self.posted("JobFailure")), 60)

    def test_4_the_bank(self):
        big = self.submit("big", "-n", 8, "-t", "60")[1]
        self.wait_local(big, "Running")
        job = self.submit("broke", "-n", 1, "-t", "60")[1]
        self.grid.daemons["bank"].kill()
        self.here("canceljob", big)  # the next one asks for its hold
        body = wait_for("the bank's silence", lambda: self.posted("BankDown"), 60)[0]
        self.assertIn("does not answer", body["text"])
        self.grid.daemons["bank"].start()
        wait_for("its return", lambda: self.posted("BankUp"), 60)
        self.assertEqual(len(self.posted("BankDown")), 1)
        self.here("canceljob", job)

    def told(self, event, name):
        return wait_for(f"{event} of {name}", lambda: next(
            (b for b in self.posted(event) if b["object"] == name), None), 60)

    def test_5_nodes_and_reservations(self):
        """A node that is down, a reservation that has lost nodes, and that both are well again."""
        rsv = self.data("setres", "-s", "+2:00:00", "-d", "1:00:00", "TASKS==8")[0]["reservation"]
        self.here("mnodectl", "-m", "state=down", "alpha04")
        body = self.told("NodeDown", "alpha04")
        self.assertEqual((body["text"], body["site"]), ("node alpha04 is down", "alpha"))
        self.assertEqual(self.told("ResUnfilled", rsv)["text"], f"reservation {rsv} has less than it wants")
        self.assertIn(f"reservation '{rsv}' wants 8 tasks, has 6", self.here("diagnose", "-r", rsv).stdout)
        self.here("mnodectl", "-m", "state=up", "alpha04")
        self.told("NodeUp", "alpha04")
        self.told("ResFilled", rsv)
        self.assertEqual([len([b for b in self.posted(e) if b["object"] in ("alpha04", rsv)])
                          for e in ("NodeDown", "NodeUp", "ResUnfilled", "ResFilled")], [1] * 4)
        self.here("mnodectl", "-m", "state=drained", "alpha03")  # nobody's fault: no NodeDown
        wait_for("the other news", lambda: len(self.posted("ResUnfilled")) == 2, 60)
        self.here("releaseres", rsv)
        self.here("mnodectl", "-m", "state=up", "alpha03")
        wait_for("its end", lambda: len(self.posted("ResFilled")) == 2, 60)
        self.assertFalse([b for b in self.posted("NodeDown") if b["object"] == "alpha03"])

    def test_5_at_the_limit(self):
        """A job that is ended for its wallclock limit has failed, too."""
        job = self.submit("toolong", "-n", 1, "-t", "1")[1]
        self.wait_local(job, "Timeout")
        text = self.told("JobFailure", job)["text"]
        self.assertIn(f"job {job} of {self.account} failed: ", text)
        self.assertIn("limit", text)

    def test_5_the_banks_history(self):
        """The site keeps blocks of it; the owner of the database rewrites it, and takes that back."""
        kept = self.grid.layout.state / "alpha" / "anchors"
        wait_for("an anchor", lambda: kept.exists() and kept.read_text(), 60)
        anchors = kept.read_text().splitlines()  # more may come meanwhile
        met = self.grid.json("operator", "verify", "--anchor", self.write("anchors", "\n".join(anchors) + "\n"))
        self.assertEqual(met["anchors"], len(anchors))

        def rewrite(assignment):
            self.grid.postgres.sql("ALTER TABLE bank.block DISABLE TRIGGER block_fixed;"
                                   f"UPDATE bank.block SET root = {assignment} WHERE number > 1;"
                                   "ALTER TABLE bank.block ENABLE TRIGGER block_fixed")
        flipped = "set_byte (root, 0, 255 - get_byte (root, 0))"
        rewrite(flipped)
        said = wait_for("the site to see it", lambda: self.posted("BankHistoryRewritten"), 60)[0]["text"]
        self.assertIn("is not the one that this site has an anchor of", said)
        self.assertTrue(self.log(" history_rewritten ", "signature"))
        before = kept.read_text()
        self.assertEqual(self.grid.nui("operator", "verify", "--anchor", kept).returncode, 1)
        alpha = self.grid.daemons["alpha"]
        alpha.kill()
        alpha.start()
        self.grid.wait_serving()
        rewrite(flipped)
        wait_for("it to be as it was", lambda: self.posted("BankHistoryRestored"), 60)
        self.assertEqual(len(self.posted("BankHistoryRewritten")), 1)
        self.assertTrue(kept.read_text().startswith(before))

        # a bank that was set back to an older state: it does not have what was kept
        last = kept.read_text().splitlines()[-1].split()
        with kept.open("a") as file:
            file.write(f"{last[0]} {int(last[1]) + 1000} {last[2]} {last[3]}\n")
        alpha.kill()
        alpha.start()
        self.grid.wait_serving()
        wait_for("the site to miss it", lambda: len(self.posted("BankHistoryRewritten")) == 2, 60)
        self.assertTrue(self.log(" history_rewritten ", f"block={int(last[1]) + 1000} ", "does not have that block"))
        alpha.kill()
        kept.write_text("nonsense\n")
        self.assertIn("line 1: this is no anchor", self.refused_start())
        kept.unlink()
        alpha.start()
        self.grid.wait_serving()

    def refused_start(self):
        """What it says instead of starting."""
        done = subprocess.run([str(self.grid.programs["nui-local"]), "--config",
                               str(self.grid.layout.config("alpha"))], text=True, capture_output=True, timeout=600)
        self.assertNotEqual(done.returncode, 0)
        return done.stdout + done.stderr

    def test_6_configuration(self):
        config = self.grid.layout.config("alpha").read_text()
        broken = self.grid.layout.config("alpha").with_name("broken.cfg")
        for bad, says in (("NOTIFICATIONPROGRAM /nonexistent/hook", "cannot be executed"),
                          ("NOTIFICATIONURL ftp://x/", "wanted http:// or https://"),
                          ("NOTIFICATIONEVENTS JOBFAILURE LUNCH", "'LUNCH': wanted JOBFAILURE,")):
            word = bad.split()[0]
            lines = [line for line in config.splitlines() if not line.startswith(word)]
            broken.write_text("\n".join(lines + [bad]) + "\n")
            broken.chmod(0o600)
            done = subprocess.run([str(self.grid.programs["nui-local"]), "--config", str(broken),
                                   "--check"], text=True, capture_output=True)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn(says, done.stdout + done.stderr)


if __name__ == "__main__":
    main()
