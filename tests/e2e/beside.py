"""Beside: a grid with bob's work going on, so that a test can say what an attack does to it.

A round of bob's work is a connection of his own to the metascheduler and to a site, a call on each, and a job at the site
from its submission to its end. Its median while the attack goes on is compared with the median before it, in the same
run: it may be three times that and 100 ms, since the attack's own programs take of the processors, which other tests fill as
well. On a machine with nothing else to do NUI_QUIET=1 asks for what is promised: 100 ms more at most. Where another load of the
machine falls on one half only both are measured anew: what an attack costs it costs each time. Nothing of bob's is lost: every
job of his ended well, said what it had to say, and is charged once.
"""
import inspect
import os
import statistics
import threading
import time

import grpc

from fixture import Forge, GridCase, layout, wait_for

ROUNDS = 9
TRIES = 5
DELAY_MAX_S = 0.1
SLOWER_MAX = 1 if os.environ.get("NUI_QUIET") else 3
ADMIN = "nui.local.v1.Admin"


class Attack(threading.Thread):
    """One act, again and again until the test has seen enough; what it says is kept, and what it raised is raised."""

    def __init__(self, act, words):
        super().__init__(daemon=True)
        self.act, self.words, self.error, self.over = act, words, None, threading.Event()

    def run(self):
        try:
            while not self.over.is_set():
                self.words.append(self.act())
        except Exception as error:
            self.error = error

    def __enter__(self):
        before = len(self.words)
        self.start()
        wait_for("the first blow", lambda: len(self.words) > before or not self.is_alive(), 60)
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join(300)
        if self.error:
            raise self.error


class Beside(GridCase):
    more = {}  # daemon: lines for its configuration

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, lines in cls.more.items():
            path = cls.grid.layout.config(name)
            path.write_text(path.read_text() + lines)
            cls.grid.daemons[name].stop()
            cls.grid.daemons[name].start()
        cls.grid.wait_serving()
        cls.forge = Forge(cls.grid)
        from proto.nui.v1 import admin_pb2
        cls.admin = admin_pb2
        cls.done = {}  # bob's jobs at each site

    @classmethod
    def fund(cls):
        super().fund()
        for who, *words in ((layout.OPERATOR, "project", "create", "chemistry"),
                            (layout.OPERATOR, "project", "add-user", "chemistry", "bob"),
                            (layout.OPERATOR, "account", "create", "chem", "--project", "chemistry"),
                            (layout.AGENCY, "deposit", "-A", "chem", 100000)):
            done = cls.grid.nui(who, *words)
            assert done.returncode == 0, done.stderr

    # ---- calls

    def here(self, user, method, request, reply, site="alpha"):
        """A call of a person at a site, on a connection of its own; grpc.RpcError with the status."""
        with self.forge.channel(site, "user", user) as channel:
            return self.forge.call(channel, ADMIN, method, request, reply, 60)

    def signed(self, user, script, site="alpha", walltime_s=60, procs=1, change=lambda job: None):
        """An envelope for one site alone."""
        job = self.forge.job(user, layout.ACCOUNT[user], script, walltime_s)
        job.components[0].sites.append(site)
        job.components[0].reqs[0].tasks = procs
        change(job)
        return self.forge.sign(user, job.SerializeToString())

    def submit_here(self, user, envelope, site="alpha"):
        """What a site says to a job that is handed in on the spot: its id, or why not."""
        try:
            return self.here(user, "SubmitJob", self.admin.SubmitJobRequest(envelope=envelope),
                             self.admin.SubmitJobReply, site).job_id
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"

    def detail(self, user, ident):
        return self.here(user, "CheckJob", self.admin.CheckJobRequest(job_id=ident), self.admin.JobDetail,
                         ident.partition(".")[0])

    def wait_here(self, user, ident, *states):
        def reached():
            job = self.detail(user, ident)
            return job if job.job.state in states else None
        return wait_for(f"{ident} to be {' or '.join(states)}", reached, 60, self.grid.layout.log)

    # ---- bob's work

    def bobs_calls(self, site="alpha"):
        meta = self.forge.contract.meta
        with self.forge.channel("meta", "user", "bob") as channel:
            reply = self.forge.call(channel, "nui.meta.v1.Meta", "WhoAmI", meta.WhoAmIRequest(), meta.WhoAmIReply, 60)
        self.assertIn("/user/bob", reply.identity)
        with self.forge.channel(site, "user", "bob") as channel:
            queue = channel.unary_stream(f"/{ADMIN}/Queue", request_serializer=lambda m: m.SerializeToString(),
                                         response_deserializer=self.admin.QueueChunk.FromString)
            self.assertTrue(list(queue(self.admin.QueueRequest(), timeout=600)))

    def bobs_job(self, site="alpha"):
        """From its submission to its end."""
        mine = self.done.setdefault(site, [])
        ident = self.submit_here("bob", self.signed("bob", b"#!/bin/sh\necho bob was here\n", site), site)
        self.assertRegex(ident, rf"^{site}\.\d+$")
        job = self.wait_here("bob", ident, "Completed", "Failed", "Cancelled")
        self.assertEqual((job.job.state, job.exit_code), ("Completed", 0), job)
        said = self.grid.layout.state / f"jobs-{site}" / ident / "work" / "stdout"
        self.assertEqual(said.read_text(), "bob was here\n")
        mine.append(ident)

    def round(self, site="alpha"):
        begun = time.monotonic()
        self.bobs_calls(site)
        self.bobs_job(site)
        return time.monotonic() - begun

    def median(self, site="alpha"):
        return statistics.median(self.round(site) for _ in range(ROUNDS))

    def beside(self, attack, site="alpha"):
        """bob's work before and beside it. attack: makes the context in which it goes on, as often as it is needed, or
        is one act that is repeated; then what each said is returned."""
        seen, words = [], []
        for _ in range(TRIES):
            before = self.median(site)
            with attack() if inspect.isgeneratorfunction(inspect.unwrap(attack)) else Attack(attack, words):
                during = self.median(site)
            seen.append((round(before, 3), round(during, 3)))
            if during < SLOWER_MAX * before + DELAY_MAX_S:
                self.bob_lost_nothing(site)
                return words
        self.fail(f"seconds of a round before and beside the attack: {seen}")

    def bob_lost_nothing(self, site):
        """Each of his jobs there is charged once, and his books close."""
        mine = self.done[site]
        wait_for(f"{len(mine)} charges", lambda: set(mine) <= set(self.bobs_charges(site)), 60,
                 self.grid.daemons["bank"].log)
        paid = self.bobs_charges(site)
        self.assertEqual(sorted(paid), sorted(set(paid)))
        self.settled("chem", who="bob")
        self.assert_books_close("chem", "bob")

    def bobs_charges(self, site):
        paper = self.statement("chem", "bob")
        return [line["job"] for line in paper["lines"] if line["kind"] == "charge" and line["site"] == site] if paper else []
