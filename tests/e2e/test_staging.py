"""Files of jobs: there and checked before the start, counted in when it can be, gone on with after a kill -9, taken
away after the end; where they do not come, nothing runs and nothing is paid."""
import hashlib
import json
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import schemas
from fixture import ROOT, GridCase, layout, main, wait_for
from shelf import SIZE, Shelf

sys.path.insert(0, str(ROOT / "tests/unit/local_stage"))
from servers import S3  # noqa: E402


class Staging(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shelf = Shelf()
        cls.addClassCleanup(cls.shelf.shutdown)
        cls.s3 = S3()
        cls.addClassCleanup(cls.s3.close)
        keys = cls.grid.layout.state / "stagekeys"
        keys.write_text(f"STAGECRED[s3] TYPE=S3 ENDPOINT=http://127.0.0.1:{cls.s3.port} REGION={cls.s3.region} "
                        f"ACCESS={cls.s3.access} SECRET={cls.s3.secret}\n")
        keys.chmod(0o600)
        more = ("STAGEHOSTS 127.0.0.1/32 127.0.0.3/32 127.0.0.4/32 localhost\nSTAGEBANDWIDTH 64M\nSTAGETIMEOUT 2:00\nSTAGES3PART 5M\n"
                f"STAGECREDENTIALS {keys}\n"
                f"ADMIN1 root nui://{layout.GRID}/operator/{layout.OPERATOR}\n")
        meta = f"BARRIERTIMEOUT 2\nMOVEINTERVAL 1\nMOVEGAIN 1:00\nNOTIFICATIONALLOW {cls.shelf.url('hook/')}\n"
        for name, lines in (("alpha", more), ("beta", more), ("meta", meta)):
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

    def expected(self, *options):
        """In how many seconds it would start, by site (or sites)."""
        rows = json.loads(self.nui("alice", "estimate", "-t", "1:00", *options, "--json").stdout)
        now = datetime.now(timezone.utc)
        return {r["sites"]: (datetime.fromisoformat(r["start"]) - now).total_seconds() for r in rows}

    def test_an_estimate_by_what_was_measured(self):
        """A host that was slow once, at the site that has met it; no slot of a pair comes before its data either."""
        url = self.shelf.put("crawls")[0].replace("127.0.0.1", "localhost")
        self.shelf.slow.add("crawls")
        one = ("-n", 1, "--stage-in", f"{url}=in/data,bytes=10000M")
        two = ("--component", f"left:site=alpha,tasks=1,stage-in={url}=in/data,bytes=10000M", "--component",
               "right:site=beta,tasks=1")
        before, pair = self.expected(*one), self.expected(*two)
        self.assertGreater(min(*before.values(), *pair.values()), 120)  # at STAGEBANDWIDTH
        ident = self.submit("-n", 1, "-t", "1:00", "--site", "alpha", "--stage-in", f"{url}=in/data", self.reader("crawls"))
        self.wait_state(ident, ("Completed",))
        after = self.expected(*one)
        self.assertGreater(after["alpha"], 2 * before["alpha"], (before, after))
        self.assertLess(after["beta"], 1.5 * before["beta"], (before, after))
        self.assertGreater(self.expected(*two)["alpha+beta"], 2 * pair["alpha+beta"])

    def test_side_by_side(self):
        """Two files move at one time, and status says how far each is."""
        names = ("one", "other")
        urls = [self.shelf.put(f"side-{n}", gated=True) for n in names]
        ident = self.submit("-n", 1, "-t", "1:00", *[w for n, (u, d) in zip(names, urls)
                                                     for w in ("--stage-in", f"{u}=in/{n},sha256={d}")],
                            self.write("side.sh", "#!/bin/sh\nls in\n"))

        def both():
            files = self.files(ident)
            return len(files) == 2 and all(f["state"] == "Active" and f["bytes_done"] >= SIZE // 2 for f in files)
        wait_for("half of both", both, 60, self.grid.layout.log)
        for name in names:
            self.shelf.gates[f"side-{name}"].set()
        self.wait_state(ident, ("Completed",))
        self.assertEqual(self.nui("alice", "output", ident).stdout.split(), sorted(names))

    def from_afar(self, name, address):
        """A file that beta thinks to be slow: STAGEBANDWIDTH, with a host of which it has measured nothing."""
        far = Shelf(address)
        self.addCleanup(far.shutdown)
        config = self.grid.layout.config("beta")
        before = config.read_text()
        config.write_text(before.replace("STAGEBANDWIDTH 64M", "STAGEBANDWIDTH 4K"))
        self.addCleanup(self.kill, "beta")
        self.addCleanup(config.write_text, before)
        self.kill("beta")
        return far, *far.put(name)

    def test_a_group_comes_forward_when_its_data_is_there(self):
        """Its slot is kept for when the data was expected; what came sooner counts, and is not fetched again."""
        far, url, digest = self.from_afar("early", "127.0.0.4")
        before = datetime.now(timezone.utc)
        ident = self.submit("-t", "1:00", "--component", "left:site=alpha,tasks=2", "--component",
                            f"right:site=beta,tasks=2,stage-in={url}=in/data,sha256={digest},bytes={SIZE}",
                            self.reader("early"))
        job = self.wait_state(ident, ("Reserved",))
        self.assertGreater((datetime.fromisoformat(job["start_time"]) - before).total_seconds(), 300)  # 3 MB at 4 kB/s
        self.wait_state(ident, ("Completed",), seconds=120)
        self.assertEqual(self.nui("alice", "output", ident, "right").stdout.split(), [digest, "mine"])
        self.assertEqual([r for r in far.ranges("early") if r != "bytes=0-0"], [None])
        wait_for("two charges", lambda: len(self.charges(ident)) == 2, 30)
        self.settled()
        self.assert_books_close()

    def test_stays_where_its_data_is(self):
        """A better site is none for a job whose files would have to come there first; one without files goes there."""
        far, url, digest = self.from_afar("stays", "127.0.0.3")
        for site, length in (("alpha", "5:00"), ("beta", "1:00:00")):
            ident = self.submit("-n", 8, "-t", length, "--site", site, self.gated_script(f"stays-{site}"))
            self.addCleanup(self.open_gate, f"stays-{site}")
            self.wait_state(ident, ("Running",))
        either = ("-n", 8, "-t", "1:00", "--site", "alpha,beta")
        stays = self.submit(*either, "--stage-in", f"{url}=in/data", self.reader("stays"))
        goes = self.submit(*either, self.write("goes.sh", "#!/bin/sh\ntrue\n"))
        for ident in (stays, goes):
            self.wait_state(ident, ("Queued",))
            self.assertEqual(self.record(ident)["components"][0]["site"], "alpha")
        wait_for("its data", lambda: [f["state"] for f in self.files(stays)] in ([], ["Done"]), 60, self.grid.layout.log)
        self.open_gate("stays-beta")
        went = self.wait_state(goes, ("Completed",))
        self.assertEqual(went["components"][0]["site"], "beta")

        def asked_since():
            return next((a for a in self.record(stays)["answers"]
                         if a["site"] == "beta" and a["asked_time"] > went["end_time"]), None)
        answer = wait_for("beta to be asked again", asked_since, 60, self.grid.layout.log)
        late = datetime.fromisoformat(answer["possible_time"]) - datetime.fromisoformat(answer["asked_time"])
        self.assertGreater(late.total_seconds(), 300)  # 3 MB at 4 kB/s
        self.assertEqual(self.record(stays)["components"][0]["site"], "alpha")
        self.open_gate("stays-alpha")
        self.wait_state(stays, ("Completed",))
        self.assertEqual(self.nui("alice", "output", stays).stdout.split(), [digest, "mine"])
        self.assertEqual([r for r in far.ranges("stays") if r != "bytes=0-0"], [None])  # and once

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
        self.assertRegex(job["reason"], "component right at beta: stage-in of .*sha256")
        self.assertEqual(self.began("half"), [])
        self.nothing_paid(ident)
        self.assert_books_close()
        for site in ("alpha", "beta"):  # neither keeps anything for it
            wait_for(f"{site} to be empty", lambda: not self.waiting_at(site), 60, self.grid.layout.log)
            self.assertNotIn(ident, self.nui(layout.OPERATOR, "showres", "--site", site).stdout)

    def waiting_at(self, site):
        both = json.loads(self.nui(layout.OPERATOR, "showq", "--site", site, "--json").stdout)
        return [r["job_id"] for s in ("active", "idle", "blocked") for r in both[s]]

    def test_failing_when_it_runs_again(self):
        """What it ran is charged, what was held is back, when its files cannot be had for the second time."""
        url, _ = self.shelf.put("second")
        ident = self.submit("-n", 2, "-t", "5:00", "--site", "alpha", "--stage-in", f"{url}=in/data",
                            self.gated_script("second"))
        self.addCleanup(self.open_gate, "second")
        self.wait_state(ident, ("Running",))
        del self.shelf.files["second"]
        site_job = self.record(ident)["components"][0]["site_job_id"]
        self.nui(layout.OPERATOR, "mjobctl", "-R", "--site", "alpha", site_job)
        self.assertIn("404", self.wait_state(ident, ("Failed",))["reason"])
        self.assertEqual(self.settled()["held"], 0)
        self.assertEqual(len(self.began("second")), 1)
        self.assertLess(sum(-c["posted"] for c in self.charges(ident)), 2 * 300 * 10**6)  # of two processors for five minutes
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
        self.shelf.closed.add("kept")
        ident = self.submit("-n", 1, "-t", "1:00", "--stage-out", f"out.txt={self.shelf.url('kept')}", script)
        self.wait_state(ident, ("Completed",))
        job = wait_for("a reason", lambda: self.refused_files(ident), 60, self.grid.layout.log)
        self.assertIn("403", job["reason"])
        self.assertEqual(job["state"], "Completed")
        wait_for("its charge", lambda: len(self.charges(ident)) == 1, 30)

    def refused_files(self, ident):
        job = self.status("alice", ident)
        return job if job and job["components"][0]["state"] == "Completed" and job["reason"] else None

    def leaves(self, name, *options, out=("big",), code=0, site="beta"):
        """A job of that name whose files, each of SIZE bytes, go to NAME/FILE, and the shelf hears of it."""
        place = self.job_dir()
        script = self.write(f"{name}.sh", "#!/bin/sh\n" + "".join(
            f"head -c {SIZE} /dev/urandom > {f}; sha256sum {f} | cut -d' ' -f1 > {place}/{name}.{f}.sum\n"
            for f in out) + f"exit {code}\n")
        goes = [w for f in out for w in ("--stage-out", f"{f}={self.shelf.url(f'{name}/{f}')},always")]
        return self.submit("-n", 1, "-t", "1:00", "--site", site, *goes, "--notify",
                           self.shelf.url(f"hook/{name}"), *options, script)

    def arrived(self, name, file):
        self.assertEqual(hashlib.sha256(self.shelf.taken[f"{name}/{file}"]).hexdigest(),
                         (self.job_dir() / f"{name}.{file}.sum").read_text().strip())

    def told(self, name):
        """What the webhook heard of files."""
        return [(b["state"], b["component"], b["reason"]) for b in self.shelf.told.get(name, [])
                if b["event"] == "JobStageOut"]

    def kill(self, site):
        self.grid.daemons[site].kill()
        self.grid.daemons[site].start()
        self.grid.wait_serving()

    def test_taken_away_after_a_kill(self):
        """In the middle of it: whole in the end, and told once."""
        self.shelf.gate("cut/big")
        ident = self.leaves("cut")
        self.assertTrue(self.shelf.half["cut/big"].wait(120))
        self.assertEqual([(f["direction"], f["path"], f["state"], f["bytes"]) for f in self.files(ident)],
                         [("Out", "big", "Active", SIZE)])
        self.assertEqual(self.record(ident)["components"][0]["state"], "StageOut")
        self.assertEqual(self.told("cut"), [])
        self.kill("beta")
        self.shelf.gates["cut/big"].set()
        wait_for("it to be told", lambda: self.told("cut"), 60, self.grid.layout.log)
        self.arrived("cut", "big")
        self.assertEqual(self.told("cut"), [("Completed", "main", "")])
        seen = self.record(ident)
        self.assertEqual((seen["job"]["reason"], seen["transfers"]), (None, []))

    def test_to_s3_in_parts(self):
        """STAGES3PART decides how large they are, and no value that s3 refuses is taken."""
        script = self.write("parts.sh", "#!/bin/sh\nhead -c 11000000 /dev/urandom > r\nsha256sum r | cut -d' ' -f1\n")
        ident = self.submit("-n", 1, "-t", "1:00", "--site", "beta", "--stage-out", "r=s3://bucket/r", script)
        self.wait_state(ident, ("Completed",))
        wait_for("the object", lambda: "/bucket/r" in self.s3.files, 60, self.grid.layout.log)
        data = self.s3.files["/bucket/r"].data
        self.assertEqual(hashlib.sha256(data).hexdigest(), self.nui("alice", "output", ident).stdout.strip())
        numbers = [m[1] for m in (re.search(r"partNumber=(\d+)", r[1]) for r in self.s3.log if r[0] == "PUT") if m]
        self.assertEqual(numbers, ["1", "2", "3"])  # 11 MB, of 5 MiB
        config = self.grid.layout.config("beta")
        for bad in ("4M", "6G", "many"):
            wrong = config.with_name("wrong.cfg")
            wrong.write_text(config.read_text().replace("STAGES3PART 5M", f"STAGES3PART {bad}"))
            wrong.chmod(0o600)
            done = subprocess.run([str(self.grid.programs["nui-local"]), "--config", str(wrong), "--check"],
                                  text=True, capture_output=True)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn("STAGES3PART", done.stdout + done.stderr)

    def restage(self, ident, *options, who="alice", code=0):
        done = self.nui(who, "restage", *options, ident, "--json", code=code)
        rows = json.loads(done.stdout)
        if rows:
            self.assertIsNone(schemas.check(rows, [schemas.fields(schemas.TRANSFER)]))
        return [(r["path"], r["state"]) for r in rows], done.stderr, rows

    def test_taken_away_once_more(self):
        """Only what failed, as long as the site keeps it, also when the site is killed in the middle."""
        self.shelf.closed.add("again/late")
        ident = self.leaves("again", out=("prompt", "late"))
        wait_for("it to be told", lambda: self.told("again"), 60, self.grid.layout.log)
        self.assertEqual(self.told("again")[0][:2], ("Completed", "main"))
        self.assertIn("403", self.told("again")[0][2])
        part = self.record(ident)["components"][0]
        self.assertEqual(self.restage(ident, code=5, who="bob")[0], [])
        self.assertIn("is not yours", self.restage(part["site_job_id"], who="bob", code=3)[1])
        ended = datetime.fromisoformat(part["end_time"])
        for who, ident_there in (("alice", ident), (layout.OPERATOR, ident), ("alice", part["site_job_id"])):
            files, _, rows = self.restage(ident_there, "--list", who=who)
            self.assertEqual(files, [("late", "Failed")])
            self.assertEqual((datetime.fromisoformat(rows[0]["kept_time"]) - ended).days, 7)
            self.assertIn("403", rows[0]["reason"])
        self.assertEqual([(f["path"], f["state"]) for f in self.files(ident)], [("late", "Failed")])
        self.assertEqual(self.shelf.puts("again/late"), 1)

        self.assertEqual([f[0] for f in self.restage(ident)[0]], ["late"])  # refused as before
        wait_for("that to be told, too", lambda: len(self.told("again")) == 2, 60, self.grid.layout.log)
        self.shelf.closed.remove("again/late")
        self.shelf.gate("again/late")
        self.assertEqual([f[0] for f in self.restage(part["site_job_id"], who=layout.OPERATOR)[0]], ["late"])
        self.assertTrue(self.shelf.half["again/late"].wait(60))
        wait_for("its state", lambda: self.record(ident)["components"][0]["state"] == "StageOut", 60)
        self.assertEqual(self.restage(ident)[0], [("late", "Active")])  # it goes on as it is
        self.kill("beta")
        self.shelf.gates["again/late"].set()
        wait_for("the third word", lambda: len(self.told("again")) == 3, 60, self.grid.layout.log)
        self.assertEqual(self.told("again")[2], ("Completed", "main", ""))
        self.arrived("again", "late")
        self.arrived("again", "prompt")
        self.assertEqual(self.shelf.puts("again/prompt"), 1)
        self.assertIsNone(self.record(ident)["job"]["reason"])
        self.assertIn("no file of job", self.restage(ident, code=1)[1])
        self.assertEqual(len(self.charges(ident)), 1)

    def test_taken_away_from_a_failed_job(self):
        """Its own reason stays; that its files went, or did not, is told all the same."""
        self.shelf.closed.add("broken/big")
        ident = self.leaves("broken", code=3)
        wait_for("it to be told", lambda: self.told("broken"), 60, self.grid.layout.log)
        self.assertEqual((self.told("broken")[0][0], "403" in self.told("broken")[0][2]), ("Failed", True))
        self.assertIn("exit code", self.record(ident)["job"]["reason"])
        self.shelf.closed.remove("broken/big")
        self.assertEqual([f[0] for f in self.restage(ident)[0]], ["big"])
        wait_for("it to be told again", lambda: len(self.told("broken")) == 2, 60, self.grid.layout.log)
        self.assertEqual(self.told("broken")[1], ("Failed", "main", ""))
        self.arrived("broken", "big")

    def test_taken_away_from_a_group(self):
        """Each component's files are told of; what one lacks is said of the job, and taken once more."""
        self.shelf.closed.add("two/right")
        script = self.write("two.sh", "#!/bin/sh\necho $NUI_COMPONENT > out\n")
        ident = self.submit("-t", "1:00", "--notify", self.shelf.url("hook/two"), *[w for p, s in
                            (("left", "alpha"), ("right", "beta")) for w in ("--component",
                            f"{p}:site={s},tasks=2,stage-out=out={self.shelf.url(f'two/{p}')}")], script)
        self.wait_state(ident, ("Completed",), seconds=120)
        wait_for("both", lambda: len(self.told("two")) == 2, 60, self.grid.layout.log)
        left, right = sorted(self.told("two"), key=lambda t: t[1])
        self.assertEqual((left[1:], right[1], "403" in right[2]), (("left", ""), "right", True))
        self.assertIn("component right at beta: ", self.status("alice", ident)["reason"])
        self.shelf.closed.remove("two/right")
        self.assertEqual([r["component"] for r in self.restage(ident, "--list")[2]], ["right"])
        self.restage(ident)
        wait_for("the right one's", lambda: "two/right" in self.shelf.taken, 60, self.grid.layout.log)
        wait_for("no reason", lambda: self.status("alice", ident)["reason"] is None, 60)
        self.assertEqual(self.shelf.puts("two/left"), 1)

    def test_not_taken_away_once_more(self):
        """One sentence each: while it runs, when nothing failed, no such job, and when the files' time is over."""
        self.shelf.closed.add("stale/big")
        ident = self.submit("-n", 1, "-t", "5:00", "--site", "beta", "--stage-out",
                            f"out={self.shelf.url('stale/big')}", self.write("stale.sh", f"""#!/bin/sh
echo result > out
until [ -e {self.job_dir()}/stale.gate ]; do sleep 0.05; done
"""))
        self.wait_state(ident, ("Running",))
        site_job = self.record(ident)["components"][0]["site_job_id"]
        self.assertIn(f"job {site_job} has not ended", self.restage(ident, code=1)[1])
        self.assertIn("there is no job", self.restage("grid.9999", code=5)[1])
        self.assertIn("not known at site", self.restage("beta.9999", code=5)[1])
        self.nui("alice", "restage", code=2)
        # the metascheduler does not hear of the end, so that the site cannot forget the job
        self.grid.daemons["meta"].kill()
        path = self.grid.layout.config("beta")
        config = path.read_text()
        self.addCleanup(self.as_before, path, config)
        (self.job_dir() / "stale.gate").touch()
        wait_for("its failure", lambda: [r["state"] for r in self.list_there(site_job)] == ["Failed"], 60,
                 self.grid.layout.log)
        path.write_text(config + "JOBPURGETIME 00:00:01\n")
        self.grid.daemons["beta"].kill()
        self.grid.daemons["beta"].start()
        wait_for("their time to be over", lambda: self.too_late(site_job), 60, self.grid.layout.log)
        self.assertIn(f"the files of job {site_job} were kept until 2", self.restage(site_job, code=1)[1])
        self.assertEqual(self.shelf.puts("stale/big"), 1)

    def as_before(self, path, config):
        path.write_text(config)
        self.grid.daemons["meta"].start()
        self.kill("beta")

    def list_there(self, ident):
        done = self.grid.nui("alice", "restage", "--list", ident, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else []

    def too_late(self, ident):
        rows = self.list_there(ident)
        return rows and datetime.fromisoformat(rows[0]["kept_time"]) + timedelta(seconds=1) < datetime.now(timezone.utc)

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
