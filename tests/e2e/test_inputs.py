"""Files that travel with a job: arguments that name files and --input, over the metascheduler and to a site alone; once for each
content, gone on with after a kill -9 of whoever takes them, refused where they are not what was said, nobody else's, and within
a share."""
import hashlib
import os
import random
import subprocess
import time
import unittest

import grpc

from fixture import GridCase, become, layout, main, wait_for
from grid.forge import Contract, Forge
from onesite import SharedCase

BIG = 48 << 20
LIST = "#!/bin/sh\necho args: \"$@\"\nfind . -type f ! -name stdout ! -name stderr ! -name nodefile | sort | xargs sha256sum\n"


def content(seed, size):
    return random.Random(seed).randbytes(size)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def listed(text):
    """What LIST printed: path -> digest."""
    return {line.split()[1].removeprefix("./"): line.split()[0] for line in text.splitlines()[1:] if line}


class OverTheGrid(GridCase):
    sites = {"alpha": (1, 4), "beta": (1, 4)}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.forge = Forge(cls.grid)
        cls.meta = cls.forge.contract.meta
        cls.common = cls.forge.contract.common
        path = cls.grid.layout.config("meta")
        path.write_text(path.read_text() + "INPUTMAX 64\nINPUTSHARE 160\n")
        cls.grid.daemons["meta"].stop()
        cls.grid.daemons["meta"].start()
        cls.grid.wait_serving()
        cls.home = cls.grid.layout.work

    def put_file(self, name, data, mode=0o644):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
        return path

    def submit(self, *args, who="alice"):
        """The job's id, and what was said of its files."""
        done = self.nui(who, "submit", "-A", "phys", "-t", "5:00", *args)
        return done.stdout.strip(), done.stderr

    def output(self, ident, who="alice"):
        self.wait_state(ident, ("Completed",), who)
        return self.nui(who, "output", ident).stdout

    def put(self, who, data, sha=None, offset=0, size=None, piece=None):
        request = self.common.ContentRequest(sha256=bytes.fromhex(sha or digest(data)), bytes=len(data) if size is None else size,
                                             offset=offset, data=data if piece is None else piece)
        with self.forge.channel("meta", "user", who) as channel:
            return self.forge.call(channel, "nui.meta.v1.Meta", "Put", request, self.common.ContentReply, 60)

    def stored(self, daemon="meta"):
        return sorted(p.name for p in (self.grid.layout.state / daemon / "inputs").rglob("*") if p.is_file())

    def test_a_what_is_named_is_there(self):
        """Arguments and --input: under their names, of the same content, executable where they were."""
        one, two = content(1, 100_000), content(2, 3 << 20)
        self.put_file("data/one.dat", one)
        self.put_file("tree/deep/two.dat", two)
        self.put_file("tree/same.dat", one)
        self.put_file("tree/empty", b"")
        self.put_file("tree/.hidden", b"no")
        tool = self.put_file("tool.sh", b"#!/bin/sh\necho the tool ran\n", 0o755)
        script = self.write("list.sh", LIST + "./tool.sh\n")
        ident, said = self.submit("--site", "alpha", "--input", "tree", "--input", tool, script, "data/one.dat", "5", "none.dat")
        self.assertRegex(said, r"submit: 5 files of \d+ bytes travel with the job, \d+ bytes were sent\n")
        text = self.output(ident)
        self.assertEqual(text.splitlines()[0], "args: data/one.dat 5 none.dat")
        self.assertIn("the tool ran", text)
        there = listed(text.replace("the tool ran\n", ""))
        self.assertEqual({k: v for k, v in there.items() if k != "script"},
                         {"data/one.dat": digest(one), "tree/deep/two.dat": digest(two), "tree/same.dat": digest(one),
                          "tree/empty": digest(b""), "tool.sh": digest(tool.read_bytes())})
        # The same again: nothing is sent, to the metascheduler or, by it, to the site.
        self.assertEqual(len(self.stored("alpha")), 4)
        again, said = self.submit("--site", "alpha", "--input", "tree", script, "data/one.dat")
        self.assertRegex(said, r"4 files of \d+ bytes travel with the job, 0 bytes were sent")
        self.wait_state(again, ("Completed", "Failed"))
        self.assertEqual(listed(self.nui("alice", "output", again).stdout)["tree/deep/two.dat"], digest(two))
        # And what is not to travel stays.
        kept, said = self.submit("--site", "alpha", "--input", "none", self.write("plain.sh", LIST), "data/one.dat")
        self.assertNotIn("travel", said)
        self.assertNotIn("data/one.dat", listed(self.output(kept)))

    def test_b_an_array_and_components(self):
        data = content(3, 2 << 20)
        self.put_file("shared.dat", data)
        ident, _ = self.submit("--array", "1-4", "--input", "shared.dat", self.write("array.sh", LIST))
        base = ident.split("[")[0]
        for index in range(1, 5):
            self.assertEqual(listed(self.output(f"{base}[{index}]"))["shared.dat"], digest(data))
        both, _ = self.submit("--component", "left:site=alpha,tasks=1", "--component", "right:site=beta,tasks=1", self.write("both.sh", LIST),
                              "shared.dat")
        text = self.output(both)
        self.assertEqual(text.count(digest(data)), 2, text)

    def test_c_kills(self):
        """The metascheduler while it takes them, the client, the site while it fetches them: the rest comes, the whole is right."""
        data = content(4, BIG)
        self.put_file("big.dat", data)
        for at in range(0, 20 << 20, 1 << 20):
            reply = self.put("alice", data, offset=at, size=BIG, piece=data[at:at + (1 << 20)])
        self.assertEqual((reply.bytes, reply.whole), (20 << 20, False))
        self.grid.daemons["meta"].kill()
        self.grid.daemons["meta"].start()
        self.grid.wait_serving()
        script = self.write("big.sh", LIST)
        ident, said = self.submit("--site", "beta", "--hold", script, "big.dat")
        self.assertIn(f"{BIG - (20 << 20)} bytes were sent", said)
        beta = self.grid.layout.state / "beta" / "inputs"
        part = wait_for("beta to have some of it", lambda: next((p for p in beta.rglob(f"{digest(data)}*") if p.stat().st_size > 1 << 20), None), 60)
        self.grid.daemons["beta"].kill()
        if part.name.endswith(".part"):
            self.assertLess(part.stat().st_size, BIG)
        self.grid.daemons["meta"].kill()
        self.grid.daemons["meta"].start()
        self.grid.daemons["beta"].start()
        self.grid.wait_serving()
        self.nui("alice", "jobrelease", ident)
        self.assertEqual(listed(self.output(ident))["big.dat"], digest(data))
        self.assertIn(digest(data), self.stored("beta"))

    def test_d_what_is_not_what_was_said(self):
        """Bytes with another digest are kept nowhere, by nobody: not from a user, and not by a job that says so."""
        data = content(5, 1000)
        wrong = digest(b"something else")
        with self.assertRaises(grpc.RpcError) as caught:
            self.put("alice", data, sha=wrong)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        self.assertIn("another SHA-256", caught.exception.details())
        self.assertFalse([n for n in self.stored() if n.startswith(wrong)])
        for bad in (dict(size=-1), dict(size=10, offset=11), dict(size=500), dict(sha="00")):
            with self.assertRaises(grpc.RpcError) as caught:
                self.put("alice", data, **bad)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT, bad)
        # A job whose file was never sent, or is somebody else's, or says another size.
        self.put("bob", data)
        for size, path, words in ((1000, "x", "is not here"), (1000, "x", "is not here")):
            accepted, said = self.submit_forged(data, size, path)
            self.assertFalse(accepted)
            self.assertIn(words, said)
        self.put("alice", data)
        accepted, said = self.submit_forged(data, 999, "x")
        self.assertFalse(accepted)
        self.assertIn("has 1000 bytes, the job says 999", said)
        for path in ("../x", "/etc/x", "script", "a/../b"):
            accepted, said = self.submit_forged(data, 1000, path)
            self.assertFalse(accepted, path)
        accepted, said = self.submit_forged(data, 1000, "x")
        self.assertTrue(accepted, said)
        self.wait_state(said, ("Completed",))

    def submit_forged(self, data, size, path):
        """(accepted, id or words) of a job signed by alice that says so of its file."""
        job = self.forge.job("alice", "phys")
        job.components[0].stage_in.add(url=f"nui:///{digest(data)}", path=path, bytes=size, sha256=hashlib.sha256(data).digest())
        request = self.meta.SubmitRequest(envelope=self.forge.sign("alice", job.SerializeToString()))
        with self.forge.channel("meta", "user", "alice") as channel:
            try:
                return True, self.forge.call(channel, "nui.meta.v1.Meta", "Submit", request, self.meta.SubmitReply, 30).grid_job_id
            except grpc.RpcError as error:
                return False, error.details()

    def test_e_only_the_site_that_has_it(self):
        """A site gets the files of jobs that it was given, and no others; a user none from there."""
        data = content(6, 5000)
        self.put_file("mine.dat", data)
        ident, _ = self.submit("--site", "alpha", "--hold", self.write("mine.sh", LIST), "mine.dat")
        wait_for("it to be at alpha", lambda: self.status("alice", ident)["components"][0].get("site_job_id"), 30)
        rows = self.grid.daemons["meta"]
        self.assertIsNotNone(rows)
        uuid = self.uuid_of(ident)
        ask = self.meta.ContentReadRequest(submitter=f"nui://{layout.GRID}/user/alice", uuid=uuid, component="main",
                                           sha256=hashlib.sha256(data).digest())

        def read(kind, name, request):
            with self.forge.channel("meta", kind, name) as channel:
                return self.forge.call(channel, "nui.meta.v1.Meta", "Content", request, self.meta.ContentReadReply)
        self.assertEqual(read("site", "alpha", ask).data, data)
        other = self.meta.ContentReadRequest()
        other.CopyFrom(ask)
        other.sha256 = hashlib.sha256(content(5, 1000)).digest()  # alice's, of another job
        for kind, name, request in (("site", "beta", ask), ("user", "alice", ask), ("site", "alpha", other)):
            with self.assertRaises(grpc.RpcError) as caught:
                read(kind, name, request)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED, (kind, name))
        self.nui("alice", "cancel", ident)

    def uuid_of(self, ident):
        import sqlite3
        with sqlite3.connect(f"file:{self.grid.layout.state / 'meta'}/meta.sqlite?mode=ro", uri=True) as db:
            return db.execute("SELECT uuid FROM job WHERE number = ?", (int(ident.split(".")[1]),)).fetchone()[0]

    def test_f_limits(self):
        """Too large for the way, and beyond the share: one sentence each, and what to do."""
        large = self.home / "large.dat"
        with large.open("wb") as f:
            f.truncate(65 << 20)
        script = self.write("limits.sh", LIST)
        done = self.nui("alice", "submit", "-A", "phys", "-t", "5:00", "--input", large, script, code=1)
        self.assertRegex(done.stderr, r"large.dat: it has 68157440 bytes, and files of at most 64 MB travel with a job .*--stage-in")
        done = self.nui("alice", "submit", "-A", "phys", "-t", "5:00", "--input", "absent", script, code=5)
        self.assertEqual(done.stderr, "nui submit: --input absent: No such file or directory\n")
        for i in range(2):
            with (self.home / f"share{i}.dat").open("wb") as f:
                f.write(bytes([i]))
                f.truncate(60 << 20)
        held, _ = self.submit("--hold", script, "share0.dat")
        done = self.nui("alice", "submit", "-A", "phys", "-t", "5:00", script, "share1.dat", code=1)
        self.assertIn("160 are your share (INPUTSHARE)", done.stderr)
        self.nui("alice", "cancel", held)


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class AtASiteAlone(SharedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.alpha = cls.site()
        cls.alpha.write(f"JOBDIR {cls.state}/jobs\nPORTRANGE 20000-20099\nNODECFG[alpha01] PROCS=4\nINPUTMAX 16\nINPUTSHARE 24\n")
        cls.alpha.start()
        cls.contract = Contract(cls.state)
        cls.script = cls.shared / "list.sh"
        cls.script.write_text(LIST)
        cls.script.chmod(0o755)

    def submit(self, *args, account=None, **options):
        done = self.alpha.nui("msub", "-t", "5:00", *args, account=account or self.account, cwd=self.shared, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip(), done.stderr

    def output(self, ident):
        wait_for(f"{ident} to end", lambda: self.data(self.alpha, "checkjob", ident)["job"]["state"] == "Completed", 60, self.alpha.log)
        return (self.state / "jobs" / ident / "work" / "stdout").read_text()

    def test_they_are_there(self):
        data = content(7, 4 << 20)
        (self.shared / "in.dat").write_bytes(data)
        ident, said = self.submit("list.sh", "in.dat")
        self.assertIn(f"{len(data)} bytes were sent", said)
        self.assertEqual(listed(self.output(ident))["in.dat"], digest(data))
        again, said = self.submit("list.sh", "./in.dat")
        self.assertIn(" 0 bytes were sent", said)
        self.assertEqual(listed(self.output(again))["in.dat"], digest(data))
        other, said = self.submit("list.sh", "in.dat", account=self.other)  # who has to show that he has it
        self.assertIn(f"{len(data)} bytes were sent", said)
        self.output(other)
        done = self.alpha.nui("msub", "--site", "alpha", "-t", "5:00", "list.sh", "in.dat", config=self.alpha.person("user", "alice"),
                              cwd=self.shared)  # the same account, by a certificate
        self.assertIn(" 0 bytes were sent", done.stderr)
        signed = done.stdout.strip()
        self.assertEqual(listed(self.output(signed))["in.dat"], digest(data))

    def test_kept_while_a_job_needs_them(self):
        """A job that waits over a kill -9 has its files; the share is held against a second one."""
        data = content(8, 15 << 20)
        (self.shared / "kept.dat").write_bytes(data)
        (self.shared / "more.dat").write_bytes(content(9, 15 << 20))
        ident, _ = self.submit("-h", "list.sh", "kept.dat")
        done = self.alpha.nui("msub", "-t", "5:00", "list.sh", "more.dat", account=self.account, cwd=self.shared)
        self.assertEqual(done.returncode, 1)
        self.assertIn("24 are your share (INPUTSHARE)", done.stderr)
        self.alpha.process.kill()
        self.alpha.start()
        self.ok(self.alpha, "releasehold", "-u", ident, account=self.account)
        self.assertEqual(listed(self.output(ident))["kept.dat"], digest(data))
        (self.shared / "large.dat").write_bytes(bytes(17 << 20))
        done = self.alpha.nui("msub", "-t", "5:00", "list.sh", "large.dat", account=self.account, cwd=self.shared)
        self.assertEqual(done.returncode, 1)
        self.assertIn("at most 16 MB travel with a job", done.stderr)


if __name__ == "__main__":
    main()
