"""Jobs that would take from others what is theirs, with bob's work going on beside each: it is not delayed and loses
nothing (beside.py)."""
import contextlib
import http.server
import json
import os
import threading
import time
import unittest

import grpc

from beside import Beside
from fixture import layout, main, wait_for


class Dripper(http.server.ThreadingHTTPServer):
    """A source of files that says it has 10 MB and sends ten bytes a second."""
    daemon_threads = True

    def __init__(self):
        self.over = threading.Event()
        over = self.over

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.send_response(200)
                self.send_header("Content-Length", "10000000")
                self.end_headers()

            def do_GET(self):
                self.do_HEAD()
                with contextlib.suppress(OSError):
                    while not over.wait(0.1):
                        self.wfile.write(b".")

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.over.set()
        self.shutdown()
        self.server_close()


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class HostileJobs(Beside):
    admin1 = f"ADMIN1 root nui://{layout.GRID}/operator/{layout.OPERATOR}\n"
    more = {"alpha": f"{admin1}STAGEHOSTS 127.0.0.1/32\nSTAGETIMEOUT 3\nSTAGERATEMIN 1000\nBACKFILLPOLICY FIRSTFIT\n"}

    def operator(self, command, *args):
        return self.nui(layout.OPERATOR, command, "--site", "alpha", *args).stdout

    def cancel(self, user, ident):
        self.here(user, "CancelJob", self.admin.CancelJobRequest(job_id=ident), self.admin.CancelJobReply)
        self.wait_here(user, ident, "Cancelled")

    def submit(self, user, script=b"#!/bin/sh\ntrue\n", **options):
        ident = self.submit_here(user, self.signed(user, script, **options))
        self.assertRegex(ident, r"^alpha\.\d+$")
        return ident

    def gate(self, name):
        """A job that waits for its gate, of any number of processors."""
        return self.gated_script(name).read_bytes()

    def uncharged(self, idents):
        self.settled()
        self.assertEqual([line["job"] for line in self.statement()["lines"] if line["kind"] == "charge" and line["job"] in idents], [])

    # ---- the attacks

    def test_a_job_that_can_never_run(self):
        """Of eight processors bob has six for himself, without an end. alice's job of four can never run, and says why;
        that it was first does not keep bob's job of two from a reservation, which her long one must respect."""
        self.operator("setres", "-n", "bobs", "-a", "chem", "alpha0[2-4]")
        self.addCleanup(self.operator, "releaseres", "bobs.0")
        seen = []

        @contextlib.contextmanager
        def attack():
            name = f"first{len(seen)}"
            first = self.submit("alice", self.gate(name), walltime_s=600)
            self.wait_here("alice", first, "Running")
            never = self.submit("alice", procs=4)
            wide = self.submit("bob", procs=2, change=lambda job: setattr(job.components[0], "hosts", "alpha01"))
            long = self.submit("alice", walltime_s=1800)
            yield
            told = self.detail("alice", never)
            seen.append((told.job.state, told.job.reserved_us, told.start_estimate_us))
            self.assertIn("reservation bobs.0, which has no end and does not admit it, leaves 2: it can never run", told.reason.text)
            self.assertGreater(self.detail("bob", wide).job.reserved_us, 0)
            self.assertEqual(self.detail("alice", long).job.start_us, 0)
            self.open_gate(name)
            for user, ident in (("bob", wide), ("alice", long)):
                self.wait_here(user, ident, "Completed")
            self.assertLess(self.detail("bob", wide).job.start_us, self.detail("alice", long).job.start_us)
            self.cancel("alice", never)

        self.beside(attack)
        self.assertEqual(set(seen), {("Idle", 0, 0)})

    def test_a_source_that_trickles(self):
        """The whole site waits for a file that never comes: no node is kept for it, and in the end it has failed."""
        ends, source = [], Dripper()
        self.addCleanup(source.stop)

        def stages(job):
            job.components[0].stage_in.add(url=f"http://127.0.0.1:{source.server_port}/drip", path="in/data")

        def act():
            ident = self.submit("alice", procs=8, walltime_s=3600, change=stages)
            job = self.wait_here("alice", ident, "Failed", "Completed", "Cancelled")
            ends.append((job.job.state, job.job.start_us, job.reason.code))
            self.assertIn("STAGERATEMIN", job.reason.text)
            return ident

        idents = self.beside(act)
        self.assertEqual(set(ends), {("Failed", 0, "StageIn")})
        self.uncharged(idents)

    def test_mistakes(self):
        """What the user got wrong ends the job at once, says so, and costs nothing; again and again."""
        mistakes = ((b"#!/bin/bsah\n", "names /bin/bsah, which does not exist"),
                    (b"#!/bin/sh\r\necho\r\n", "the script has DOS line ends"),
                    (b"#!/no/such/folder/python3\n", "names /no/such/folder/python3, which does not exist"),
                    (b"#!/etc\n", "names /etc, which"))
        seen = []

        def act():
            script, says = mistakes[len(seen) % len(mistakes)]
            ident = self.submit("alice", script)
            job = self.wait_here("alice", ident, "Failed", "Deferred", "Completed")
            seen.append((job.job.state, job.reason.code, says if says in job.reason.text else job.reason.text))
            return ident

        idents = self.beside(act)
        self.assertEqual(set(seen), {("Failed", "BadJob", says) for _, says in mistakes})
        self.uncharged(idents)


    def test_suspended_is_stopped(self):
        """What a thread of a job forked stops with it; so does what left its session. bob has the processor meanwhile."""
        place = self.job_dir()
        script = f"""#!/usr/bin/python3
import os, threading, time
def count(name):
    n = 0
    while True:
        n += 1
        with open(name + ".new", "w") as out:
            out.write(str(n))
        os.rename(name + ".new", name)
        time.sleep(0.01)
def fork(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            count(name)
        count(name + "-parent")
    threading.Event().wait()  # whose thread is gone is the first one's child
for n in range(3):
    thread = threading.Thread(target=fork, args=(f"{place}/forked{{n}}",))
    thread.start()
threading.Event().wait()
"""
        names = [f"forked{n}{what}" for n in range(3) for what in ("", "-parent")]

        def counts():
            return [int((place / name).read_text()) for name in names]

        def go_on():
            seen = counts()
            wait_for("all to go on", lambda: all(a > b for a, b in zip(counts(), seen)), 60)

        ident = self.submit("alice", script.encode(), procs=8, walltime_s=1800)
        wait_for("all to count", lambda: all((place / name).exists() for name in names), 60, self.grid.layout.log)
        go_on()

        def suspended():
            self.operator("mjobctl", "-s", ident)
            self.wait_here("alice", ident, "Suspended")
            stopped = counts()
            for _ in range(3):
                self.round()
            self.assertEqual(counts(), stopped)
            self.operator("mjobctl", "-r", ident)
            self.wait_here("alice", ident, "Running")
            go_on()

        for _ in range(2):
            suspended()
        self.cancel("alice", ident)
        wait_for("all to be gone", lambda: not self.grid.supervisors(), 60)
        gone = counts()
        self.round()
        self.assertEqual(counts(), gone)
        self.bob_lost_nothing("alpha")

    def test_what_a_job_says_of_itself(self):
        """A site's own door and the grid's hold a job's texts to the same bounds, with the same words."""
        meta = self.forge.contract.meta

        def called(count):
            return lambda job: setattr(job, "name", count * "n")

        for change, says in (
                (called(256), "the job's name has 256 bytes, allowed are 255"),
                (lambda job: setattr(job, "account", "a b"), "account: 'a b' may only have letters, digits, '.', '_' and '-'"),
                (lambda job: setattr(job.components[0], "class", "a b"),
                 "component main: class: 'a b' may only have letters, digits, '.', '_' and '-'"),
                (lambda job: job.components[0].args.extend(1025 * ["x"]), "component main: 1025 arguments, allowed are 1024"),
                (lambda job: job.components[0].env.append("WORD"), "component main: variable 1 is not NAME=value")):
            envelope = self.signed("alice", b"#!/bin/sh\n", change=change)
            self.assertEqual(self.submit_here("alice", envelope).partition(": ")[2], says)
            with self.forge.channel("meta", "user", "alice") as channel, self.assertRaises(grpc.RpcError) as refused:
                self.forge.call(channel, "nui.meta.v1.Meta", "Submit", meta.SubmitRequest(envelope=envelope), meta.SubmitReply, 60)
            self.assertEqual(refused.exception.details(), says)
        self.wait_here("alice", self.submit("alice", change=called(255)), "Completed")

    def test_what_can_never_be(self):
        """Jobs that wait for one that failed, and jobs whose deadline goes by, end with that reason, all of them at one
        moment; nothing is paid."""
        ends = []

        def waits(target):
            return lambda job: job.depends.add(kind="afterok", job_id=target)

        def late(job):
            job.deadline_us = int((time.time() + 64) * 1e6)

        @contextlib.contextmanager
        def attack():
            name = f"never{len(ends)}"
            fails = self.submit("alice", self.gated_script(name, code=1).read_bytes())
            idents = [self.submit("alice", change=waits(fails)) for _ in range(60)]
            idents += [self.submit("alice", change=late, procs=8) for _ in range(10)]
            self.operator("setres", "-n", "bobs", "-a", "chem", "-d", "10:00", "ALL")
            self.open_gate(name)
            yield
            for ident in idents:
                job = self.wait_here("alice", ident, "Failed", "Completed")
                ends.append((job.job.state, job.reason.code, job.job.start_us))
            self.operator("releaseres", "bobs.0")
            self.uncharged(idents)

        self.beside(attack)
        self.assertEqual(set(ends), {("Failed", "DependencyNeverMet", 0), ("Failed", "Deadline", 0)})


if __name__ == "__main__":
    main()
