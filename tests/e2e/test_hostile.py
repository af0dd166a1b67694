"""Attacks from outside, with another user's work going on beside each: it is not delayed and loses nothing.

A round of bob's work is a connection of his own to each daemon and a call on it. Its median while the attack
goes on is compared with the median before it, in the same run: the attack may add 100 ms at most.
"""
import resource
import socket
import statistics
import threading
import time

import grpc

from fixture import Forge, GridCase, layout, main, wait_for

ROUNDS = 15
DELAY_MAX_S = 0.1
SILENT = 1100  # more than all the places that a daemon has


class Attack(threading.Thread):
    """One act, again and again until the test has seen enough; what it says is kept."""

    def __init__(self, act):
        super().__init__(daemon=True)
        self.act, self.words, self.over = act, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            self.words.append(self.act())

    def __enter__(self):
        self.start()
        wait_for("the first blow", lambda: self.words or not self.is_alive(), 60)
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join(60)


class Hostile(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        cls.forge = Forge(cls.grid)
        from proto.nui.v1 import admin_pb2
        cls.admin = admin_pb2

    # ---- bob's work

    def round(self):
        """Whom the metascheduler takes bob for, and what the site's queue is: two connections, two calls."""
        meta = self.forge.contract.meta
        begun = time.monotonic()
        with self.forge.channel("meta", "user", "bob") as channel:
            reply = self.forge.call(channel, "nui.meta.v1.Meta", "WhoAmI", meta.WhoAmIRequest(), meta.WhoAmIReply)
        self.assertIn("/user/bob", reply.identity)
        with self.forge.channel("alpha", "user", "bob") as channel:
            queue = channel.unary_stream("/nui.local.v1.Admin/Queue", request_serializer=lambda m: m.SerializeToString(),
                                         response_deserializer=self.admin.QueueChunk.FromString)
            self.assertTrue(list(queue(self.admin.QueueRequest(), timeout=20)))
        return time.monotonic() - begun

    def median(self):
        return statistics.median(self.round() for _ in range(ROUNDS))

    def beside(self, attack):
        """bob's work before and beside it."""
        before = self.median()
        with attack:
            during = self.median()
        self.assertLess(during, before + DELAY_MAX_S, f"{before:.3f} s before, {during:.3f} s beside the attack")

    # ---- the attacks

    def test_connections_that_say_nothing(self):
        before = self.median()
        silent = []
        try:
            for daemon in ("alpha", "meta"):
                for _ in range(SILENT):
                    silent.append(socket.create_connection(("127.0.0.1", self.grid.ports[daemon]), 10))
            during = self.median()
            self.nui(layout.OPERATOR, "balance", "-A", "phys")  # and the bank is there for its people
        finally:
            for one in silent:
                one.close()
        self.assertLess(during, before + DELAY_MAX_S)
        self.assertIn("rpc refused peer=\"unknown\" from=\"address 127.0.0.1\"",
                      self.grid.daemons["alpha"].log.read_text())

    def submit_here(self, user, envelope):
        """What alpha says to a job that is handed in on the spot."""
        with self.forge.channel("alpha", "user", user) as channel:
            try:
                return self.forge.call(channel, "nui.local.v1.Admin", "SubmitJob",
                                       self.admin.SubmitJobRequest(envelope=envelope),
                                       self.admin.SubmitJobReply, 60).job_id
            except grpc.RpcError as error:
                return f"{error.code().name}: {error.details()}"

    def test_a_host_list_of_a_million(self):
        job = self.forge.job("alice", "phys")
        job.components[0].hosts = "n[1-1048570]"
        envelope = self.forge.sign("alice", job.SerializeToString())
        attack = Attack(lambda: self.submit_here("alice", envelope))
        self.beside(attack)
        self.assertEqual({w.split(":")[0] for w in attack.words}, {"RESOURCE_EXHAUSTED"}, attack.words[:3])

    def test_two_megabytes_of_nothing(self):
        """A body that would unpack to hundreds of megabytes, under a signature that is none."""
        envelope = self.forge.sign("alice", b"")
        envelope.body = b"\x32\x00" * 950_000
        attack = Attack(lambda: self.submit_here("alice", envelope))
        self.beside(attack)
        self.assertNotIn("alpha.", "".join(attack.words))

    def test_a_report_with_a_torn_character(self):
        """A site's word is taken without it: seen, it was refused for ever, and the site was down."""
        meta = self.forge.contract.meta
        with self.forge.channel("meta", "site", "gamma") as channel:
            stub = channel.unary_unary("/nui.meta.v1.Meta/Report", request_serializer=lambda b: b,
                                       response_deserializer=meta.ReportReply.FromString)
            good = meta.SiteReport(site="gamma", server="x", features=["cafX"]).SerializeToString()
            self.assertEqual(stub(good.replace(b"cafX", b"caf\xc3"), timeout=20).metascheduler, "meta")
        self.assertIn("text_mended", self.grid.daemons["meta"].log.read_text())

    def test_a_signed_job_is_no_bearer_cheque(self):
        envelope = self.forge.sign("alice", self.forge.job("alice", "phys").SerializeToString())
        self.assertRegex(self.submit_here("bob", envelope), "UNAUTHENTICATED: the job is signed by .*alice")
        first = self.submit_here("alice", envelope)
        self.assertRegex(first, r"^alpha\.\d+$")
        self.assertEqual(self.submit_here("alice", envelope), first)
        accepted, text = self.forge.submit_to_site("alpha", envelope)
        self.assertFalse(accepted)
        self.assertIn("replayed", text)
        local = self.forge.contract.local
        for method in ("Job", "Cancel"):
            with self.assertRaises(grpc.RpcError) as caught:
                self.forge.as_meta("alpha", method, local.JobRequest(job_id=first), local.JobInfo)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED)


if __name__ == "__main__":
    main()
