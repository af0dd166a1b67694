"""nui submit --mail: who asked is told by mail, once, also when the metascheduler died or the mail server was away; of what waits together
in one mail; nobody else is, and nothing that a user says gets into a header."""
import re
import socketserver
import subprocess
import threading

from fixture import GridCase, main, wait_for


class Smtp(socketserver.StreamRequestHandler):
    """Takes mails while it is open, says 451 before that."""
    open = threading.Event()
    asked, mails = [], []

    def say(self, text):
        self.wfile.write(f"{text}\r\n".encode())

    def handle(self):
        self.say("220 test")
        sender, to = "", []
        while line := self.rfile.readline().decode().strip():
            word = line.split(":")[0].upper()
            if word.startswith(("EHLO", "HELO")):
                self.say("250 test")
            elif word == "MAIL FROM":
                sender = line
                to = []  # curl keeps its connection
                self.asked.append(line)
                self.say("250 ok" if self.open.is_set() else "451 not now")
            elif word == "RCPT TO":
                to.append(re.search("<(.*)>", line).group(1))
                self.say("250 ok")
            elif word == "DATA":
                self.say("354 go on")
                text = b""
                while not text.endswith(b"\r\n.\r\n"):
                    text += self.rfile.readline()
                self.mails.append((sender, to, text.decode()))
                self.say("250 taken")
            elif word == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")


