"""Three metaschedulers that decide as a group: one is killed around a decision, a site or the bank between its YES
and COMMIT, or a site is cut off there.

The group's other members are frozen while a job is prepared, so that its coordinator stands in DECIDE
with its votes under way: then is the moment.
"""
import selectors
import signal
import socket
import sqlite3
import threading

from fixture import GridCase, main, wait_for

PEERS = ("meta2", "meta3")
PAIR = ("--component", "left:site=alpha,tasks=2", "--component", "right:site=beta,tasks=2")


class Wire:
    """A TCP connection through this process, which can be cut: what is sent stays on its way, and nobody is told."""

    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.whole = threading.Event()
        self.whole.set()
        self.passed = 0
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.whole.wait()
            far = socket.create_connection(self.target)
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
                    self.passed += len(data)

    def cut(self):
        self.whole.clear()

    def mend(self):
        """As after a partition: the connections of before are broken."""
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.whole.set()

    def close(self):
        self.mend()
        self.listener.close()


class Group(GridCase):
    metas = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in cls.grid.metas:
            cls.wait_leads(name)

    def tearDown(self):
        """Whatever became of it: the next test finds all of them."""
        for name in self.grid.metas:
            self.thaw(name)
            if self.grid.daemons[name].pid() is None:
                self.grid.daemons[name].start()

    @classmethod
    def log_lines(cls, name, word):
        log = cls.grid.daemons[name].log
        return [line for line in log.read_text().splitlines() if word in line]

    @classmethod
    def wait_leads(cls, name, before=0):
        """It reaches its group (again), and may act."""
        wait_for(f"{name} to lead", lambda: len(cls.log_lines(name, "group leads")) > before, 40,
                 cls.grid.daemons[name].log)

    def freeze(self, *names):
        for name in names:
            self.grid.daemons[name].process.send(signal.SIGSTOP)

    def thaw(self, *names):
        for name in names:
            self.grid.daemons[name].process.send(signal.SIGCONT)

    def votes(self, name, ident):
        """Votes that this member has on disk for what the first one proposes for that job."""
        def rows(member, query, *args):
            path = self.grid.layout.state / member / "meta.sqlite"
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20) as db:
                return db.execute(query, args).fetchall()
        found = rows("meta", "SELECT txn FROM coalloc WHERE job = ?", int(ident.split(".")[1]))
        return found and rows(name, "SELECT decision FROM vote WHERE txn = ? AND accepted IS NOT NULL",
                              found[0][0])

    def submit_pair(self, name):
        script = self.gated_script(name)
        return self.grid.submit("alice", "--name", name, "-A", "phys", "-t", "5:00", *PAIR, script)

    def led_by(self, meta, name):
        """The status of the job of that name there; None: it has none."""
        found = [job for job in self.grid.json(f"alice-{meta}", "jobs", "-e") if job["name"] == name]
        return found[0] if found else None

    def taken_by(self, name, states):
        def reached():
            for meta in PEERS:
                job = self.led_by(meta, name)
                if job and job["state"] in states:
                    return meta, job
            return None
        return wait_for(f"another metascheduler to show {name} as {'/'.join(states)}", reached, 60,
                        self.grid.daemons["meta2"].log, 0.2)

    def ends_once(self, ident, name):
        self.wait_state(ident, ("Completed",))
        self.assertEqual(sorted(line.split()[0] for line in self.began(name)), ["left", "right"])
        self.settled()
        self.assert_books_close()

    def paid(self, ident):
        """Its charges, once there is one of each component: the bank may be asked in vain on a loaded machine."""
        charges = self.charges(ident)
        return charges if len(charges) >= 2 else None

    def test_killed_after_the_decision(self):
        """A majority has the vote on disk, and no site has been told."""
        ident, name = self.stand_before_decision("decided")
        self.freeze("meta")
        self.thaw(*PEERS)
        wait_for("a majority", lambda: any(self.votes(m, ident) for m in PEERS), 30,
                 self.grid.daemons["meta2"].log)
        self.assertFalse(self.log_lines("meta", f"job={ident} event=DECIDED"))
        self.grid.daemons["meta"].kill()
        self.taken_by(name, ("Running",))
        wait_for("both components to begin", lambda: len(self.began(name)) == 2, 30)
        self.open_gate(name)
        self.taken_by(name, ("Completed",))
        self.settled()
        self.grid.daemons["meta"].start()
        self.ends_once(ident, name)
        charges = wait_for("both components to be charged", lambda: self.paid(ident), 40,
                           self.grid.daemons["bank"].log)
        self.assertEqual(len(charges), 2)

    def test_killed_before_the_decision(self):
        """Only its own vote is on disk: nothing starts, all holds end with their leases."""
        name = "undecided"
        before = len(self.log_lines("meta", "group leads"))
        for peer in PEERS:
            self.grid.daemons[peer].kill()
        ident = self.submit_pair(name)
        wait_for("its own vote", lambda: self.votes("meta", ident), 30, self.grid.daemons["meta"].log)
        self.grid.daemons["meta"].kill()
        for peer in PEERS:
            self.grid.daemons[peer].start()
        self.settled(seconds=60)
        self.assertEqual(self.began(name), [])
        self.assertIsNone(self.led_by("meta2", name))
        self.open_gate(name)
        self.grid.daemons["meta"].start()
        self.wait_leads("meta", before)
        self.ends_once(ident, name)

    def configure(self, path, text):
        taken = len(self.log_lines("meta", "configuration_taken"))
        path.write_text(text)
        self.grid.daemons["meta"].process.send(signal.SIGHUP)
        wait_for("the configuration to be taken",
                 lambda: len(self.log_lines("meta", "configuration_taken")) > taken, 30)

    def stand_before_decision(self, wanted):
        """All sites have said YES, and the votes cannot arrive. Returns the job and its name. On a slow machine a
        coordinator may notice before that it is alone: then once more."""
        for turn in range(5):
            name, alone = f"{wanted}{turn}", len(self.log_lines("meta", "group alone"))
            leads = len(self.log_lines("meta", "group leads"))
            self.freeze(*PEERS)
            ident = self.submit_pair(name)
            wait_for("its own vote", lambda: self.votes("meta", ident) or
                     len(self.log_lines("meta", "group alone")) > alone, 30,
                     self.grid.daemons["meta"].log)
            if self.votes("meta", ident):
                return ident, name
            self.thaw(*PEERS)
            self.wait_leads("meta", leads)
            self.nui("alice", "cancel", ident)
            self.settled()
        self.fail("the machine is too slow for this test")

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
        wire = Wire(self.grid.ports["beta"])
        self.addCleanup(wire.close)
        path = self.grid.layout.config("meta")
        before = path.read_text()
        self.addCleanup(self.configure, path, before)
        self.configure(path, before.replace(f"SERVER=127.0.0.1:{self.grid.ports['beta']}",
                                            f"SERVER=127.0.0.1:{wire.port}") + "LEASETIME 12\n")
        ident, name = self.stand_before_decision("cut")
        ended = len(self.log_lines("beta", "lease_ended"))
        self.assertGreater(wire.passed, 0)
        wire.cut()
        self.thaw(*PEERS)
        wait_for("beta's lease to end", lambda: len(self.log_lines("beta", "lease_ended")) > ended, 60,
                 self.grid.daemons["beta"].log)
        self.assertTrue(self.log_lines("meta", f"job={ident} event=DECIDED from=DECIDE to=COMMIT"))
        self.assertEqual(self.began(name), [])
        wire.mend()
        self.open_gate(name)
        self.ends_once(ident, name)


if __name__ == "__main__":
    main()
