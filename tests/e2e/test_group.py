"""Three metaschedulers that decide as a group: one is killed with jobs that wait, run, are being prepared or just
decided; a site or the bank is killed between its YES and COMMIT, or a site is cut off there.

Beta's connection to the bank goes through here: while it is cut, beta does not say YES. With the group's other members
frozen then, and the connection mended, the coordinator has decided and nobody has its vote: that is the moment. So do the
coordinator's to alpha and beta: cut there, the others may have its vote before a site has been told.
"""
import contextlib
import json
import re
import selectors
import signal
import socket
import sqlite3
import threading

import grpc

from fixture import Forge, GridCase, layout, main, wait_for
from shelf import Shelf

PEERS = ("meta2", "meta3")
PREPARE, COMMIT = 3, 5  # enum coalloc_phase
PAIR = ("--component", "left:site=alpha,tasks=2", "--component", "right:site=beta,tasks=2")


class Wire:
    """A TCP connection through this process, which can be cut: what is sent stays on its way, and nobody is told."""

    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.whole = threading.Event()
        self.whole.set()
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.whole.wait()
            try:
                far = socket.create_connection(self.target)
            except OSError:  # it has been killed
                near.close()
                continue
            self.ends += [near, far]
            threading.Thread(target=self.carry, args=(near, far), daemon=True).start()

    def carry(self, near, far):
        with selectors.DefaultSelector() as ready, near, far:
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while True:
                for key, _ in ready.select():
                    self.whole.wait()
                    try:
                        data = key.fileobj.recv(65536)
                        key.data.sendall(data)
                    except OSError:
                        return
                    if not data:
                        return

    def cut(self):
        self.whole.clear()

    def mend(self):
        """As after a partition: the connections of before are broken."""
        if self.whole.is_set():
            return
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.whole.set()

    def close(self):
        self.listener.close()
        self.mend()


