"""Three metaschedulers that decide as a group: one is killed around a decision, or cut off in it.

The group's other members are frozen while a job is prepared, so that its coordinator stands in DECIDE
with its votes under way: then is the moment.
"""
import signal
import sqlite3

from fixture import GridCase, main, wait_for

PEERS = ("meta2", "meta3")
PAIR = ("--component", "left:site=alpha,tasks=2", "--component", "right:site=beta,tasks=2")


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

    def test_killed_after_the_decision(self):
        """A majority has the vote on disk, and no site has been told."""
        name = "decided"
        self.freeze(*PEERS)
        ident = self.submit_pair(name)
        wait_for("its own vote", lambda: self.votes("meta", ident), 30, self.grid.daemons["meta"].log)
        self.freeze("meta")
        self.thaw(*PEERS)
        wait_for("a majority", lambda: any(self.votes(m, ident) for m in PEERS), 30,
                 self.grid.daemons["meta2"].log)
        self.assertFalse(self.log_lines("meta", "to=COMMIT"))
        self.grid.daemons["meta"].kill()
        self.taken_by(name, ("Running",))
        wait_for("both components to begin", lambda: len(self.began(name)) == 2, 30)
        self.open_gate(name)
        self.taken_by(name, ("Completed",))
        self.settled()
        self.grid.daemons["meta"].start()
        self.ends_once(ident, name)
        self.assertEqual(len(self.charges(ident)), 2)

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


if __name__ == "__main__":
    main()
