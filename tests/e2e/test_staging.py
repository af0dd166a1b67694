"""Files of jobs: there and checked before the start, counted in when it can be, gone on with after a kill -9, taken
away after the end; where they do not come, nothing runs and nothing is paid."""
import hashlib
import http.server
import json
import random
import threading
from datetime import datetime, timezone

import schemas
from fixture import GridCase, layout, main, wait_for

SIZE = 3 << 20


class Shelf(http.server.ThreadingHTTPServer):
    """Files by HTTP with ETag and ranges; one that is gated stops half way until its gate is opened."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.gates, self.seen, self.taken = {}, {}, [], {}
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a daemon was killed

    def put(self, name, size=SIZE, gated=False):
        data = random.Random(name).randbytes(size)
        self.files[name] = data
        if gated:
            self.gates[name] = threading.Event()
        return self.url(name), hashlib.sha256(data).hexdigest()

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"

    def ranges(self, name):
        with self.lock:
            return [r for m, n, r in self.seen if n == name and m == "GET"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def named(self):
        name = self.path.lstrip("/")
        with self.server.lock:
            self.server.seen.append((self.command, name, self.headers.get("Range")))
        data = self.server.files.get(name)
        if data is None:
            self.send_error(404)
        return name, data

    def head(self, code, data, begin=0):
        self.send_response(code)
        self.send_header("Content-Length", str(len(data) - begin))
        self.send_header("ETag", '"%s"' % hashlib.sha256(data).hexdigest()[:16])
        self.send_header("Accept-Ranges", "bytes")
        if code == 206:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.end_headers()

    def do_HEAD(self):
        _, data = self.named()
        if data is not None:
            self.head(200, data)

    def do_GET(self):
        name, data = self.named()
        if data is None:
            return
        begin = 0
        if self.headers.get("Range"):
            begin = int(self.headers["Range"].removeprefix("bytes=").split("-")[0])
        self.head(206 if begin else 200, data, begin)
        gate, half = self.server.gates.get(name), len(data) // 2
        try:
            if gate is not None and not gate.is_set():
                self.wfile.write(data[begin:max(begin, half)])
                self.wfile.flush()
                gate.wait(120)
                begin = max(begin, half)
            self.wfile.write(data[begin:])
        except OSError:
            pass

    def do_PUT(self):
        name = self.path.lstrip("/")
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if name.startswith("closed/"):
            self.send_error(403)
            return
        with self.server.lock:
            self.server.taken[name] = data
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Staging(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shelf = Shelf()
        cls.addClassCleanup(cls.shelf.shutdown)
        more = ("STAGEHOSTS 127.0.0.1/32\nSTAGEBANDWIDTH 64M\nSTAGETIMEOUT 2:00\n"
                f"ADMIN1 root nui://{layout.GRID}/operator/{layout.OPERATOR}\n")
        for name, lines in (("alpha", more), ("beta", more), ("meta", "BARRIERTIMEOUT 2\n")):
            path = cls.grid.layout.config(name)
            path.write_text(path.read_text() + lines)
            cls.grid.daemons[name].stop()
            cls.grid.daemons[name].start()
        cls.grid.wait_serving()

    def submit(self, *options):
        return self.grid.submit("alice", "-A", "phys", *options)

    def record(self, ident):
        return json.loads(self.nui("alice", "status", ident, "--json").stdout)

    def files(self, ident):
        return self.record(ident)["transfers"]

    def reader(self, name):
        """A job that says the checksum of in/data and who owns it."""
        place = self.job_dir()
        return self.write(f"{name}.sh", f"""#!/bin/sh
