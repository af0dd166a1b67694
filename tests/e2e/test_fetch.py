"""nui fetch: files of a job's directory, while it runs and after; gone on with after a cut and a kill -9, checked by their
digest, never another's, never from outside the directory."""
import os
import subprocess
import sys
import unittest

import grpc

from fixture import become, main
from grid.forge import Contract
from onesite import SharedCase, polled, wait_for
from smalldisk import small_disk

BIG = 24 << 20

# As the owner, by the contract itself: what no name may lead to, and the rest of a file with the digest of all of it.
ASK = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import grpc
from proto.nui.v1 import local_pb2 as local
refused = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND)
wrong = []
with grpc.insecure_channel("unix:" + sys.argv[2]) as channel:
    ask = channel.unary_stream("/nui.local.v1.Local/Fetch", request_serializer=lambda m: m.SerializeToString(),
                               response_deserializer=local.FetchChunk.FromString)
    for path in ("../spec", "real/../../spec", "/etc/passwd", "", ".", "real//x", "link", "folder/secret", "alias/x", "pipe",
                 "real", "..", "good\\n", "x" * 2000):
        try:
            wrong.append((path, b"".join(c.data for c in ask(local.FetchRequest(job_id=sys.argv[3], path=path), timeout=600))))
        except grpc.RpcError as err:
            if err.code() not in refused:
                wrong.append((path, str(err.code()), err.details()))
    chunks = list(ask(local.FetchRequest(job_id=sys.argv[3], path="good", offset=2), timeout=600))
    if b"".join(c.data for c in chunks) != b"ne\\n" or chunks[-1].sha256 != hashlib.sha256(b"mine\\n").digest():
        wrong.append(("good", [str(c) for c in chunks]))
    for offset in (-1, 6):
        try:
            wrong.append((offset, [str(c) for c in ask(local.FetchRequest(job_id=sys.argv[3], path="good", offset=offset), timeout=600)]))
        except grpc.RpcError as err:
            if err.code() != grpc.StatusCode.FAILED_PRECONDITION:
                wrong.append((offset, str(err.code())))