class Mail(GridCase):
    sites = {"alpha": (2, 4)}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Smtp)
        cls.server.daemon_threads = True
        cls.addClassCleanup(cls.server.server_close)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.shutdown)
        path = cls.grid.layout.config("meta")
        path.write_text(path.read_text() + f"MAILSERVER smtp://127.0.0.1:{cls.server.server_address[1]}\nMAILFROM nui@grid.example.org\n"
                                           "MAILALLOW @example.org\nMAILDELAY 1\n")
        cls.grid.daemons["meta"].stop()
        cls.grid.daemons["meta"].start()
        cls.grid.wait_serving()

    @staticmethod
    def server_open():
        Smtp.open.set()

    def submit(self, name, code, *options):
        script = self.write(f"{name}.sh", f"#!/bin/sh\nexit {code}\n")
        return self.nui("alice", "submit", "-A", "phys", "-t", "5:00", *options, script).stdout.strip()

    def mails(self, to):
        return [text for _, people, text in Smtp.mails if people == [to]]

    def test_who_asked_is_told(self):
        Smtp.open.clear()
        Smtp.asked.clear()
        Smtp.mails.clear()
        idents = [self.submit(f"end{i}", i % 2, "--name", f"run-{i}", "--mail", "end", "--mail-to", "together@example.org") for i in range(4)]
        bad = self.submit("bad", 7, "--mail", "fail,begin", "--mail-to", "fail@example.org")
        good = self.submit("good", 0, "--mail", "fail", "--mail-to", "fail@example.org")
        for ident in (*idents, bad, good):
            self.wait_state(ident, ("Completed", "Failed"))
        wait_for("the server to be asked", lambda: len(Smtp.asked) > 1, 60, self.grid.layout.log)
        self.assertEqual(Smtp.mails, [])
        self.grid.daemons["meta"].kill()
        self.grid.daemons["meta"].start()
        self.grid.wait_serving()
        self.server_open()
        wait_for("the mails", lambda: len(Smtp.mails) >= 2, 120, self.grid.layout.log)
        self.assertEqual(sorted(people for _, people, _ in Smtp.mails), [["fail@example.org"], ["together@example.org"]], Smtp.mails)
        (together,), (failed,) = self.mails("together@example.org"), self.mails("fail@example.org")
        self.assertRegex(together, r"(?m)^Subject: 4 notices of your jobs\r$")
        for i, ident in enumerate(idents):
            self.assertRegex(together, rf"(?m)^{re.escape(ident)} \(run-{i}\) has ended: {'Failed' if i % 2 else 'Completed'}, alpha: exit code {i % 2}, at ")
        self.assertRegex(failed, r"(?m)^From: nui@grid\.example\.org\r$")
        self.assertRegex(failed, r"(?m)^To: fail@example\.org\r$")
        self.assertIn(f"{bad} has started", failed)
        self.assertIn(f"{bad} has ended: Failed, alpha: exit code 7", failed)
        self.assertNotIn(good, failed)
        # Nothing comes twice: what a later job sends is all that there is then.
        late = self.submit("late", 0, "--mail", "all", "--mail-to", "late@example.org")
        wait_for("the last mail", lambda: any(f"{late} has ended" in m for m in self.mails("late@example.org")), 120, self.grid.layout.log)
        self.assertEqual((len(self.mails("together@example.org")), len(self.mails("fail@example.org"))), (1, 1))

    def test_directives(self):
        """They are honoured; where the grid cannot, the job runs all the same and its user is told so."""
        def submit(name, lines):
            return self.nui("alice", "submit", "-A", "phys", self.write(f"{name}.sh", f"#!/bin/sh\n{lines}\nexit 3\n"))
        self.server_open()
        slurm = submit("slurm", "#SBATCH -t 5 --mail-type=BEGIN,FAIL\n#SBATCH --mail-user=slurm@example.org")
        pbs = submit("pbs", "#PBS -l walltime=5:00 -m ae\n#PBS -M pbs@example.org,other@example.org")
        away = submit("away", "#SBATCH -t 5 --mail-type=ALL --mail-user=me@elsewhere.example")
        nobody = submit("nobody", "#SBATCH -t 5 --mail-type=END")
        self.assertNotIn("note", slurm.stderr)
        self.assertIn("#PBS -M: mail goes to the first address only", pbs.stderr)
        self.assertIn("this grid sends no mail to @elsewhere.example (MAILALLOW)", away.stderr)
        self.assertIn("no mail is sent: the script does not say to which address", nobody.stderr)
        for done in (slurm, pbs, away, nobody):
            self.wait_state(done.stdout.strip(), ("Failed",))
        for done, to in ((slurm, "slurm"), (pbs, "pbs")):
            words = f"{done.stdout.strip()} ({to}.sh) has ended: Failed, alpha: exit code 3"
            wait_for(f"the mail of {to}", lambda: any(words in m for m in self.mails(f"{to}@example.org")), 60, self.grid.layout.log)
        self.assertEqual([m for m in Smtp.mails if "elsewhere" in str(m)], [])

    def test_configuration(self):
        config = self.grid.layout.config("meta").read_text()
        broken = self.grid.layout.config("meta").with_name("broken-meta.cfg")
        for bad, says in ((["MAILSERVER http://x.example"], "wanted smtp://HOST or smtps://HOST"),
                          (["MAILFROM nui"], "belong together"), (["MAILALLOW example.org"], "wanted @DOMAIN")):
            lines = [line for line in config.splitlines() if not line.startswith(bad[0].split()[0])]
            broken.write_text("\n".join(lines + bad) + "\n")
            broken.chmod(0o600)
            done = subprocess.run([self.grid.programs["nui-meta"], "--config", broken, "--check"], text=True, capture_output=True)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn(says, done.stdout + done.stderr)

    def test_refused(self):
        script = self.write("refused.sh", "#!/bin/sh\n")
        for options, code, words in ((("--mail", "end", "--mail-to", "me@elsewhere.example"), 3, "no mail to @elsewhere.example (MAILALLOW)"),
                                     (("--mail", "end"), 2, "--mail-to ADDRESS"),
                                     (("--mail", "sometimes", "--mail-to", "a@example.org"), 2, "none of begin, end, fail, requeue, all"),
                                     (("--mail-to", "a@example.org\nBcc: b@example.org"), 2, "is no mail address"),
                                     (("--mail-to", "a b@example.org"), 2, "is no mail address"),
                                     (("--mail-to", "a@example.org>,<b@example.org"), 2, "is no mail address"),
                                     (("--mail", "end", "--mail-to", "a@example.org", "--notify", "https://x.example/"), 2, "in one way")):
            done = self.nui("alice", "submit", "-A", "phys", "-t", "5:00", *options, script, code=code)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    main()