sha256sum in/data | cut -d' ' -f1
[ -O in/data ] && echo mine
echo "$NUI_COMPONENT" >> {place}/{name}.began
chmod a+rw {place}/{name}.began 2>/dev/null
""")

    def half_way(self, ident, name):
        """Its file is half here; how that looks."""
        def moving():
            files = self.files(ident)
            return files if files and files[0]["bytes_done"] >= SIZE // 2 else None
        files = wait_for(f"half of {name}", moving, 60, self.grid.layout.log)
        self.assertEqual([(f["direction"], f["path"], f["state"], f["bytes"]) for f in files],
                         [("In", "in/data", "Active", SIZE)])
        return files

    def nothing_paid(self, ident):
        self.settled()
        self.assertEqual(self.charges(ident), [])

    def test_there_before_the_start(self):
        url, digest = self.shelf.put("plain")
        ident = self.submit("-n", 1, "-t", "1:00", "--stage-in", f"{url}=in/data,sha256={digest},bytes={SIZE}",
                            self.reader("plain"))
        self.wait_state(ident, ("Completed",))
        self.assertEqual(self.nui("alice", "output", ident).stdout.split(), [digest, "mine"])
        wait_for("its charge", lambda: len(self.charges(ident)) == 1, 30)
        self.settled()
        self.assert_books_close()

    def test_waits_for_it(self):
        url, digest = self.shelf.put("slow", gated=True)
        ident = self.submit("-n", 1, "-t", "1:00", "--site", "alpha", "--stage-in", f"{url}=in/data",
                            self.reader("slow"))
        self.half_way(ident, "slow")
        seen = self.record(ident)
        self.assertEqual((seen["job"]["state"], self.began("slow")), ("Queued", []))
        self.assertIn("bytes) are here; the rest is expected at", seen["job"]["reason"])
        self.assertEqual(self.settled()["held"], 0)
        site_job = seen["components"][0]["site_job_id"]
        told = json.loads(self.nui(layout.OPERATOR, "checkjob", "--site", "alpha", site_job, "--json").stdout)
        self.assertIsNone(schemas.check(told["transfers"], [schemas.fields(schemas.TRANSFER)]))
        self.assertIsNone(schemas.check(seen["transfers"], [schemas.fields(schemas.TRANSFER)]))
        self.assertEqual((told["job"]["reason_code"], told["transfers"][0]["path"]), ("StageIn", "in/data"))
        said = self.nui(layout.OPERATOR, "checkjob", "--site", "alpha", site_job).stdout
        self.assertIn("StageIn: in/data  Active", said)
        refused = self.nui(layout.OPERATOR, "runjob", "--site", "alpha", site_job, code=1)
        self.assertIn("are here", refused.stderr)
        # nobody else is kept waiting
        other = self.submit("-n", 8, "-t", "4", "--site", "alpha", self.write("ok.sh", "#!/bin/sh\ntrue\n"))
        self.wait_state(other, ("Completed",))
        self.shelf.gates["slow"].set()
        self.wait_state(ident, ("Completed",))
        self.assertEqual(self.nui("alice", "output", ident).stdout.split(), [digest, "mine"])

    def test_goes_on_after_a_kill(self):
        url, digest = self.shelf.put("killed", gated=True)
        ident = self.submit("-n", 1, "-t", "1:00", "--site", "beta", "--stage-in",
                            f"{url}=in/data,sha256={digest}", self.reader("killed"))
        self.half_way(ident, "killed")
        self.grid.daemons["beta"].kill()
        self.shelf.gates["killed"].set()
        self.grid.daemons["beta"].start()
        self.grid.wait_serving()
        self.wait_state(ident, ("Completed",))
        self.assertEqual(self.nui("alice", "output", ident).stdout.split(), [digest, "mine"])
        went_on = [r for r in self.shelf.ranges("killed") if r and not r.startswith("bytes=0-")]
        self.assertTrue(went_on, self.shelf.ranges("killed"))

    def test_a_wrong_checksum(self):
        url, _ = self.shelf.put("wrong")
        ident = self.submit("-n", 1, "-t", "1:00", "--stage-in", f"{url}=in/data,sha256={'0' * 64}",
                            self.reader("wrong"))
        job = self.wait_state(ident, ("Failed",))
        self.assertIn("in/data", job["reason"])
        self.assertEqual(self.began("wrong"), [])
        self.nothing_paid(ident)

    def test_refused_at_once(self):
        """No such file; and a host with which the sites do not speak."""
        for url, text in ((self.shelf.url("absent"), "404"), ("http://127.0.0.2:1/x", "127.0.0.2")):
            done = self.nui("alice", "submit", "-t", "1:00", "--site", "alpha,beta", "--stage-in", f"{url}=in/data",
                            self.reader("absent"), code=1)
            self.assertIn(text, done.stderr)

    def test_an_estimate_counts_it(self):
        url, _ = self.shelf.put("big")
        def start(*options):
            rows = json.loads(self.nui("alice", "estimate", "-n", 1, "-t", "1:00", "--site", "alpha", *options,
                                       "--json").stdout)
            return datetime.fromisoformat(rows[0]["start"])
        before = datetime.now(timezone.utc)
        self.assertLess((start() - before).total_seconds(), 600)
        late = start("--stage-in", f"{url}=in/data,bytes={1 << 20}M")  # a terabyte at no more than this machine has
        self.assertGreater((late - before).total_seconds(), 60)

    def pair(self, name, left, right):
        return self.submit("-t", "1:00", "--component", f"left:site=alpha,tasks=2,stage-in={left}",
                           "--component", f"right:site=beta,tasks=2,stage-in={right}", self.reader(name))

    def test_a_group_starts_with_its_data(self):
        left, right = self.shelf.put("left"), self.shelf.put("right")
        ident = self.pair("group", f"{left[0]}=in/data,sha256={left[1]}", f"{right[0]}=in/data,sha256={right[1]}")
        self.wait_state(ident, ("Completed",), seconds=120)
        for part, (_, digest) in (("left", left), ("right", right)):
            self.assertEqual(self.nui("alice", "output", ident, part).stdout.split(), [digest, "mine"])
        self.assertEqual(self.began("group"), ["left", "right"])
        wait_for("two charges", lambda: len(self.charges(ident)) == 2, 30)
        self.settled()
        self.assert_books_close()

    def test_a_group_of_which_one_is_late(self):
        """Its slot comes before its data, which the site did not foresee: it gets another one, for which what has come
        counts; both start together, once."""
        left, right = self.shelf.put("prompt"), self.shelf.put("late", gated=True)
        ident = self.pair("lategroup", f"{left[0]}=in/data,sha256={left[1]}", f"{right[0]}=in/data,sha256={right[1]}")
        again = wait_for("another try", lambda: self.tried_again(ident), 120, self.grid.layout.log)
        self.assertEqual(self.began("lategroup"), [], again)
        self.shelf.gates["late"].set()
        self.wait_state(ident, ("Completed",), seconds=180)
        self.assertEqual(self.began("lategroup"), ["left", "right"])
        self.assertTrue([r for r in self.shelf.ranges("late") if r and not r.startswith("bytes=0-")],
                        self.shelf.ranges("late"))
        wait_for("two charges", lambda: len(self.charges(ident)) == 2, 30)
        self.settled()
        self.assert_books_close()

    def tried_again(self, ident):
        job = self.status("alice", ident)
        return job if job and job["attempts"] > 1 else None

    def test_a_group_of_which_one_fails(self):
        left, right = self.shelf.put("fine"), self.shelf.put("spoilt")
        ident = self.pair("half", f"{left[0]}=in/data,sha256={left[1]}", f"{right[0]}=in/data,sha256={'0' * 64}")
        job = self.wait_state(ident, ("Failed",), seconds=120)
        self.assertIn("component right at beta", job["reason"])
        self.assertEqual(self.began("half"), [])
        self.nothing_paid(ident)
        self.assert_books_close()

    def test_taken_away(self):
        script = self.write("makes.sh", "#!/bin/sh\necho result > out.txt\necho trace > log.txt\nexit $1\n")
        options = ("-n", 1, "-t", "1:00", "--stage-out", f"out.txt={self.shelf.url('%s/out')}",
                   "--stage-out", f"log.txt={self.shelf.url('%s/log')},always", script)
        good = self.submit(*[str(o).replace("%s", "good") for o in options], 0)
        bad = self.submit(*[str(o).replace("%s", "bad") for o in options], 3)
        self.wait_state(good, ("Completed",))
        self.wait_state(bad, ("Failed",))
        wait_for("three files", lambda: len(self.shelf.taken) >= 3, 60, self.grid.layout.log)
        self.assertEqual(self.shelf.taken, {"good/out": b"result\n", "good/log": b"trace\n", "bad/log": b"trace\n"})
        wait_for("nothing to be said of it any more", lambda: self.status("alice", good)["reason"] is None, 60)

    def test_kept_where_it_cannot_be_taken_away(self):
        script = self.write("kept.sh", "#!/bin/sh\necho result > out.txt\n")
        ident = self.submit("-n", 1, "-t", "1:00", "--stage-out", f"out.txt={self.shelf.url('closed/out')}", script)
        self.wait_state(ident, ("Completed",))
        job = wait_for("a reason", lambda: self.refused_files(ident), 60, self.grid.layout.log)
        self.assertIn("403", job["reason"])
        self.assertEqual(job["state"], "Completed")
        wait_for("its charge", lambda: len(self.charges(ident)) == 1, 30)

    def refused_files(self, ident):
        job = self.status("alice", ident)
        return job if job and job["components"][0]["state"] == "Completed" and job["reason"] else None

    def test_bad_words(self):
        for option, value, text in (("--stage-in", "ftp://h/x=y", "ftp"),
                                    ("--stage-in", "https://h/x", "URL=PATH"),
                                    ("--stage-in", "https://h/x=../y", "y"),
                                    ("--stage-in", "https://me:secret@h/x=y", "password"),
                                    ("--stage-out", "y", "PATH=URL")):
            done = self.nui("alice", "submit", "-t", "60", option, value, self.reader("bad"), code=2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    main()