class Group(GridCase):
    metas = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shelf = Shelf()
        cls.addClassCleanup(cls.shelf.shutdown)
        cls.wire = {name: Wire(cls.grid.ports[name]) for name in ("bank", "alpha", "beta")}
        for wire in cls.wire.values():
            cls.addClassCleanup(wire.close)
        path = cls.grid.layout.config("beta")
        path.write_text(re.sub(r"(?m)^BANK\b.*$", f"BANK 127.0.0.1:{cls.wire['bank'].port}", path.read_text()) +
                        "STAGEHOSTS 127.0.0.1/32\n")
        path = cls.grid.layout.config("meta")
        for site in ("alpha", "beta"):
            path.write_text(path.read_text().replace(f"SERVER=127.0.0.1:{cls.grid.ports[site]}",
                                                     f"SERVER=127.0.0.1:{cls.wire[site].port}"))
        # Nobody takes them: what is to be told stays on disk.
        path.write_text(path.read_text() + "NOTIFICATIONURL http://127.0.0.1:9/\nNOTIFICATIONEVENTS JOBEND\n")
        for name in ("beta", "meta"):
            cls.grid.daemons[name].stop()
            cls.grid.daemons[name].start()
        cls.wait_lead(*cls.grid.metas)

    def tearDown(self):
        """Whatever became of it: the next test finds all of them."""
        for wire in self.wire.values():
            wire.mend()
        for name in self.grid.metas:
            self.thaw(name)
            if self.grid.daemons[name].pid() is None:
                self.grid.daemons[name].start()
        self.wait_lead(*self.grid.metas)
        for script in self.grid.layout.work.glob("*.sh"):
            self.open_gate(script.stem)
        self.settled()

    def test_who_is_not_of_the_group(self):
        """A metascheduler of the same authority that no METACFG names: it is asked, told and obeyed by none."""
        grid, mine = self.grid, self.grid.layout.id_dir("meta", "rival")
        if not mine.exists():
            grid.nui_ca("issue", grid.layout.ca, "meta", "rival", "--out", mine)
        forge = Forge(grid)
        ident = grid.submit("alice", "-A", "phys", "--site", "gamma", "-t", "10:00", "-n", 1, self.gated_script("theirs"))
        self.wait_state(ident, ("Running",))
        meta, number = forge.contract.meta, int(ident.split(".")[1])
        by = f"nui://{layout.GRID}/user/alice"
        calls = {"Vote": (meta.VoteRequest(job=number, ballot=1 << 20, version=1), meta.VoteReply),
                 "Beat": (meta.BeatRequest(), meta.BeatReply), "Over": (meta.OverRequest(), meta.OverReply),
                 "State": (meta.StateRequest(job=number), meta.StateReply),
                 "Cancel": (meta.PeerRequest(job=number, by=by), meta.CancelReply),
                 "Hold": (meta.PeerRequest(job=number, by=by, held=True), meta.HoldReply),
                 "Renew": (meta.PeerRequest(job=number, by=by), meta.RenewReply)}
        methods = {m.name for m in meta.DESCRIPTOR.services_by_name["Peers"].methods}
        self.assertEqual(set(calls), methods)
        for kind, name, code in (("meta", "rival", "not of this group"), ("user", "alice", ""), ("site", "gamma", "")):
            with forge.channel("meta2", kind, name) as channel:
                for method, (request, reply) in calls.items():
                    with self.subTest(kind=kind, method=method), self.assertRaises(grpc.RpcError) as refused:
                        forge.call(channel, "nui.meta.v1.Peers", method, request, reply)
                    self.assertEqual(refused.exception.code(), grpc.StatusCode.PERMISSION_DENIED)
                    self.assertIn(code, refused.exception.details())
        self.assertEqual(self.status("alice", ident)["state"], "Running")
        self.open_gate("theirs")
        self.wait_state(ident, ("Completed",))

    @classmethod
    def log_lines(cls, name, word):
        log = cls.grid.daemons[name].log
        return [line for line in log.read_text().splitlines() if word in line]

    @classmethod
    def leads(cls, name):
        """It reaches its group, as far as it has said since it was started."""
        said = [line for word in ("meta recovered", "group leads", "group alone") for line in cls.log_lines(name, word)]
        return " group leads " in max(said, default="")

    @classmethod
    def wait_lead(cls, *names):
        for name in names:
            wait_for(f"{name} to lead", lambda: cls.leads(name), 40, cls.grid.daemons[name].log)

    def freeze(self, *names):
        for name in names:
            self.grid.daemons[name].process.send(signal.SIGSTOP)

    def thaw(self, *names):
        for name in names:
            self.grid.daemons[name].process.send(signal.SIGCONT)

    def phase(self, meta, ident):
        """Of the co-allocation, as that member has it on disk; None: it has not heard of it."""
        path = self.grid.layout.state / meta / "meta.sqlite"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=600) as db:
            row = db.execute("SELECT phase FROM coalloc WHERE job = ? AND role = 0", (int(ident.split(".")[1]),)).fetchone()
        return row and row[0]

    def submit_pair(self, name):
        return self.grid.submit("alice", "--name", name, "-A", "phys", "-t", "5:00", *PAIR, self.gated_script(name))

    def submit_one(self, name, tasks):
        return self.grid.submit("alice", "--name", name, "-A", "phys", "-t", "5:00", "--site", "beta", "-n", tasks,
                                self.gated_script(name))

    def ends_once(self, ident, name, components=("left", "right")):
        """Every member says so, also one that was away; it ran once, and was paid once."""
        for meta in self.grid.metas:
            self.wait_state(ident, ("Completed",), "alice" if meta == "meta" else f"alice-{meta}")
        self.assertEqual(sorted(line.split()[0] for line in self.began(name)), sorted(components))
        self.settled()
        self.assert_books_close()
        self.assertEqual(len(wait_for(f"{ident} to be charged", lambda: self.charged(ident, len(components)), 40,
                                      self.grid.daemons["bank"].log)), len(components))

    def charged(self, ident, least):
        """Its charges, once there is one of each component: the bank may be asked in vain on a loaded machine."""
        charges = self.charges(ident)
        return charges if len(charges) >= least else None

    def stand_undecided(self, wanted):
        """Alpha has said YES, beta has not: that both are being prepared is on all disks. Who has answered the
        question that came after it has answered that, too, so nothing is on its way between them."""
        self.wire["bank"].cut()
        ident = self.submit_pair(wanted)
        wait_for(f"{ident} to be prepared", lambda: all(self.phase(m, ident) == PREPARE for m in PEERS), 30,
                 self.grid.daemons["meta"].log)
        for who in ("alice-meta2", "alice-meta3", "alice"):
            self.status(who, ident)
        return ident

    def test_killed_before_the_decision(self):
        """What was prepared is aborted by another, tried again and run."""
        name = "undecided"
        ident = self.stand_undecided(name)
        self.grid.daemons["meta"].kill()
        self.assertIn(self.status("alice-meta2", ident)["state"], ("Pending", "Reserved"))
        self.wire["bank"].mend()
        self.wait_state(ident, ("Running",), "alice-meta3", 90)
        self.open_gate(name)
        self.wait_state(ident, ("Completed",), "alice-meta2")
        self.grid.daemons["meta"].start()
        self.ends_once(ident, name)

    def test_killed_after_the_decision(self):
        """A majority has it on disk, and no site has been told."""
        ident, name = self.stand_before_decision("decided")
        for site in ("alpha", "beta"):
            self.wire[site].cut()
        self.thaw(*PEERS)
        wait_for("a majority", lambda: COMMIT in [self.phase(m, ident) for m in PEERS], 30,
                 self.grid.daemons["meta2"].log)
        self.grid.daemons["meta"].kill()
        for site in ("alpha", "beta"):
            self.wire[site].mend()
        self.wait_state(ident, ("Running",), "alice-meta2", 90)
        wait_for("both components to begin", lambda: len(self.began(name)) == 2, 30)
        self.assertEqual(self.status("alice-meta3", ident)["attempts"], 1)
        self.open_gate(name)
        self.wait_state(ident, ("Completed",), "alice-meta3")
        self.grid.daemons["meta"].start()
        self.ends_once(ident, name)

    def test_killed_with_ordinary_jobs(self):
        """One runs and fills beta, one waits for it, one that waits is cancelled: all without their metascheduler."""
        for name in ("runs", "waits", "goes"):
            self.addCleanup(self.open_gate, name)
        runs = self.submit_one("runs", 8)
        self.wait_state(runs, ("Running",))
        waits, goes = self.submit_one("waits", 8), self.submit_one("goes", 8)
        for ident in (waits, goes):
            self.wait_state(ident, ("Queued",))
        wait_for("another to show it", lambda: self.status("alice-meta2", runs)["state"] == "Running", 30)
        self.grid.daemons["meta"].kill()
        self.assertEqual(self.status("alice-meta2", runs)["state"], "Running")
        listed = self.nui("alice-meta3", "jobs").stdout
        self.assertEqual([ident for ident in (runs, waits, goes) if ident not in listed], [])
        wait_for(f"{goes} to be cancelled",  # by meta2, which is first in turn to take it over
                 lambda: self.grid.nui("alice-meta3", "cancel", goes).returncode == 0, 60)
        self.wait_state(goes, ("Cancelled",), "alice-meta2")
        self.open_gate("runs")
        self.wait_state(runs, ("Completed",), "alice-meta2")
        self.wait_state(waits, ("Running",), "alice-meta3")
        self.grid.daemons["meta"].start()
        self.open_gate("waits")
        self.ends_once(runs, "runs", ("main",))
        self.ends_once(waits, "waits", ("main",))
        self.assertEqual(self.began("goes"), [])

    def on_disk(self, query, *values, meta="meta"):
        """What it has there."""
        with sqlite3.connect(f"file:{self.grid.layout.state}/{meta}/meta.sqlite?mode=ro", uri=True, timeout=600) as db:
            return db.execute(query, values).fetchall()

    def test_an_end_that_one_alone_has(self):
        """It is told to nobody before a majority has it, also when who has it is killed meanwhile."""
        ident = self.submit_one("alone", 2)
        number = int(ident.split(".")[1])
        self.wait_state(ident, ("Running",), "alice-meta2")
        self.freeze(*PEERS)
        wait_for("meta to be alone", lambda: not self.leads("meta"), 40)
        self.open_gate("alone")
        for killed in (False, True):
            if killed:
                self.grid.daemons["meta"].kill()
                self.grid.daemons["meta"].start()
                wait_for("meta to answer", lambda: self.grid.nui("alice", "status", ident).returncode == 0, 30)
            wait_for("the end on its disk", lambda: self.on_disk("SELECT 1 FROM job WHERE number = ? AND ended", number), 40)
            seen = self.status("alice", ident)
            self.assertEqual((seen["state"], seen["end_time"]), ("Running", None))
            self.assertIn("reaches too few of its group", seen["reason"])
            self.assertIn(ident, self.nui("alice", "jobs").stdout)
            said = self.nui("alice", "sethold", "-u", ident, code=4).stderr
            self.assertIn("may have ended: try again", said)
            self.assertEqual(self.on_disk("SELECT body FROM notice WHERE body LIKE ?", f'%"{ident}"%'), [])
        self.thaw(*PEERS)
        self.ends_once(ident, "alone", ("main",))
        told = self.on_disk("SELECT body FROM notice WHERE body LIKE ?", f'%"{ident}"%')
        self.assertEqual([(json.loads(body)["event"], json.loads(body)["state"]) for body, in told], [("JobEnd", "Completed")])

    def test_an_array_is_kept_once(self):
        """Each member has what was signed once, not with each of the jobs; and whoever takes over has all of them."""
        script = self.write("many.sh", f"#!/bin/sh\n# {'x' * 20000}\necho $SLURM_ARRAY_TASK_ID >> {self.job_dir()}/many\n")
        ident = self.nui("alice", "submit", "-A", "phys", "-t", "5:00", "--site", "alpha", "--hold", "--array", "1-30",
                         script).stdout.split()[0]
        number = int(re.match(r"grid\.(\d+)", ident)[1])
        query = "SELECT count(*), sum(length(envelope)) FROM job WHERE array_of = ?"
        for meta in self.grid.metas:
            count, size = wait_for(f"{meta} to have all", lambda meta=meta: (lambda has: has[0] == 30 and has)(
                self.on_disk(query, number, meta=meta)[0]), 60, self.grid.layout.log)
            self.assertLess(size, 3 * 20000, meta)
        self.grid.daemons["meta"].kill()
        ran = self.job_dir() / "many"

        def let_go():
            """Who has not taken over all of them does not say that all are let go."""
            done = self.grid.nui("alice-meta2", "releasehold", "-u", ident)
            return done.returncode == 0 or "none of them waits any more" in done.stderr
        wait_for("all to be let go", let_go, 120, self.grid.layout.log)
        wait_for("all to have run", lambda: ran.exists() and sorted(map(int, ran.read_text().split())) == list(range(1, 31)),
                 120, self.grid.layout.log)
        self.grid.daemons["meta"].start()

    def test_an_array_asked_at_another_member(self):
        """All of it is renewed, let go and cancelled there, also what that member does not lead; and not just what it does."""
        ident = self.nui("alice", "submit", "-A", "phys", "-t", "5:00", "--site", "alpha", "--hold", "--array", "1-30",
                         self.gated_script("array")).stdout.split()[0]
        number = int(re.match(r"grid\.(\d+)", ident)[1])
        for peer in PEERS:
            wait_for(f"{peer} to have all", lambda peer=peer: self.on_disk(
                "SELECT count(*) FROM job WHERE array_of = ?", number, meta=peer)[0][0] == 30, 60, self.grid.layout.log)
        wait_for("all to be at their site", lambda: self.on_disk(
            "SELECT count(*) FROM job WHERE array_of = ? AND place = 2", number)[0][0] == 30, 60, self.grid.layout.log)
        self.assertIn("30 jobs may go on until", self.nui("alice-meta2", "renew", ident, "--for", "30:00:00:00").stdout)
        self.assertIn("30 jobs released", self.nui("alice-meta3", "jobrelease", ident).stdout)
        self.nui("bob-meta2", "cancel", ident, code=5)
        self.assertIn("30 jobs cancelled", self.nui("alice-meta2", "cancel", ident).stdout)
        wait_for("all to be over", lambda: self.on_disk("SELECT count(*) FROM job WHERE array_of = ? AND ended AND cancel_wanted",
                                                        number, meta="meta3")[0][0] == 30, 90, self.grid.layout.log)
        self.open_gate("array")

    def renumbered(self, number, ident):
        """Beta's job of this number is that of another grid job from now on, as after a restore."""
        beta = self.grid.daemons["beta"]
        beta.stop()
        with contextlib.closing(sqlite3.connect(f"{self.grid.layout.state}/beta/local.db", timeout=600)) as db, db:
            self.assertEqual(db.execute("UPDATE job SET grid_job_id = ? WHERE number = ?", (ident, number)).rowcount, 1)
        beta.start()

    def test_a_number_that_another_job_has(self):
        """Who takes a job over asks its site, and does not believe what that says of another's."""
        ident = self.submit_one("mine", 2)
        self.wait_state(ident, ("Running",), "alice-meta2")
        number = int(self.status("alice", ident)["components"][0]["site_job_id"].split(".")[1])
        self.renumbered(number, "grid.4242")
        self.grid.daemons["meta"].kill()
        logs = [self.grid.daemons[meta].log for meta in PEERS]
        said = f"another_has_the_number site=beta site_job=beta.{number} job={ident} its=grid.4242"
        wait_for("its site's answer to be looked at", lambda: any(said in log.read_text() for log in logs) or
                 self.status("alice-meta2", ident)["state"] != "Running", 60, self.grid.layout.log)
        self.assertEqual(self.status("alice-meta2", ident)["state"], "Running")
        self.renumbered(number, ident)
        self.grid.daemons["meta"].start()
        self.wait_lead(*self.grid.metas)
        self.grid.daemons["meta2"].kill()
        self.wait_state(ident, ("Failed",), "alice-meta3", 90)  # its directory was another's in between: so it is told
        self.grid.daemons["meta2"].start()

    def test_away_from_submission_to_end(self):
        """Who was away shows the job, lets others wait for it, and does not need who led it for that."""
        self.grid.daemons["meta3"].kill()
        ident = self.submit_one("away", 2)
        self.open_gate("away")
        self.wait_state(ident, ("Completed",), "alice-meta2")
        self.grid.daemons["meta"].kill()
        self.grid.daemons["meta3"].start()
        said = wait_for(f"meta3 to know of {ident}", lambda: self.answered("alice-meta3", "status", ident, "--json"), 60)
        self.assertEqual(json.loads(said)["job"]["state"], "Completed")
        after = self.grid.submit("alice-meta3", "-A", "phys", "-t", "1:00", "--site", "beta", "--depend", f"afterok:{ident}",
                                 self.write("after.sh", "#!/bin/sh\ntrue\n"))
        self.wait_state(after, ("Completed",), "alice-meta2")
        self.grid.daemons["meta"].start()
        self.ends_once(ident, "away", ("main",))

    def answered(self, who, *command):
        """None: it does not know yet, and says so."""
        done = self.grid.nui(who, *command)
        self.assertIn(done.returncode, (0, 4), done.stderr)
        return done.stdout

    def test_asked_at_another_member(self):
        """Let go, renewed, held in a site's queue and cancelled at one that does not lead the job."""
        runs = self.grid.submit("alice", "-A", "phys", "-t", "5:00", "--site", "beta", "-n", 8, "--hold",
                                self.gated_script("asked"))
        wait_for("another to show it", lambda: self.status("alice-meta2", runs), 30)
        self.nui("alice-meta2", "releasehold", "-u", runs)
        self.wait_state(runs, ("Running",), "alice-meta3")
        self.assertIn("may go on until", self.nui("alice-meta3", "renew", runs, "--for", "30:00:00:00").stdout)
        self.assertEqual([name for name in self.grid.metas if self.log_lines(name, f"renewed job={runs}")], ["meta"])
        waits = self.submit_one("asked2", 8)
        self.wait_state(waits, ("Queued",))
        wait_for("another to show it", lambda: self.status("alice-meta2", waits), 30)
        self.nui("bob-meta2", "sethold", "-u", waits, code=5)
        self.nui("alice-meta2", "sethold", "-u", waits)
        self.assertEqual(len(self.log_lines("beta", 'user set"')), 1)
        self.nui("alice-meta3", "cancel", waits)
        self.wait_state(waits, ("Cancelled",))
        self.open_gate("asked")
        self.wait_state(runs, ("Completed",))
        self.assertEqual(self.began("asked2"), [])

    def test_files_are_taken_away_once_more_without_the_leader(self):
        self.shelf.closed.add("left")
        ident = self.grid.submit("alice", "-A", "phys", "-t", "1:00", "--site", "beta", "--stage-out",
                                 f"left={self.shelf.url('left')}", self.write("left.sh", "#!/bin/sh\necho kept > left\n"))
        self.wait_state(ident, ("Completed",), "alice-meta2")
        self.grid.daemons["meta"].kill()

        def restage(member, *options, who="alice", code=0):
            rows = json.loads(self.nui(f"{who}-{member}", "restage", *options, ident, "--json", code=code).stdout)
            return [(row["path"], row["state"]) for row in rows]
        wait_for("the refusal", lambda: restage("meta2", "--list") == [("left", "Failed")], 40, self.grid.daemons["beta"].log)
        self.assertEqual(restage("meta3", who="bob", code=5), [])
        for peer in PEERS:
            wait_for(f"{peer} to hear of it", lambda: "403" in (self.status(f"alice-{peer}", ident)["reason"] or ""), 30)
        self.shelf.closed.remove("left")
        self.assertEqual([path for path, _ in restage("meta3")], ["left"])
        wait_for("the file", lambda: self.shelf.taken.get("left") == b"kept\n", 40, self.grid.daemons["beta"].log)
        for peer in PEERS:
            wait_for(f"{peer} to hear of it", lambda: not self.status(f"alice-{peer}", ident)["reason"], 30)
        self.grid.daemons["meta"].start()
        self.settled()

    def configure(self, path, text):
        taken = len(self.log_lines("meta", "configuration_taken"))
        path.write_text(text)
        self.grid.daemons["meta"].process.send(signal.SIGHUP)
        wait_for("the configuration to be taken",
                 lambda: len(self.log_lines("meta", "configuration_taken")) > taken, 30)

    def stand_before_decision(self, wanted):
        """All sites have said YES, and the votes cannot arrive. Returns the job and its name. On a slow machine a
        coordinator may notice before that it is alone: then once more."""
        for turn in range(20):
            name = f"{wanted}{turn}"
            ident = self.stand_undecided(name)
            self.freeze(*PEERS)
            self.wire["bank"].mend()
            wait_for("all to have said YES", lambda: self.phase("meta", ident) == COMMIT or not self.leads("meta"),
                     30, self.grid.daemons["meta"].log)
            if self.phase("meta", ident) == COMMIT:
                return ident, name
            self.thaw(*PEERS)
            self.wait_lead(*self.grid.metas)
            self.nui("alice", "cancel", ident)
            self.settled()
        self.fail("the machine is too slow for this test")

    def any_of_them(self, *metas):
        """A configuration of alice's that names these, in this order."""
        lay, name = self.grid.layout, "alice-" + "-".join(metas)
        names = " ".join(f"127.0.0.1:{self.grid.ports[meta]}" for meta in metas)
        lines = lay.config("alice").read_text().splitlines()
        lay.config(name).write_text("\n".join(f"META {names}" if line.split(" ")[0] == "META" else line
                                              for line in lines) + "\n")
        return name

    def test_a_client_goes_to_the_next_member(self):
        """One that hangs, one that is dead; what another does not know is told with who does not answer."""
        anyone = self.any_of_them("meta", "meta2", "meta3")
        held = self.grid.submit("alice", "-A", "phys", "-t", "5:00", "--hold", self.gated_script("held"))
        self.freeze("meta")
        sites = self.grid.nui(anyone, "sites")
        self.assertEqual((sites.returncode, sites.stderr), (0, ""))
        self.assertIn("alpha", sites.stdout)
        self.thaw("meta")
        self.grid.daemons["meta"].kill()
        ident = self.grid.submit(anyone, "-A", "phys", "-t", "5:00", self.gated_script("onward"))
        self.wait_state(ident, ("Running",), who=anyone)
        self.open_gate("onward")
        self.wait_state(ident, ("Completed",), who=anyone)
        self.assertIn("Completed", self.nui(anyone, "watch", ident).stdout)
        dead = self.grid.nui(self.any_of_them("meta"), "status", ident)
        self.assertEqual(dead.returncode, 4)
        self.assertNotIn("none of", dead.stderr)
        self.freeze("meta2", "meta3")
        none = self.grid.nui(anyone, "status", ident)
        self.thaw("meta2", "meta3")
        self.assertEqual(none.returncode, 4)
        self.assertRegex(none.stderr, "^nui status: none of 3 metaschedulers answers: .+")
        self.grid.daemons["meta"].start()
        self.wait_state(held, ("Pending", "Queued"), who=anyone)
        self.nui(anyone, "cancel", held)
        self.settled()

    def killed_between_yes_and_commit(self, *victims):
        ident, name = self.stand_before_decision(f"without-{victims[0]}")
        processes = [self.grid.postgres if v == "postgresql" else self.grid.daemons[v] for v in victims]
        for process in processes:
            process.kill()
        self.thaw(*PEERS)
        for process in processes:
            process.start()
        self.open_gate(name)
        self.ends_once(ident, name)

    def test_site_killed_between_yes_and_commit(self):
        self.killed_between_yes_and_commit("beta")

    def test_bank_killed_between_yes_and_commit(self):
        self.killed_between_yes_and_commit("postgresql", "bank")

    def test_cut_between_yes_and_commit(self):
        """Alpha becomes firm; beta's lease ends; nothing starts alone; mended, the job runs once."""
        path, wire = self.grid.layout.config("meta"), self.wire["beta"]
        before = path.read_text()
        self.addCleanup(self.configure, path, before)
        self.configure(path, before + "LEASETIME 12\n")
        ident, name = self.stand_before_decision("cut")
        ended = len(self.log_lines("beta", "lease_ended"))
        wire.cut()
        self.thaw(*PEERS)
        wait_for("beta's lease to end", lambda: len(self.log_lines("beta", "lease_ended")) > ended, 60,
                 self.grid.daemons["beta"].log)
        self.assertEqual(self.phase("meta2", ident), COMMIT)
        self.assertEqual(self.began(name), [])
        wire.mend()
        self.open_gate(name)
        self.ends_once(ident, name)


if __name__ == "__main__":
    main()
