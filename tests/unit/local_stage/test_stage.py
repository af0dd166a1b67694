#!/usr/bin/env python3
"""The engine of data staging (local/stage) against real servers on loopback.

  test_stage.py DRIVE [unittest's words]      DRIVE: stage_drive
"""
import hashlib
import json
import os
import pwd
import queue
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from servers import S3, SSHD, Fault, File, Sshd, Web, make_certificate  # noqa: E402

DRIVE = None
LIMIT = 90  # seconds until a condition is given up; a loaded machine may take its time
ROOT = os.geteuid() == 0
ACCOUNT = pwd.getpwnam("games" if ROOT else pwd.getpwuid(os.geteuid()).pw_name)
CODES = {"NOT_FOUND": -2, "INVALID": -1, "DENIED": -4, "UNAUTHENTIC": -5, "LIMIT": -6, "CONFLICT": -7,
         "UNAVAILABLE": -9, "EXISTS": -3, "UNSUPPORTED": -14}


def sample(size, seed=1):
    return hashlib.shake_128(str(seed).encode()).digest(size)


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Drive:
    """One process with the engine."""

    def __init__(self, settings):
        self.process = subprocess.Popen([DRIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events = queue.Queue()
        self.ended = []
        threading.Thread(target=self.read, daemon=True).start()
        for name, value in settings:
            self.say("set", name, value)
        self.say("start")
        self.started = self.event("started")

    def read(self):
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put({"event": "gone"})

    def say(self, *words):
        self.process.stdin.write("\t".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()

    def event(self, name):
        """The next of that name; ends of batches that come before it are kept."""
        until = time.monotonic() + LIMIT
        while True:
            for i, e in enumerate(self.ended):
                if e["event"] == name:
                    return self.ended.pop(i)
            e = self.events.get(timeout=max(0.01, until - time.monotonic()))
            if e["event"] == name:
                return e
            if e["event"] == "gone":
                raise AssertionError("stage_drive is gone")
            self.ended.append(e)

    def ask(self, answer, *words):
        self.say(*words)
        return self.event(answer)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            code = self.process.wait(LIMIT)
            self.process.stdout.close()
            assert code == 0, f"stage_drive ended with {code}"


class Case(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="nui-stage-")
        os.chmod(cls.top, 0o711)
        cls.certificate = make_certificate(cls.top)
        cls.web = Web(cls.certificate)

    @classmethod
    def tearDownClass(cls):
        cls.web.close()
        shutil.rmtree(cls.top)

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.top)
        os.chmod(self.folder, 0o711)
        self.work = self.folder_of_account("work")
        self.drives = []

    def tearDown(self):
        for d in self.drives:
            d.close()

    def folder_of_account(self, name, mode=0o700):
        path = os.path.join(self.folder, name)
        os.mkdir(path, mode)
        if ROOT:
            os.chown(path, ACCOUNT.pw_uid, ACCOUNT.pw_gid)
        return path

    def own(self, path, data=None):
        if data is not None:
            with open(path, "wb") as f:
                f.write(data)
        if ROOT:
            os.chown(path, ACCOUNT.pw_uid, ACCOUNT.pw_gid, follow_symlinks=False)
        return path

    def settings(self, **more):
        base = {"state_dir": os.path.join(self.folder, "state"), "ca": self.certificate[0], "host": ["127.0.0.1"],
                "backoff_first": 10000, "backoff_max": 50000, "tries_max": 4}
        base.update(more)
        return [(k, v) for k, vs in base.items() for v in (vs if isinstance(vs, list) else [vs])]

    def drive(self, **more):
        d = Drive(self.settings(**more))
        self.drives.append(d)
        self.assertEqual(d.started["code"], 0, d.started["text"])
        return d

    def begin(self, d, *files, key="job.1", way="in", user="", priority=0, since=1, work=None):
        """files: (url, path[, checksum[, size]])."""
        for f in files:
            url, path, checksum, size = (list(f) + ["", -1][len(f) - 2:])[:4]
            d.say("file", url, path, checksum, size)
        return d.ask("begun", "begin", key, way, work or self.work, ACCOUNT.pw_name, user, priority, since)

    def stage(self, d, *files, **how):
        begun = self.begin(d, *files, **how)
        self.assertEqual(begun["code"], 0, begun["text"])
        return d.event("done")

    def right(self, done):
        self.assertEqual(done["code"], 0, done["text"])

    def failed(self, done, code, *parts):
        self.assertEqual(done["code"], CODES[code], done["text"])
        for part in parts:
            self.assertIn(part, done["text"])
        self.assertNotIn("\n", done["text"])

    def content(self, path):
        with open(os.path.join(self.work, path), "rb") as f:
            return f.read()

    def nothing_in_place(self, path="x"):
        self.assertFalse(os.path.lexists(os.path.join(self.work, path)))

    def until(self, condition):
        end = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), end, "the condition did not come")
            time.sleep(0.02)

    def serve(self, name, data, **how):
        path = f"/{self.id().rsplit('.', 1)[1]}/{name}"
        self.web.files[path] = File(data, **how)
        return path