print(wrong)
"""


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Fetch(SharedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.alpha = cls.site()
        cls.alpha.write(f"JOBDIR {cls.state}/jobs\nPORTRANGE 20000-20099\nNODECFG[alpha[01-04]] PROCS=4\n")
        cls.alpha.start()
        cls.contract = Contract(cls.state)
        cls.secret = cls.shared / "secret"
        cls.secret.write_text("root's\n")
        cls.secret.chmod(0o600)

    def submit(self, name, text):
        """It writes what it has to, then waits for its gate."""
        path = self.shared / f"{name}.sh"
        path.write_text(f"#!/bin/sh\n{text}\ntouch written\nuntil [ -e {self.shared}/{name}.gate ]; do sleep 0.05; done\n"
                        "echo over > late\n")
        path.chmod(0o755)
        ident = self.ok(self.alpha, "msub", "-t", "10:00", path, account=self.account).strip()
        self.wait(ident, "written")
        return ident

    def work(self, ident):
        return self.state / "jobs" / ident / "work"

    def wait(self, ident, name):
        wait_for(f"{ident} to write {name}", (self.work(ident) / name).exists, 60, self.alpha.log)

    def finish(self, name, ident):
        (self.shared / f"{name}.gate").touch()
        wait_for(f"{ident} to end", lambda: self.data(self.alpha, "checkjob", ident)["job"]["state"] == "Completed", 60,
                 self.alpha.log)

    def home(self, name):
        place = self.shared / f"home-{name}"
        place.mkdir()
        place.chmod(0o777)
        return place

    def fetch(self, place, *args, account=None):
        return self.ok(self.alpha, "fetch", "-d", place, *args, account=account or self.account)

    def found(self, place):
        return sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())

    def stub(self, channel, method, reply):
        kind = channel.unary_stream if method == "Fetch" else channel.unary_unary
        return kind(f"/nui.local.v1.Local/{method}", request_serializer=lambda m: m.SerializeToString(),
                    response_deserializer=reply.FromString)

    def test_while_it_runs_and_after(self):
        ident = self.submit("runs", "mkdir -p out/deep; echo one > out/a.dat; echo two > out/deep/b.dat; echo log > run.log; : > empty; echo h > .hidden; echo h > out/.h")
        place = self.home("runs")
        said = self.fetch(place, ident, "*.dat")
        self.assertEqual(sorted(said.split()), [f"{place}/out/a.dat", f"{place}/out/deep/b.dat"])
        self.assertEqual(self.found(place), ["out/a.dat", "out/deep/b.dat"])
        self.fetch(place, ident, "out/deep", "run.log")
        self.assertEqual((place / "run.log").read_text(), "log\n")
        self.finish("runs", ident)
        whole = self.home("whole")
        self.fetch(whole, ident)
        self.assertEqual(self.found(whole), ["empty", "late", "out/a.dat", "out/deep/b.dat", "run.log", "stderr", "stdout", "written"])
        self.assertEqual((whole / "out/deep/b.dat").read_text(), "two\n")
        self.assertEqual((whole / "late").read_text(), "over\n")
        self.assertEqual((whole / "empty").read_bytes(), b"")
        self.fetch(whole, ident, "*", "out")
        self.assertFalse((whole / ".hidden").exists() or (whole / "out/.h").exists())
        self.fetch(whole, ident, ".hid*", "out/.h")
        self.assertTrue((whole / ".hidden").exists() and (whole / "out/.h").exists())
        self.refused(self.alpha, "fetch", "-d", place, ident, "nothing*", account=self.account, code=5, says="has no file of that name")

    def test_gone_on_with(self):
        """A part that is there is not sent again; one of another version is, whole; and a kill -9 of the site is none's loss."""
        ident = self.submit("big", f"head -c {BIG} /dev/urandom > big.dat")
        content = (self.work(ident) / "big.dat").read_bytes()
        self.assertEqual(len(content), BIG)
        place = self.home("big")
        for part in (content[:BIG // 3], content, b"another version" + content[15:BIG // 2], content + b"more"):
            (place / "big.dat.part").write_bytes(part)
            (place / "big.dat.part").chmod(0o666)
            self.fetch(place, ident, "big.dat")
            self.assertEqual((place / "big.dat").read_bytes(), content)
            self.assertEqual(self.found(place), ["big.dat"])
            (place / "big.dat").unlink()
        local = self.contract.local
        with grpc.insecure_channel(f"unix:{self.alpha.socket}") as channel:  # as root, who owns no job
            with self.assertRaises(grpc.RpcError) as caught:
                list(self.stub(channel, "Fetch", local.FetchChunk)(local.FetchRequest(job_id=ident, path="big.dat"), timeout=600))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED)
        self.alpha.process.kill()
        (place / "big.dat.part").write_bytes(content[:1000])
        (place / "big.dat.part").chmod(0o666)
        self.refused(self.alpha, "fetch", "-d", place, ident, "big.dat", account=self.account, code=4, says="")
        self.assertEqual((place / "big.dat.part").read_bytes(), content[:1000])
        self.alpha.start()
        self.fetch(place, ident, "big.dat")
        self.assertEqual((place / "big.dat").read_bytes(), content)
        self.finish("big", ident)

    def test_only_from_its_directory(self):
        """Links lead nowhere, names that climb are refused, and what the account may not read it does not get."""
        ident = self.submit("links", f"echo mine > good; ln -s {self.secret} link; ln -s {self.shared} folder; mkfifo pipe; "
                            "mkdir -p real; echo x > real/x; ln -s real alias")
        os.link(self.secret, self.work(ident) / "hard")  # the account may not read what it is
        place = self.home("links")
        done = self.alpha.nui("fetch", "-d", place, ident, account=self.account)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("hard", done.stderr)
        self.assertNotIn("root's", "".join(p.read_text() for p in place.rglob("*") if p.is_file()))
        (self.work(ident) / "hard").unlink()
        self.fetch(place, ident)
        self.assertEqual([n for n in self.found(place) if not n.endswith(".part")],
                         ["good", "real/x", "stderr", "stdout", "written"])
        for pattern in ("link", "folder", "folder/secret", "pipe", "alias/x", "../spec", "../../" + ident, "/etc/passwd"):
            self.refused(self.alpha, "fetch", "-d", place, ident, pattern, account=self.account, code=5, says="no file of that name")
        (self.shared / "ask.py").write_text(ASK)
        done = subprocess.run([*become(self.account), sys.executable, "-B", str(self.shared / "ask.py"), str(self.state / "python"),
                               str(self.alpha.socket), ident], capture_output=True, text=True, timeout=600)
        self.assertEqual((done.stdout, done.returncode), ("[]\n", 0), done.stderr)
        self.finish("links", ident)

    def test_a_full_disk(self):
        """Where it is brought to: one sentence, and no file that looks whole."""
        ident = self.submit("large", "head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero > large.dat")
        self.assertEqual(len(self.ok(self.alpha, "output", ident, account=self.account)), 3000000)
        self.refused(self.alpha, "output", ident + "[2]", account=self.account, code=1, says="is not an id")
        for command in (["output", ident], ["showq"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([*become(self.account), str(self.alpha.programs["nui"]), *command], text=True, stdout=full,
                                      stderr=subprocess.PIPE, timeout=600,
                                      env={**os.environ, "NUI_CONFIG": str(self.alpha.client), **polled()})
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
            self.assertIn("cannot be written", done.stderr)
            self.assertIn("No space left on device", done.stderr)
        place = self.shared / "small"
        if not small_disk(place, "1m", 0o777):
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=True)
        self.refused(self.alpha, "output", "--save", place, ident, account=self.account, code=1, says="No space left on device")
        self.assertEqual(self.found(place), [])
        self.refused(self.alpha, "fetch", "-d", place, ident, "large.dat", account=self.account, code=1,
                     says="large.dat: No space left on device")
        self.assertEqual(self.found(place), ["large.dat.part"])
        self.finish("large", ident)

    def test_another_users(self):
        ident = self.submit("mine", "echo mine > good")
        place = self.home("mine")
        self.refused(self.alpha, "fetch", "-d", place, ident, account=self.other, code=3, says="is not yours")
        self.refused(self.alpha, "fetch", "-d", place, ident, code=3, says="is not yours")  # root has other ways
        bob = self.alpha.person("user", "bob")
        self.refused(self.alpha, "fetch", "-d", place, ident, config=bob, code=3, says="is not yours")
        self.refused(self.alpha, "fetch", "-d", place, "alpha.999", account=self.account, code=5, says="is not known")
        held = self.ok(self.alpha, "msub", "-h", "-t", "1:00", self.shared / "mine.sh", account=self.account).strip()
        self.refused(self.alpha, "fetch", "-d", place, held, account=self.account, code=1, says="has not run")
        self.refused(self.alpha, "fetch", "-d", self.shared / "secret", ident, "good", account=self.account, code=1, says="secret")
        self.assertEqual(self.found(place), [])
        self.finish("mine", ident)


if __name__ == "__main__":
    main()
