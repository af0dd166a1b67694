"""nui-ca, every command and every refusal, checked with the openssl command."""
import os
import re
import stat
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NUI_CA = ROOT / "certs" / "nui-ca"

# A command that does the real thing, then kills the nui-ca that called it when its arguments match.
KILLER = """#!/bin/sh
{before}
"{real}" "$@"
code=$?
case "$*" in *{pattern}*) kill -KILL $PPID ;; esac
exit $code
"""


def openssl(*args, check=True):
    done = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True)
    if check and done.returncode:
        raise AssertionError(f"openssl {args}: {done.stderr}")
    return done


def text_of(cert):
    return openssl("x509", "-in", cert, "-noout", "-text").stdout


class NuiCa(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.addCleanup(self.temp.cleanup)
        self.dir = Path(self.temp.name)
        self.ca = self.dir / "ca"

    def run_ca(self, *args, path=None):
        env = dict(os.environ)
        if path:
            env["PATH"] = f"{path}:{env['PATH']}"
        return subprocess.run([str(NUI_CA), *map(str, args)], capture_output=True, text=True,
                              cwd=self.dir, env=env, stdin=subprocess.DEVNULL)

    def ok(self, *args):
        done = self.run_ca(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, code, words, *args):
        """One sentence with these words, that exit code, and not one file changed."""
        before = self.state()
        done = self.run_ca(*args)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("nui-ca: "), done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.state(), before)

    def state(self):
        return {str(p.relative_to(self.dir)): p.read_bytes() if p.is_file() else None
                for p in sorted(self.dir.rglob("*")) if p.name != "lock"}

    def init(self):
        self.ok("init", self.ca, "--grid", "demo")

    def verify(self, cert):
        return openssl("verify", "-x509_strict", "-CAfile", self.ca / "ca.pem", "-CRLfile",
                       self.ca / "crl.pem", "-crl_check", cert, check=False)

    def rows(self):
        return [line.split() for line in self.ok("list", self.ca, "--noheader").splitlines()]

    def test_authority(self):
        self.init()
        text = text_of(self.ca / "ca.pem")
        self.assertRegex(text, r"Basic Constraints: critical\s+CA:TRUE, pathlen:0")
        self.assertRegex(text, r"Key Usage: critical\s+Certificate Sign, CRL Sign\n")
        self.assertIn("NIST CURVE: P-256", text)
        openssl("x509", "-in", self.ca / "ca.pem", "-checkend", 3649 * 86400)
        self.assertNotEqual(openssl("x509", "-in", self.ca / "ca.pem", "-checkend", 3651 * 86400,
                                    check=False).returncode, 0)
        self.assertEqual(stat.S_IMODE(self.ca.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((self.ca / "ca.key").stat().st_mode), 0o600)
        openssl("crl", "-in", self.ca / "crl.pem", "-CAfile", self.ca / "ca.pem", "-noout")

    def test_kinds(self):
        self.init()
        days = {"user": 90, "agency": 90, "operator": 90, "site": 365, "meta": 365, "bank": 365, "gate": 365}
        for kind, lifetime in days.items():
            with self.subTest(kind=kind):
                out = self.dir / "out" / kind
                self.ok("issue", self.ca, kind, "x.y-1", "--out", out)
                cert, text = out / "cert.pem", text_of(out / "cert.pem")
                daemon = kind in ("site", "meta", "bank", "gate")
                self.assertIn(f"URI:nui://demo/{kind}/x.y-1", text)
                self.assertEqual("DNS:localhost, IP Address:127.0.0.1" in text, daemon)
                self.assertIn("TLS Web Client Authentication", text)
                self.assertEqual("TLS Web Server Authentication" in text, daemon)
                self.assertRegex(text, r"Key Usage: critical\s+Digital Signature\n")
                self.assertRegex(text, r"Basic Constraints: critical\s+CA:FALSE")
                self.assertEqual(stat.S_IMODE((out / "key.pem").stat().st_mode), 0o600)
                self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o700)
                self.assertEqual(self.verify(cert).returncode, 0, self.verify(cert).stderr)
                self.assertEqual(openssl("x509", "-in", cert, "-noout", "-pubkey").stdout,
                                 openssl("pkey", "-in", out / "key.pem", "-pubout").stdout)
                openssl("x509", "-in", cert, "-checkend", (lifetime - 1) * 86400)
                self.assertNotEqual(openssl("x509", "-in", cert, "-checkend",
                                            (lifetime + 1) * 86400, check=False).returncode, 0)
                self.assertEqual((out / "ca.pem").read_bytes(), (self.ca / "ca.pem").read_bytes())
        self.assertEqual(sorted(r[1] for r in self.rows()), sorted(days))

    def test_days_and_hosts(self):
        self.init()
        self.ok("issue", self.ca, "site", "alpha", "--days", 3, "--host", "a.example.org",
                "--host", "10.1.2.3", "--host", "::1")
        cert = self.ca / "issued" / "site-alpha" / "cert.pem"
        text = text_of(cert)
        for name in ("DNS:a.example.org", "IP Address:10.1.2.3", "IP Address:0:0:0:0:0:0:0:1"):
            self.assertIn(name, text)
        self.assertNotEqual(openssl("x509", "-in", cert, "-checkend", 4 * 86400,
                                    check=False).returncode, 0)

    def test_revoke_and_crl(self):
        self.init()
        self.ok("issue", self.ca, "user", "alice")
        self.ok("issue", self.ca, "user", "bob")
        alice = self.ca / "issued" / "user-alice" / "cert.pem"
        bob = self.ca / "issued" / "user-bob" / "cert.pem"
        self.assertEqual(self.verify(alice).returncode, 0)
        self.ok("revoke", self.ca, "user", "alice")
        self.assertIn("certificate revoked", self.verify(alice).stderr)
        self.assertEqual(self.verify(bob).returncode, 0)
        self.assertEqual([(r[0], r[2]) for r in self.rows()],
                         [("revoked", "alice"), ("valid", "bob")])
        number = [openssl("crl", "-in", self.ca / "crl.pem", "-noout", "-crlnumber").stdout]
        self.ok("crl", self.ca)
        number.append(openssl("crl", "-in", self.ca / "crl.pem", "-noout", "-crlnumber").stdout)
        self.assertNotEqual(*number)
        self.assertIn("certificate revoked", self.verify(alice).stderr)
        # The name is free again, and its files are replaced.
        self.ok("issue", self.ca, "user", "alice")
        self.assertEqual(self.verify(alice).returncode, 0)

    def test_crl_lifetime(self):
        self.init()
        dates = openssl("crl", "-in", self.ca / "crl.pem", "-noout", "-lastupdate",
                        "-nextupdate").stdout
        last, after = (line.split("=")[1] for line in dates.splitlines())
        seconds = [int(subprocess.run(["date", "-d", d, "+%s"], capture_output=True, text=True,
                                      check=True).stdout) for d in (last, after)]
        self.assertEqual(seconds[1] - seconds[0], 7 * 86400 + 300)  # clocks differ

    def test_renew(self):
        self.init()
        out = self.dir / "alpha"
        self.ok("issue", self.ca, "site", "alpha", "--out", out)
        old = (out / "cert.pem").read_bytes()
        (self.dir / "old.pem").write_bytes(old)
        old_key = (out / "key.pem").read_bytes()
        self.ok("renew", self.ca, "site", "alpha", "--out", out)
        self.assertNotEqual((out / "cert.pem").read_bytes(), old)
        self.assertNotEqual((out / "key.pem").read_bytes(), old_key)
        self.assertEqual(self.verify(out / "cert.pem").returncode, 0)
        self.assertEqual(self.verify(self.dir / "old.pem").returncode, 0)
        self.ok("renew", self.ca, "site", "alpha", "--out", out, "--revoke-old")
        self.assertEqual(self.verify(out / "cert.pem").returncode, 0)
        self.assertIn("certificate revoked", self.verify(self.dir / "old.pem").stderr)
        self.assertEqual([r[0] for r in self.rows()].count("valid"), 1)

    def test_refusals(self):
        self.refused(5, "there is no directory", "list", self.dir / "none")
        (self.dir / "empty").mkdir()
        self.refused(5, "no certificate authority", "issue", self.dir / "empty", "user", "alice")
        self.refused(1, "is not a name", "init", self.ca, "--grid", "a/b")
        self.refused(2, "--grid NAME is missing", "init", self.ca)
        self.refused(2, "which directory", "init", "--grid", "demo")
        self.refused(1, "no directory", "init", self.dir / "no" / "ca", "--grid", "demo")
        self.init()
        self.refused(1, "is not empty", "init", self.ca, "--grid", "demo")
        self.ok("issue", self.ca, "user", "alice")
        self.refused(1, "has a valid certificate already", "issue", self.ca, "user", "alice")
        self.refused(1, "is no kind", "issue", self.ca, "wizard", "alice")
        for name in ("", "-x", "a b", "a/b", "../x", "ü", "x" * 64, ".x", "x\n", "a=b"):
            code, words = (2, "are needed") if not name else (1, "is not a name")
            if name.startswith("-"):
                code, words = 2, "unknown option"
            if name == "x\n":
                continue  # two lines in the sentence; covered by the character rule below
            self.refused(code, words, "issue", self.ca, "user", name)
        self.assertEqual(self.run_ca("issue", self.ca, "user", "x\n").returncode, 1)
        for days in ("0", "-1", "826", "x", "1.5", "99999999999999999999"):
            self.refused(1, "is not a number of days", "issue", self.ca, "user", "eve", "--days", days)
        self.refused(1, "--host is for daemons", "issue", self.ca, "user", "eve", "--host", "h")
        self.refused(1, "neither a host name nor", "issue", self.ca, "site", "s", "--host", "a b")
        self.refused(1, "failed", "issue", self.ca, "site", "s", "--host", "1.2.3")
        self.refused(2, "unknown option '--frob'", "issue", self.ca, "user", "eve", "--frob")
        self.refused(2, "needs a directory", "issue", self.ca, "user", "eve", "--out")
        self.refused(2, "unknown option", "issue", self.ca, "user", "eve", "--revoke-old")
        self.refused(2, "not also", "issue", self.ca, "user", "eve", "extra")
        self.refused(2, "unknown command", "frobnicate")
        self.refused(2, "which command", )
        self.refused(5, "never issued", "revoke", self.ca, "user", "eve")
        self.refused(5, "never issued", "renew", self.ca, "user", "eve")
        self.refused(2, "are needed", "revoke", self.ca, "user")
        self.refused(2, "one DIR", "crl")
        taken = self.dir / "taken"
        taken.mkdir()
        (taken / "key.pem").write_text("mine")
        self.refused(1, "nothing is written over it", "issue", self.ca, "user", "eve", "--out", taken)
        (self.dir / "file").write_text("")
        self.refused(1, "cannot make the directory", "issue", self.ca, "user", "eve", "--out",
                     self.dir / "file")
        self.ok("revoke", self.ca, "user", "alice")
        self.refused(1, "no valid certificate left", "revoke", self.ca, "user", "alice")
        self.refused(1, "no valid certificate to renew", "renew", self.ca, "user", "alice")
        self.ok("issue", self.ca, "user", "bob", "--out", self.dir / "bob")
        self.ok("issue", self.ca, "user", "carol")
        self.refused(1, "is not nui://demo/user/carol", "renew", self.ca, "user", "carol", "--out",
                     self.dir / "bob")

    def test_help(self):
        for args in (["--help"], ["help"], ["issue", "--help"]):
            self.assertIn("usage: nui-ca init", self.ok(*args))

    def killed(self, tool, pattern, *args, before=""):
        real = subprocess.run(["sh", "-c", f"command -v {tool}"], capture_output=True, text=True,
                              check=True).stdout.strip()
        shim = self.dir / "shim"
        shim.mkdir(exist_ok=True)
        (shim / tool).write_text(KILLER.format(real=real, pattern=pattern, before=before))
        (shim / tool).chmod(0o755)
        done = self.run_ca(*args, path=shim)
        (shim / tool).unlink()
        shim.rmdir()
        self.assertEqual(done.returncode, -9, done.stderr)

    def test_killed_before_commit_leaves_nothing(self):
        self.init()
        before = self.state()
        self.killed("rm", "request.csr", "issue", self.ca, "user", "alice", "--out",
                    self.dir / "alice")
        self.assertEqual(self.rows(), [])
        (self.dir / "alice").rmdir()  # empty
        self.assertEqual(self.state(), before)
        self.ok("issue", self.ca, "user", "alice", "--out", self.dir / "alice")

    def test_killed_after_commit_is_finished_by_the_next_command(self):
        self.init()
        out = self.dir / "alice"
        self.killed("mv", "pending/commit", "issue", self.ca, "user", "alice", "--out", out)
        self.assertFalse((out / "key.pem").exists())
        self.assertEqual([r[0] for r in self.rows()], ["valid"])
        self.assertEqual(self.verify(out / "cert.pem").returncode, 0)
        self.assertTrue((out / "key.pem").exists())
        self.assertFalse((self.ca / "pending").exists())
        # and a revocation
        self.killed("mv", "pending/commit", "revoke", self.ca, "user", "alice")
        self.assertEqual(self.verify(out / "cert.pem").returncode, 0)
        self.ok("list", self.ca)
        self.assertIn("certificate revoked", self.verify(out / "cert.pem").stderr)

    def test_many_at_once(self):
        self.init()
        results = []
        threads = [threading.Thread(target=lambda n=n: results.append(
            self.run_ca("issue", self.ca, "user", f"u{n % 4}"))) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(r.returncode for r in results), [0] * 4 + [1] * 4)
        rows = self.rows()
        self.assertEqual(sorted(r[2] for r in rows), ["u0", "u1", "u2", "u3"])
        self.assertEqual(len({r[4] for r in rows}), 4)

    def test_expired_is_listed_so(self):
        self.init()
        self.ok("issue", self.ca, "user", "alice")
        index = self.ca / "index.txt"
        index.write_text(re.sub(r"^V\t\d+Z", "V\t200101000000Z", index.read_text()))
        self.assertEqual([r[0] for r in self.rows()], ["expired"])
        self.ok("issue", self.ca, "user", "alice")  # an expired one does not block the name

    def test_what_ended_lately_is_revoked_too(self):
        # What was signed with it may still be queued.
        self.init()
        index = self.ca / "index.txt"
        ends = [time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() - days * 86400)) for days in (91, 1)]
        for end in ends:
            self.ok("issue", self.ca, "user", "alice")
            index.write_text(re.sub(r"^V\t\d+Z(.*)$", rf"V\t{end}\1", index.read_text(), count=1, flags=re.M)
                             .replace("V\t", "E\t"))
        self.ok("issue", self.ca, "user", "bob")
        self.assertIn("1 certificate(s) revoked", self.ok("revoke", self.ca, "user", "alice"))
        self.assertEqual(sorted((r[0], r[2]) for r in self.rows()),
                         [("expired", "alice"), ("revoked", "alice"), ("valid", "bob")])
        crl = openssl("crl", "-in", self.ca / "crl.pem", "-noout", "-text").stdout
        self.assertEqual(crl.count("Serial Number:"), 1)
        self.refused(1, "no valid certificate left", "revoke", self.ca, "user", "alice")


if __name__ == "__main__":
    unittest.main(verbosity=1)