class WebTest(Case):
    def test_file_comes_whole_with_owner_and_folders(self):
        data = sample(300000)
        path = self.serve("a", data)
        empty = self.serve("empty", b"")
        d = self.drive()
        self.right(self.stage(d, (self.web.url(path), "in/deep/a", sha(data), len(data)),
                              (self.web.url(path), "b"), (self.web.url(empty), "c", sha(b""))))
        self.assertEqual(self.content("in/deep/a"), data)
        self.assertEqual(self.content("b"), data)
        self.assertEqual(self.content("c"), b"")
        for name in ("in", "in/deep", "in/deep/a", "c"):
            self.assertEqual(os.stat(os.path.join(self.work, name)).st_uid, ACCOUNT.pw_uid)
        self.assertEqual(sorted(os.listdir(self.work)), ["b", "c", "in"])
        p = d.ask("progress", "progress", "job.1")
        self.assertEqual((p["over"], p["files_done"], p["bytes_done"], p["bytes_total"], p["left"]),
                         (True, 3, 600000, 600000, 0))
        d.say("forget", "job.1")
        self.assertEqual(d.ask("progress", "progress", "job.1")["code"], CODES["NOT_FOUND"])
        self.assertNotIn("job.1", os.listdir(os.path.join(self.folder, "state")))

    def test_cut_connection_goes_on(self):
        data = sample(400000)
        path = self.serve("a", data)
        self.web.fault(path, Fault(cut=150000), Fault(cut=100000))
        d = self.drive()
        self.right(self.stage(d, (self.web.url(path), "x", sha(data))))
        self.assertEqual(self.content("x"), data)
        asked = self.web.requests(path)
        self.assertEqual([r[3] for r in asked], [200, 206, 206])
        self.assertEqual([r[2].get("Range") for r in asked], [None, "bytes=150000-", "bytes=250000-"])
        self.assertEqual(asked[1][2]["If-Range"], self.web.files[path].etag)

    def test_weak_tag_is_no_promise_but_a_date_is(self):
        data = sample(100000)
        for name, modified, statuses in (("date", "Sat, 21 Nov 2026 10:00:00 GMT", [200, 206]), ("none", None, [200, 200])):
            path = self.serve(name, data, etag='W/"1"', modified=modified)
            self.web.fault(path, Fault(cut=50000))
            d = self.drive()
            self.right(self.stage(d, (self.web.url(path), name, sha(data)), key=name))
            self.assertEqual([r[3] for r in self.web.requests(path)], statuses)

    def test_changed_source_is_not_glued(self):
        old, new = sample(300000, 1), sample(280000, 2)
        path = self.serve("a", old)
        fault = self.web.fault(path, Fault(hold=100000, cut=100000))
        d = self.drive()
        self.begin(d, (self.web.url(path), "x"))
        self.assertTrue(fault.reached.wait(LIMIT))
        self.web.files[path] = File(new)
        fault.go.set()
        self.right(d.event("done"))
        self.assertEqual(self.content("x"), new)
        self.assertEqual([r[3] for r in self.web.requests(path)], [200, 200])

    def test_shorter_source_begins_anew(self):
        path = self.serve("a", sample(300000, 1))
        fault = self.web.fault(path, Fault(hold=200000, cut=200000))
        d = self.drive()
        self.begin(d, (self.web.url(path), "x"))
        self.assertTrue(fault.reached.wait(LIMIT))
        self.web.files[path].data = sample(100000, 2)  # under the same tag: a server that lies
        fault.go.set()
        self.right(d.event("done"))
        self.assertEqual(self.content("x"), sample(100000, 2))

    def test_server_without_ranges(self):
        data = sample(200000)
        path = self.serve("a", data, ranges=False)
        self.web.fault(path, Fault(cut=100000))
        self.right(self.stage(self.drive(), (self.web.url(path), "x", sha(data))))
        self.assertEqual(self.content("x"), data)

    def test_kill_9_goes_on(self):
        data = sample(2000000)
        path = self.serve("a", data)
        fault = self.web.fault(path, Fault(hold=1200000))
        d = self.drive()
        self.begin(d, (self.web.url(path), "in/x", sha(data)))
        self.assertTrue(fault.reached.wait(LIMIT))
        part = os.path.join(self.work, "in/x.part")
        self.until(lambda: os.path.exists(part) and os.path.getsize(part) >= 1000000)
        self.nothing_in_place("in/x")
        d.kill()
        fault.go.set()
        there = os.path.getsize(part)
        d = self.drive()
        self.right(self.stage(d, (self.web.url(path), "in/x", sha(data))))
        self.assertEqual(self.content("in/x"), data)
        self.assertEqual(self.web.requests(path)[-1][2]["Range"], f"bytes={there}-")
        # And once more, after the end: nothing is asked again.
        d.kill()
        count = len(self.web.log)
        self.right(self.stage(self.drive(), (self.web.url(path), "in/x", sha(data))))
        self.assertEqual(len(self.web.log), count)

    def test_part_of_another_start_of_the_machine_is_not_trusted(self):
        data = sample(500000)
        path = self.serve("a", data)
        fault = self.web.fault(path, Fault(hold=300000))
        d = self.drive()
        self.begin(d, (self.web.url(path), "x"))
        self.assertTrue(fault.reached.wait(LIMIT))
        self.until(lambda: os.path.getsize(os.path.join(self.work, "x.part")) > 200000)
        d.kill()
        fault.go.set()
        memo = os.path.join(self.folder, "state/job.1/0")
        with open(memo) as f:
            head, rest = f.read().split("\n", 1)
        with open(memo, "w") as f:
            f.write(head.split()[0] + " 11111111-2222-3333-4444-555555555555\n" + rest)
        self.right(self.stage(self.drive(), (self.web.url(path), "x")))
        self.assertEqual(self.content("x"), data)
        self.assertNotIn("Range", self.web.requests(path)[-1][2])

    def test_wrong_checksum_twice_is_the_end(self):
        path = self.serve("a", sample(100000))
        self.failed(self.stage(self.drive(), (self.web.url(path), "x", sha(b"other"))), "CONFLICT", "sha256", "x")
        self.assertEqual(len(self.web.requests(path)), 2)
        self.nothing_in_place()

    def test_wrong_checksum_once_is_repaired(self):
        data = sample(100000)
        path = self.serve("a", data[:-1] + b"?", etag='"same"')
        fault = self.web.fault(path, Fault(hold=0))
        d = self.drive()
        self.begin(d, (self.web.url(path), "x", sha(data)))
        self.assertTrue(fault.reached.wait(LIMIT))
        self.web.files[path] = File(data, etag='"same"')
        fault.go.set()
        self.right(d.event("done"))
        self.assertEqual(self.content("x"), data)

    def test_permanent_failures_are_told_once(self):
        d = self.drive()
        for status, code, words in ((404, "NOT_FOUND", "no such file"), (403, "DENIED", "does not allow"),
                                    (401, "DENIED", "HTTP 401"), (400, "INVALID", "HTTP 400")):
            path = self.serve(str(status), b"x")
            self.web.fault(path, Fault(status=status))
            url = self.web.url(path)
            self.failed(self.stage(d, (url + "?sig=verysecret", "x"), key=f"job.{status}"), code, words, url, "stage-in of")
            self.assertEqual(len(self.web.requests(path)), 1)
        self.nothing_in_place()

    def test_transient_failures_are_tried_again(self):
        path = self.serve("a", b"hello")
        self.web.fault(path, Fault(status=503), Fault(status=429), Fault(cut=0))
        d = self.drive()
        self.right(self.stage(d, (self.web.url(path), "x")))
        path = self.serve("b", b"hello")
        self.web.fault(path, *[Fault(status=503) for _ in range(9)])
        self.failed(self.stage(d, (self.web.url(path), "y"), key="job.2"), "UNAVAILABLE", "HTTP 503", "after 4 tries")
        self.assertEqual(len(self.web.requests(path)), 4)

    def test_nobody_listens_and_no_such_host(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        d = self.drive(host=["127.0.0.1", "*..*"])
        self.failed(self.stage(d, (f"https://127.0.0.1:{port}/x", "x")), "UNAVAILABLE", "no connection")
        self.failed(self.stage(d, ("https://a..b/x", "x"), key="job.2"), "NOT_FOUND", "no such host", "3 tries")

    def test_silence_is_cut(self):
        path = self.serve("a", sample(50000))
        hold = self.web.fault(path, Fault(hold=10000))
        d = self.drive(patience=1000000)
        self.right(self.stage(d, (self.web.url(path), "x")))
        hold.go.set()
        self.assertEqual(self.content("x"), sample(50000))

    def test_a_trickle_has_failed(self):
        """A source that never stands still and never gets done: by its rate, and by the time it takes."""
        path = self.serve("a", sample(50000))
        for key, bound, says in (("job.1", {"rate_min": 5000}, "STAGERATEMIN"),
                                 ("job.2", {"rate_min": 1, "time_max": 1500000}, "STAGETIMEMAX")):
            slow = self.web.fault(path, Fault(trickle=20))
            d = self.drive(patience=1000000, **bound)
            self.failed(self.stage(d, (self.web.url(path), "x"), key=key), "LIMIT", says)
            slow.go.set()

    def test_certificate_is_checked(self):
        path = self.serve("a", b"x")
        os.mkdir(os.path.join(self.folder, "other"))
        other, _ = make_certificate(os.path.join(self.folder, "other"))
        self.failed(self.stage(self.drive(ca=other), (self.web.url(path), "x")), "UNAUTHENTIC", "certificate")
        self.assertEqual(self.web.requests(path), [])

    def test_redirects(self):
        plain = Web()
        self.addCleanup(plain.close)
        path = self.serve("a", b"hello")
        plain.files["/a"] = File(b"plain")
        d = self.drive(host=["!localhost", "127.0.0.1"])
        cases = (("near", self.web.url(path), None, None), ("relative", path, None, None),
                 ("down", plain.url("/a"), "DENIED", "another protocol"),
                 ("file", "file:///etc/passwd", "DENIED", "redirected"),
                 ("away", self.web.url(path, "localhost"), "DENIED", "localhost"),
                 ("secret", "https://me:verysecret@127.0.0.1/", "INVALID", "password"))
        for name, location, code, words in cases:
            begin = self.serve(name, b"")
            self.web.fault(begin, Fault(status=302, location=location))
            done = self.stage(d, (self.web.url(begin), name), key=name)
            if code:
                self.failed(done, code, words)
                self.assertNotIn("verysecret", done["text"])
            else:
                self.right(done)
                self.assertEqual(self.content(name), b"hello")
        loop = self.serve("loop", b"")
        self.web.fault(loop, *[Fault(status=302, location=loop) for _ in range(9)])
        self.failed(self.stage(d, (self.web.url(loop), "x"), key="loop"), "DENIED", "5 redirects")
        self.assertEqual(plain.log, [])

    def test_inner_hosts_need_to_be_named(self):
        path = self.serve("a", b"x")
        for hosts in ([], ["*"]):
            d = self.drive(host=hosts)
            begun = self.begin(d, (self.web.url(path), "x"))
            self.assertEqual(begun["code"], CODES["DENIED"], begun["text"])
            self.failed(self.stage(d, (self.web.url(path, "localhost"), "x")), "DENIED", "private network")
        d = self.drive(host=["!127.0.0.0/8", "localhost", "*.example.org"])
        self.failed(self.stage(d, (self.web.url(path, "localhost"), "x")), "DENIED", "no files with host localhost")
        self.assertEqual(self.begin(d, ("https://example.com/x", "x"), key="job.2")["code"], CODES["DENIED"])
        self.right(self.stage(self.drive(host=["localhost"]), (self.web.url(path, "localhost"), "x")))
        self.assertEqual(len(self.web.requests(path)), 1)

    def test_limits_at_one_time_and_order(self):
        other = Web()
        self.addCleanup(other.close)
        hold = Fault(hold=1)
        for i in range(4):
            self.serve(str(i), b"12345")
            self.web.fault(f"/test_limits_at_one_time_and_order/{i}", hold)
            other.files[f"/{i}"] = File(b"12345")
            other.fault(f"/{i}", hold)
        d = self.drive(transfers_max=3, host_max=2, host=["127.0.0.1", "localhost"])
        self.begin(d, *[(self.web.url(f"/test_limits_at_one_time_and_order/{i}"), f"a{i}") for i in range(4)])
        self.begin(d, *[(other.url(f"/{i}", "localhost"), f"b{i}") for i in range(4)], key="job.2")
        self.until(lambda: self.web.active + other.active == 3)
        p = [d.ask("progress", "progress", f"job.{i}") for i in (1, 2)]
        self.assertEqual([q["active"] for q in p], [2, 1])
        self.assertEqual([f["state"] for f in p[0]["file"]], ["Running", "Running", "Waiting", "Waiting"])
        hold.go.set()
        for _ in range(2):
            self.right(d.event("done"))
        self.assertLessEqual(self.web.active_most, 2)
        self.assertLessEqual(other.active_most, 2)

    def test_order_is_priority_then_age(self):
        first = self.serve("first", b"12345")
        hold = self.web.fault(first, Fault(hold=1))
        d = self.drive(transfers_max=1)
        self.begin(d, (self.web.url(first), "first"), key="first")
        self.assertTrue(hold.reached.wait(LIMIT))
        for name, priority, since in (("young", 5, 9), ("low", 1, 1), ("old", 5, 3), ("raised", 0, 1)):
            path = self.serve(name, b"12345")
            self.begin(d, (self.web.url(path), name), key=name, priority=priority, since=since)
        d.say("priority", "raised", 100)
        hold.go.set()
        self.assertEqual([d.event("done")["key"] for _ in range(5)], ["first", "raised", "old", "young", "low"])

    def test_progress_and_cancel(self):
        data = sample(500000)
        path = self.serve("a", data)
        hold = self.web.fault(path, Fault(hold=200000))
        d = self.drive()
        self.begin(d, (self.web.url(path) + "?sig=verysecret", "x"))
        self.until(lambda: d.ask("progress", "progress", "job.1")["bytes_done"] >= 200000)
        p = d.ask("progress", "progress", "job.1")
        self.assertEqual((p["over"], p["files"], p["files_done"], p["active"], p["bytes_total"]), (False, 1, 0, 1, 500000))
        self.assertEqual(p["file"][0]["url"], self.web.url(path))
        self.assertGreater(p["left"], 0)
        self.until(lambda: d.ask("progress", "progress", "job.1")["rate"] > 0)
        d.say("cancel", "job.1")
        hold.go.set()
        self.assertEqual(d.ask("progress", "progress", "job.1")["code"], CODES["NOT_FOUND"])
        self.right(self.stage(d, (self.web.url(path) + "?sig=verysecret", "x")))
        self.assertEqual(self.content("x"), data)
        self.assertIn("Range", self.web.requests(path)[-1][2])

    def test_backoff_is_shown(self):
        path = self.serve("a", b"x")
        self.web.fault(path, Fault(status=503))
        d = self.drive(backoff_first=3600000000, backoff_max=3600000000)
        self.begin(d, (self.web.url(path), "x"))
        self.until(lambda: d.ask("progress", "progress", "job.1")["file"][0]["state"] == "Backoff")
        file = d.ask("progress", "progress", "job.1")["file"][0]
        self.assertIn("HTTP 503", file["text"])
        self.assertEqual(file["tries"], 1)

    def test_stage_in_stops_at_the_first_failure(self):
        good, bad = self.serve("good", sample(100000)), "/nowhere"
        hold = self.web.fault(good, Fault(hold=50000))
        d = self.drive()
        self.failed(self.stage(d, (self.web.url(good), "x"), (self.web.url(bad), "y")), "NOT_FOUND", "nowhere")
        hold.go.set()
        self.nothing_in_place()

    def test_sizes_and_room(self):
        path = self.serve("a", sample(100000))
        url = self.web.url(path)
        self.failed(self.stage(self.drive(), (url, "x", "", 99999)), "CONFLICT", "100000 bytes", "99999")
        self.failed(self.stage(self.drive(file_max=50000), (url, "x"), key="job.2"), "LIMIT", "at most 50000")
        begun = self.begin(self.drive(file_max=50000), (url, "x", "", 100000), key="job.3")
        self.assertEqual(begun["code"], CODES["LIMIT"], begun["text"])
        self.failed(self.stage(self.drive(keep_free=1 << 60), (url, "x"), key="job.4"), "LIMIT", "no room")
        self.nothing_in_place()

    def test_links_are_not_followed(self):
        path = self.serve("a", b"stolen")
        outside = self.folder_of_account("outside")
        victim = self.own(os.path.join(outside, "victim"), b"mine")
        for name, target in (("dir", outside), ("file.part", victim), ("name", victim)):
            os.symlink(target, os.path.join(self.work, name))
            self.own(os.path.join(self.work, name))
        os.link(victim, os.path.join(self.work, "hard.part"))
        d = self.drive()
        self.failed(self.stage(d, (self.web.url(path), "dir/x")), "DENIED", "link")
        for key in ("file", "name", "hard"):
            self.right(self.stage(d, (self.web.url(path), key), key=key))
            self.assertEqual(self.content(key), b"stolen")
            self.assertFalse(os.path.islink(os.path.join(self.work, key)))
        self.assertEqual(os.listdir(outside), ["victim"])
        with open(victim, "rb") as f:
            self.assertEqual(f.read(), b"mine")

    def test_what_is_refused_before_anything_is_asked(self):
        d = self.drive(host=["!h", "127.0.0.1"])
        for url, path, checksum, code, words in (
                ("ftp://h/x", "x", "", "INVALID", "wanted https://"), ("https://h/x", "../x", "", "INVALID", "'..'"),
                ("https://127.0.0.1/x", "x", "md5:1", "INVALID", "sha256"), ("file:///etc/passwd", "x", "", "DENIED", "file systems"),
                ("sftp://127.0.0.1/x", "x", "", "UNSUPPORTED", "ssh hosts"), ("s3://b/k", "x", "", "UNSUPPORTED", "endpoint"),
                ("https://h/x", "x", "", "DENIED", "host h")):
            d.say("file", url, path, checksum, -1)
            answer = d.ask("checked", "check", "in", "")
            self.assertEqual(answer["code"], CODES[code], answer["text"])
            self.assertIn(words, answer["text"])
        for _ in range(2):
            d.say("file", "https://127.0.0.1/x", "same", "", -1)
        self.assertIn("twice", d.ask("checked", "check", "in", "")["text"])
        self.assertEqual(d.ask("checked", "check", "in", "")["code"], CODES["LIMIT"])
        path = self.serve("a", b"1")
        hold = self.web.fault(path, Fault(hold=0))
        self.begin(d, (self.web.url(path), "x"))
        self.assertEqual(self.begin(d, (self.web.url(path), "x"))["code"], CODES["EXISTS"])
        hold.go.set()
        self.right(d.event("done"))

    def test_reload(self):
        path = self.serve("a", b"x")
        d = self.drive(host=["nowhere.example.org"])
        self.assertEqual(self.begin(d, (self.web.url(path), "x"))["code"], CODES["DENIED"])
        d.say("set", "host", "127.0.0.1")
        self.assertEqual(d.ask("reloaded", "reload")["code"], 0)
        self.right(self.stage(d, (self.web.url(path), "x")))
        d.say("set", "host", "10.0.0.0/99")
        self.assertEqual(d.ask("reloaded", "reload")["code"], CODES["INVALID"])
        self.right(self.stage(d, (self.web.url(path), "y"), key="job.2"))

    def test_put(self):
        data = sample(300000)
        self.own(os.path.join(self.work, "result"), data)
        path = "/" + self.id().rsplit(".", 1)[1] + "/result"
        self.web.fault(path, Fault(cut=100000), Fault(status=503))
        d = self.drive()
        self.right(self.stage(d, (self.web.url(path), "result", sha(data)), way="out"))
        self.assertEqual(self.web.files[path].data, data)
        self.web.fault(path + "2", Fault(status=403))
        done = self.stage(d, (self.web.url(path + "2"), "result"), (self.web.url(path + "3"), "missing"),
                          (self.web.url(path + "4"), "result"), way="out", key="job.2")
        self.failed(done, "DENIED" if done["file"] == 0 else "NOT_FOUND", "stage-out of")
        self.assertEqual(done["failed"], 2)
        self.assertEqual(self.web.files[path + "4"].data, data)  # the others go on
        self.failed(self.stage(d, (self.web.url(path), "result", sha(b"x")), way="out", key="job.3"), "CONFLICT", "sha256")
        if ROOT:
            with open(os.path.join(self.work, "roots"), "wb") as f:
                f.write(b"not the job's")
            os.chmod(os.path.join(self.work, "roots"), 0o644)
            self.failed(self.stage(d, (self.web.url(path), "roots"), way="out", key="job.4"), "DENIED", "another account")
        os.symlink("/etc/passwd", os.path.join(self.work, "link"))
        self.failed(self.stage(d, (self.web.url(path), "link"), way="out", key="job.5"), "DENIED", "link")

    def credentials(self, *lines):
        path = os.path.join(self.folder, "credentials")
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n")
        os.chmod(path, 0o600)
        return path

    def test_credentials_by_host_and_user(self):
        path = self.serve("a", b"x")
        file = self.credentials("STAGECRED[1] TYPE=BEARER HOST=127.0.0.1 TOKEN=verysecret",
                                'STAGECRED[2] TYPE=HEADER HOST=127.0.0.1 USER=alice HEADER="X-Auth: verysecret2"',
                                "STAGECRED[3] TYPE=BASIC HOST=other.example.org LOGIN=me PASSWORD=verysecret3")
        d = self.drive(credentials=file, host=["127.0.0.1", "localhost"])
        for key, user, url, name, value in (
                ("1", "", self.web.url(path), "Authorization", "Bearer verysecret"),
                ("2", "alice", self.web.url(path), "X-Auth", "verysecret2"),
                ("3", "bob", self.web.url(path), "Authorization", "Bearer verysecret"),
                ("4", "", self.web.url(path, "localhost"), "Authorization", None)):
            self.right(self.stage(d, (url, key), key=key, user=user))
            self.assertEqual(self.web.requests(path)[-1][2].get(name), value)
        begin = self.serve("away", b"")
        self.web.fault(begin, Fault(status=307, location=self.web.url(path, "localhost")))
        self.right(self.stage(d, (self.web.url(begin), "5"), key="5"))
        self.assertNotIn("Authorization", self.web.requests(path)[-1][2])
        plain = Web()
        self.addCleanup(plain.close)
        plain.files["/a"] = File(b"x")
        self.right(self.stage(d, (plain.url("/a"), "6"), key="6"))
        self.assertNotIn("Authorization", plain.requests("/a")[-1][2])

    def test_credentials_file_is_private_and_whole(self):
        for mode, lines, code, words in ((0o644, [], "DENIED", "0600"),
                                         (0o600, ["STAGECRED[1] TYPE=S3 ACCESS=a SECRET=verysecret"], "INVALID", "ENDPOINT"),
                                         (0o600, ["STAGECRED[1] HOST=h TOKEN=verysecret"], "INVALID", "TYPE")):
            path = self.credentials(*lines)
            os.chmod(path, mode)
            d = Drive(self.settings(credentials=path))
            self.drives.append(d)
            self.assertEqual(d.started["code"], CODES[code], d.started["text"])
            self.assertIn(words, d.started["text"])
            self.assertNotIn("verysecret", d.started["text"])

    # --- estimates ---

    def estimate(self, d, *files, key="new", limit_ms=LIMIT * 1000, way="in"):
        for f in files:
            url, path, size = (list(f) + [-1])[:3]
            d.say("file", url, path, "", size)
        return d.ask("estimate", "estimate", key, way, ACCOUNT.pw_name, "", limit_ms)

    def test_estimate(self):
        a, b = self.serve("a", sample(300000)), self.serve("b", sample(200000))
        empty = self.serve("empty", b"")
        far = self.serve("far", b"")
        self.web.fault(far, Fault(status=302, location=b))
        d = self.drive(bandwidth=100000, host=["127.0.0.1", "localhost"])
        e = self.estimate(d, (self.web.url(a), "a"), (self.web.url(far), "b"), (self.web.url(empty), "c"),
                          (self.web.url("/x", "localhost"), "d", 400000))
        self.assertEqual((e["bytes"], e["unknown"], e["missing"]), (900000, 0, 0))
        self.assertEqual(e["time"], 5000000)  # 500000 bytes from one host, beside 400000 from the other
        self.assertEqual({r[2].get("Range") for r in self.web.requests(a)}, {"bytes=0-0"})
        self.estimate(d, (self.web.url(a), "a"))
        self.assertEqual(len(self.web.requests(a)), 1)  # kept
        e = self.estimate(d, (self.web.url("/nowhere") + "?sig=verysecret", "a"))
        self.assertEqual((e["unknown"], e["missing"]), (1, 1))
        self.assertIn("no such file", e["text"])
        self.assertNotIn("verysecret", e["text"])
        busy = self.serve("busy", b"")
        self.web.fault(busy, Fault(status=503))
        e = self.estimate(d, (self.web.url(busy), "a"))
        self.assertEqual((e["unknown"], e["missing"]), (1, 0))

    def test_estimate_waits_no_longer_than_its_limit(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
            d = self.drive()
            e = self.estimate(d, (f"http://127.0.0.1:{silent.getsockname()[1]}/x", "x"), limit_ms=300)
            self.assertEqual((e["unknown"], e["missing"]), (1, 0))

    def test_estimate_counts_what_goes_before(self):
        a = self.serve("a", sample(300000))
        hold = self.web.fault(a, Fault(hold=0))
        d = self.drive(bandwidth=100000, transfers_max=1)
        self.begin(d, (self.web.url(a), "a", "", 300000), since=0)
        self.begin(d, (self.web.url("/later"), "b", "", 500000), key="later", since=5)
        self.assertTrue(hold.reached.wait(LIMIT))
        e = self.estimate(d, (self.web.url("/x"), "x", 100000))  # since 0, key "new": after job.1, before later
        self.assertEqual(e["time"], 4000000)
        e = self.estimate(d, (self.web.url("/x"), "x", 100000), way="out")
        self.assertEqual(e["time"], 1000000)
        hold.go.set()
        d.say("cancel", "later")

    def test_bandwidth_is_measured_and_kept(self):
        data = sample(3000000)
        path = self.serve("a", data)
        d = self.drive(bandwidth=1000)
        self.assertEqual(d.ask("bandwidth", "bandwidth", "127.0.0.1", "in")["rate"], 1000)
        self.right(self.stage(d, (self.web.url(path), "x")))
        measured = d.ask("bandwidth", "bandwidth", "127.0.0.1", "in")["rate"]
        self.assertGreater(measured, 2000)
        self.assertEqual(d.ask("bandwidth", "bandwidth", "127.0.0.1", "out")["rate"], 1000)
        d.close()
        d = self.drive(bandwidth=1000)
        self.assertAlmostEqual(d.ask("bandwidth", "bandwidth", "127.0.0.1", "in")["rate"], measured, delta=measured / 1000)


class FileTest(Case):
    def setUp(self):
        super().setUp()
        self.root = self.folder_of_account("projects", 0o755)

    def put(self, name, data):
        return "file://" + self.own(os.path.join(self.root, name), data)

    def test_both_ways(self):
        data = sample(3000000)
        url = self.put("a b", data).replace(" ", "%20")
        d = self.drive(root=self.root)
        self.right(self.stage(d, (url, "in/x", sha(data))))
        self.assertEqual(self.content("in/x"), data)
        self.assertEqual(os.stat(os.path.join(self.work, "in/x")).st_uid, ACCOUNT.pw_uid)
        self.right(self.stage(d, (f"file://{self.root}/out/y", "in/x", sha(data)), key="job.2", way="out"))
        with open(os.path.join(self.root, "out/y"), "rb") as f:
            self.assertEqual(f.read(), data)
        self.assertEqual(os.listdir(os.path.join(self.root, "out")), ["y"])
        self.failed(self.stage(d, (url, "z", sha(b"")), key="job.3"), "CONFLICT", "sha256")
        self.nothing_in_place("z")

    def test_part_goes_on_only_with_the_same_source(self):
        data = sample(1000000)
        url = self.put("a", data)
        d = self.drive(root=self.root)
        self.right(self.stage(d, (url, "x")))
        d.kill()
        # As after a kill in the middle: the memo of the source, and a part.
        os.unlink(os.path.join(self.work, "x"))
        self.own(os.path.join(self.work, "x.part"), b"?" * 1000)
        d = self.drive(root=self.root)
        self.right(self.stage(d, (url, "x")))
        self.assertEqual(self.content("x"), b"?" * 1000 + data[1000:])
        d.kill()
        os.unlink(os.path.join(self.work, "x"))
        self.own(os.path.join(self.work, "x.part"), b"?" * 1000)
        self.put("a", data[:-1] + b"?")
        d = self.drive(root=self.root)
        self.right(self.stage(d, (url, "x")))
        self.assertEqual(self.content("x"), data[:-1] + b"?")

    def test_only_below_roots_as_the_account(self):
        self.put("a", b"x")
        secret = os.path.join(self.root, "secret")
        with open(secret, "w") as f:
            f.write("root's")
        os.chmod(secret, 0 if not ROOT else 0o600)
        os.symlink("/etc", os.path.join(self.root, "etc"))
        os.symlink("/etc/passwd", os.path.join(self.root, "link"))
        os.mkfifo(os.path.join(self.root, "fifo"))
        self.own(os.path.join(self.root, "fifo"))
        d = self.drive(root=self.root)
        for i, (name, words) in enumerate((("secret", "Permission"), ("etc/passwd", "link"), ("link", "link"),
                                           ("fifo", "plain file"))):
            self.failed(self.stage(d, (f"file://{self.root}/{name}", "x"), key=f"job.{i}"), "DENIED", words)
        self.failed(self.stage(d, (f"file://{self.root}/none", "x"), key="none"), "NOT_FOUND", "No such file")
        for url in ("file:///etc/passwd", f"file://{self.root}x/a"):
            begun = self.begin(d, (url, "x"), key="out")
            self.assertEqual(begun["code"], CODES["DENIED"], begun["text"])
        self.nothing_in_place()


class S3Test(Case):
    def setUp(self):
        super().setUp()
        self.s3 = S3(self.certificate)
        self.addCleanup(self.s3.close)
        self.more = {"credentials": self.cred(), "s3_part": 100000}

    def cred(self, secret="s3cr3t/+key", user=""):
        path = os.path.join(self.folder, "credentials" + str(len(secret)))
        with open(path, "w") as f:
            f.write(f"STAGECRED[1] TYPE=S3 ENDPOINT=https://127.0.0.1:{self.s3.port} REGION=eu ACCESS=AKEXAMPLE "
                    f"SECRET={secret} {user}\n")
        os.chmod(path, 0o600)
        return path

    def test_get_and_put(self):
        data = sample(90000)
        d = self.drive(**self.more)
        self.own(os.path.join(self.work, "r"), data)
        key = "run 7/a+b~(1)=ü.h5"
        url = "s3://bucket/run%207/a+b~(1)=%C3%BC.h5"
        self.right(self.stage(d, (url, "r"), way="out"))
        self.assertEqual(self.s3.files["/bucket/" + key].data, data)
        self.s3.fault("/bucket/" + key, Fault(cut=50000))
        self.right(self.stage(d, (url, "in", sha(data)), key="job.2"))
        self.assertEqual(self.content("in"), data)
        self.assertEqual([r[3] for r in self.s3.requests("/bucket/" + key, "GET")], [200, 206])
        self.own(os.path.join(self.work, "empty"), b"")
        self.right(self.stage(d, ("s3://bucket/empty", "empty"), way="out", key="job.3"))
        self.assertEqual(self.s3.files["/bucket/empty"].data, b"")
        d.say("file", url.replace("7/", "8/"), "x", "", -1)
        self.assertEqual(d.ask("estimate", "estimate", "e", "in", ACCOUNT.pw_name, "", LIMIT * 1000)["missing"], 1)

    def test_wrong_secret(self):
        self.s3.files["/bucket/k"] = File(b"x")
        d = self.drive(credentials=self.cred("verysecret"))
        done = self.stage(d, ("s3://bucket/k", "x"))
        self.failed(done, "DENIED", "HTTP 403", "s3://bucket/k")
        self.assertNotIn("verysecret", done["text"])

    def test_buckets_of_one_user(self):
        d = self.drive(credentials=self.cred(user="USER=alice"))
        self.s3.files["/bucket/k"] = File(b"x")
        begun = self.begin(d, ("s3://bucket/k", "x"), user="bob")
        self.assertEqual(begun["code"], CODES["UNSUPPORTED"], begun["text"])
        self.right(self.stage(d, ("s3://bucket/k", "x"), user="alice"))

    def parts_sent(self):
        return [r[1] for r in self.s3.log if r[0] == "PUT" and r[3] == 200]

    def test_upload_in_parts_goes_on_after_kill_9(self):
        data = sample(450000)
        self.own(os.path.join(self.work, "r"), data)
        self.s3.fault("/bucket/r", Fault(), Fault(cut=50000), Fault(), Fault(hold=1))  # of the POST, and the first parts
        d = self.drive(**self.more)
        hold = self.s3.faults["/bucket/r"][-1]
        self.begin(d, ("s3://bucket/r", "r", sha(data)), way="out")
        self.assertTrue(hold.reached.wait(LIMIT))
        d.kill()
        hold.go.set()
        sent = len(self.parts_sent())
        self.assertNotIn("/bucket/r", self.s3.files)
        self.right(self.stage(self.drive(**self.more), ("s3://bucket/r", "r", sha(data)), way="out"))
        self.assertEqual(self.s3.files["/bucket/r"].data, data)
        self.assertGreaterEqual(sent, 1)
        self.assertEqual(sum(r[0] == "POST" for r in self.s3.log), 2)  # one upload, one end
        first = self.parts_sent()[0]
        self.assertEqual(self.parts_sent().count(first), 1)  # not sent again

    def test_upload_that_the_server_forgot(self):
        data = sample(250000)
        self.own(os.path.join(self.work, "r"), data)
        self.s3.fault("/bucket/r", Fault(), Fault(), Fault(hold=1))
        hold = self.s3.faults["/bucket/r"][-1]
        d = self.drive(**self.more)
        self.begin(d, ("s3://bucket/r", "r"), way="out")
        self.assertTrue(hold.reached.wait(LIMIT))
        self.s3.uploads.clear()
        hold.go.set()
        self.right(d.event("done"))
        self.assertEqual(self.s3.files["/bucket/r"].data, data)

    def test_forgotten_upload_is_given_up_at_the_server(self):
        self.own(os.path.join(self.work, "r"), sample(250000))
        self.s3.fault("/bucket/r", Fault(), Fault(), Fault(hold=1))
        hold = self.s3.faults["/bucket/r"][-1]
        d = self.drive(**self.more)
        self.begin(d, ("s3://bucket/r", "r"), way="out")
        self.assertTrue(hold.reached.wait(LIMIT))
        d.kill()
        hold.go.set()
        d = self.drive(**self.more)  # which does not know the batch
        d.say("forget", "job.1")
        self.until(lambda: self.s3.given_up)
        self.assertEqual(self.s3.uploads, {})
        self.assertEqual(os.listdir(os.path.join(self.folder, "state")), [])


@unittest.skipUnless(os.path.exists(SSHD), "openssh-server is not installed: nothing is shown of sftp")
class SftpTest(Case):
    def setUp(self):
        super().setUp()
        self.sshd = Sshd(self.folder)
        self.addCleanup(self.sshd.close)
        self.far = os.path.join(self.folder, "far")
        os.mkdir(self.far)
        login = pwd.getpwuid(os.geteuid()).pw_name
        path = os.path.join(self.folder, "credentials")
        with open(path, "w") as f:
            f.write(f"STAGECRED[1] TYPE=SFTP HOST=127.0.0.1 LOGIN={login} KEY={self.folder}/user\n")
        os.chmod(path, 0o600)
        self.more = {"credentials": path, "known_hosts": self.sshd.known_hosts()}

    def url(self, name):
        return f"sftp://127.0.0.1:{self.sshd.port}{self.far}/{name}"

    def put(self, name, data):
        with open(os.path.join(self.far, name), "wb") as f:
            f.write(data)
        return self.url(name.replace(" ", "%20"))

    def test_get_cut_and_on(self):
        data = sample(2000000)
        url = self.put("a b", data)
        self.sshd.cut = 900000
        d = self.drive(**self.more)
        self.right(self.stage(d, (url, "x", sha(data))))
        self.assertEqual(self.content("x"), data)
        self.assertGreaterEqual(self.sshd.connections, 2)
        self.right(self.stage(d, (self.put("empty", b""), "y", sha(b"")), key="job.2"))
        self.assertEqual(self.content("y"), b"")
        self.failed(self.stage(d, (self.url("none"), "z"), key="job.3"), "NOT_FOUND", "no such file")
        d.say("file", url, "x", "", -1)
        e = d.ask("estimate", "estimate", "e", "in", ACCOUNT.pw_name, "", LIMIT * 1000)
        self.assertEqual((e["bytes"], e["unknown"]), (2000000, 0))

    def test_changed_source_is_not_glued(self):
        url = self.put("a", sample(2000000, 1))
        self.sshd.cut = 900000
        d = self.drive(backoff_first=2000000, backoff_max=2000000, **self.more)
        self.begin(d, (url, "x"))
        self.until(lambda: d.ask("progress", "progress", "job.1")["file"][0]["state"] == "Backoff")
        self.assertGreater(os.path.getsize(os.path.join(self.work, "x.part")), 0)
        new = sample(2000000, 2)
        self.put("a", new)
        os.utime(os.path.join(self.far, "a"), (1, 1))
        self.right(d.event("done"))
        self.assertEqual(self.content("x"), new)

    def test_put_cut_and_on(self):
        data = sample(4000000)
        self.own(os.path.join(self.work, "r"), data)
        self.sshd.cut_up = 2500000
        d = self.drive(**self.more)
        self.right(self.stage(d, (self.url("new/a%22b"), "r", sha(data)), way="out"))
        self.assertEqual(os.listdir(os.path.join(self.far, "new")), ['a"b'])
        with open(os.path.join(self.far, 'new/a"b'), "rb") as f:
            self.assertEqual(f.read(), data)
        self.assertEqual(self.sshd.connections, 2)
        self.assertLess(self.sshd.up_bytes[1], len(data))  # not all of it again
        # Over what is there.
        self.own(os.path.join(self.work, "r"), b"short")
        self.right(self.stage(d, (self.url("new/a%22b"), "r"), way="out", key="job.2"))
        with open(os.path.join(self.far, 'new/a"b'), "rb") as f:
            self.assertEqual(f.read(), b"short")

    def test_unknown_hosts_are_refused(self):
        url = self.put("a", b"x")
        other = dict(self.more, known_hosts=self.sshd.known_hosts("other"))
        self.failed(self.stage(self.drive(**other), (url, "x")), "DENIED", "another ssh key")
        empty = os.path.join(self.folder, "empty")
        open(empty, "w").close()
        self.failed(self.stage(self.drive(**dict(self.more, known_hosts=empty)), (url, "x")), "DENIED", "does not know the ssh key")
        self.assertEqual(self.sshd.connections, 2)
        d = self.drive(**self.more)
        begun = self.begin(d, (url.replace("sftp://", "sftp://somebody@"), "x"))
        self.assertEqual(begun["code"], CODES["DENIED"], begun["text"])

    def test_key_that_the_server_does_not_take(self):
        url = self.put("a", b"x")
        open(os.path.join(self.folder, "authorized"), "w").close()
        self.failed(self.stage(self.drive(**self.more), (url, "x")), "DENIED", "credentials")


if __name__ == "__main__":
    DRIVE = sys.argv.pop(1)
    unittest.main(verbosity=1)
