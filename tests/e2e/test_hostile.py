"""Attacks on the daemons from outside, with bob's work going on beside each: it is not delayed and loses nothing
(beside.py)."""
import contextlib
import os
import pwd
import re
import resource
import socket
import subprocess
import sys
import unittest
import urllib.request

import grpc

from beside import ADMIN, Beside
from fixture import layout, main, wait_for

SILENT = 1100  # more than all the places that a daemon has
KNOCKING = 64  # of one address, whose handshakes are not over (rpcserver.h)
UNREAD = 40, 8  # connections, and calls on each, whose answers are not read
READ_AT_ONCE = 16  # of one account's files (local/svc/files/fetch.c)
UNREAD_EACH = 24 << 20  # bytes that may wait for one user (rpcserver.h)
# A call on a site's own socket, as the account that this runs as: the request on stdin.
AS_ACCOUNT = """
import sys, grpc
with grpc.insecure_channel("unix:" + sys.argv[1]) as channel:
    stub = channel.unary_unary(sys.argv[2], request_serializer=lambda b: b, response_deserializer=lambda b: b)
    try:
        stub(sys.stdin.buffer.read(), timeout=600)
        print("taken")
    except grpc.RpcError as error:
        print(error.code().name + ": " + error.details())
"""


def is_open(connection):
    """Whether its other end has not closed it."""
    try:
        return connection.recv(1, socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Hostile(Beside):
    more = {"alpha": f"ADMIN1 root nui://{layout.GRID}/user/alice\nSTAGEHOSTS 127.0.0.1/32\nMETRICS 127.0.0.1:0\n"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))

    # ---- bytes and connections

    def test_connections_that_say_nothing(self):
        @contextlib.contextmanager
        def attack():
            silent = []
            try:
                for daemon in ("alpha", "meta"):
                    mine = [socket.create_connection(("127.0.0.1", self.grid.ports[daemon]), 10) for _ in range(SILENT)]
                    silent.extend(mine)
                    wait_for("the oldest to give way", lambda mine=mine: sum(map(is_open, mine)) <= KNOCKING, 60)
                yield
                self.nui(layout.OPERATOR, "balance", "-A", "phys")  # and the bank is there for its people
            finally:
                for one in silent:
                    one.close()
        self.beside(attack)
        self.assertRegex(self.grid.daemons["alpha"].log.read_text(), r'rpc refused peer="unknown" from="address 127\.0\.0\.1" '
                         'reason="too many TLS handshakes are not finished: the oldest gives way"')

    def test_readers_of_metrics_that_say_nothing(self):
        """They hold all places of the plain port, one after another: who reads it waits for some of them, and nobody else is
        touched."""
        port = int(re.findall(r" metrics listen=\S+ port=(\d+)", self.grid.daemons["alpha"].log.read_text())[-1])

        @contextlib.contextmanager
        def attack():
            with contextlib.ExitStack() as opened:
                for n in range(200):
                    one = opened.enter_context(socket.create_connection(("127.0.0.1", port), 10))
                    one.sendall(b"GET /metrics HTTP/1.1\r\nHost:" if n % 2 else b"")
                yield
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=600) as page:
                    self.assertIn(b"nui_", page.read())
        self.beside(attack)

    def test_answers_that_nobody_reads(self):
        """alice asks for her job's output again and again, and reads none of it: seen, all of it waited in the daemon's
        memory. What waits for her is bounded, whoever asks beyond that is refused and told why, and bob is not."""
        local = self.forge.contract.local
        mine = self.submit_here("alice", self.signed("alice", b"#!/bin/sh\nhead -c 4000000 /dev/zero\n"))
        self.wait_here("alice", mine, "Completed")
        connections, calls = UNREAD
        taken, over = [], []

        @contextlib.contextmanager
        def attack():
            # each of its own connection; of an answer next to nothing is taken off the daemon's hands
            options = (("grpc.use_local_subchannel_pool", 1), ("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0))
            with contextlib.ExitStack() as opened:
                asked = []
                for _ in range(connections):
                    channel = opened.enter_context(self.forge.channel("alpha", "user", "alice", options))
                    stub = channel.unary_stream("/nui.local.v1.Local/Output", request_serializer=lambda m: m.SerializeToString(),
                                                response_deserializer=bytes)
                    asked += [stub(local.OutputRequest(job_id=mine), timeout=600) for _ in range(calls)]

                def refused():
                    return [call.details() for call in asked if not call.is_active()]
                # an answer of which something waits has a quarter of a MiB there, and stops
                wait_for("what is too much to be refused",
                         lambda: (len(asked) - len(refused())) << 18 <= UNREAD_EACH + (4 << 20), 60, self.grid.daemons["alpha"].log)
                yield
                taken.append(len(asked) - len(refused()))
                over.extend(refused())
        self.beside(attack)
        self.assertGreater(taken[-1], UNREAD_EACH >> 20)  # most of her share was hers
        self.assertEqual(set(over), {"too many bytes of answers wait to be read: read them first"})
        self.assertRegex(self.grid.daemons["alpha"].log.read_text(),
                         r'rpc refused peer="[^"]*user/alice".*answers that it does not read')

    def test_files_without_an_end(self):
        """alice wants the last byte of a file of 4 TB that has nothing in it, again and again: all of it is hashed for her, a
        piece at a time between others' calls, and only so many at once. The same of a directory with too much in it."""
        local = self.forge.contract.local
        script = b"#!/bin/sh\ntruncate -s 4T big\nmkdir many\ncd many\nseq 20000 | xargs touch\n"
        mine = self.submit_here("alice", self.signed("alice", script))
        self.wait_here("alice", mine, "Completed")
        over = []

        @contextlib.contextmanager
        def attack():
            with contextlib.ExitStack() as opened:
                channel = opened.enter_context(self.forge.channel("alpha", "user", "alice"))
                stub = channel.unary_stream("/nui.local.v1.Local/Fetch", request_serializer=lambda m: m.SerializeToString(),
                                            response_deserializer=bytes)
                asked = [stub(local.FetchRequest(job_id=mine, path="big", offset=(4 << 40) - 1), timeout=600) for _ in range(60)]
                for call in asked:
                    opened.callback(call.cancel)

                def refused():
                    return [call.details() for call in asked if not call.is_active()]
                wait_for("what is too much to be refused", lambda: len(refused()) >= len(asked) - READ_AT_ONCE, 60,
                         self.grid.daemons["alpha"].log)
                yield
                over.append(refused())
        self.beside(attack)
        self.assertEqual([len(words) for words in over], [60 - READ_AT_ONCE] * len(over))
        self.assertEqual({word for words in over for word in words}, {"16 of your files are being read here: one after another"})
        with self.forge.channel("alpha", "user", "alice") as channel:
            files = self.forge.call(channel, "nui.local.v1.Local", "Files", local.FilesRequest(job_id=mine), local.FilesReply, 60)
        self.assertEqual((len(files.files), files.more), (4096, True))

    def test_many_who_listen(self):
        """alice follows the output of one job 600 times, and watches it 200 times: each has a file open, and is told of each
        change. She has so many of either, and bob is not slower."""
        local, meta = self.forge.contract.local, self.forge.contract.meta
        name = "listened"
        ident = self.grid.submit("alice", "-A", "phys", "-t", "30:00", "-n", 1, "--site", "alpha", self.gated_script(name))
        self.wait_state(ident, ("Running",))
        there = self.status("alice", ident)["components"][0]["site_job_id"]
        over = []

        @contextlib.contextmanager
        def attack():
            with contextlib.ExitStack() as opened:
                asked = {"alpha": [], "meta": []}
                for daemon, method, request, connections in (
                        ("alpha", "/nui.local.v1.Local/Output", local.OutputRequest(job_id=there, follow=True), 3),
                        ("meta", "/nui.meta.v1.Meta/Watch", meta.JobRequest(grid_job_id=ident), 1)):
                    for _ in range(connections):  # of each its own
                        channel = opened.enter_context(self.forge.channel(daemon, "user", "alice",
                                                                          (("grpc.use_local_subchannel_pool", 1),)))
                        stub = channel.unary_stream(method, request_serializer=lambda m: m.SerializeToString(),
                                                    response_deserializer=bytes)
                        asked[daemon] += [stub(request, timeout=600) for _ in range(200)]
                for call in asked["alpha"] + asked["meta"]:
                    opened.callback(call.cancel)

                def refused(daemon):
                    return [call.details() for call in asked[daemon] if not call.is_active()]
                for daemon, least in (("alpha", 600 - 256), ("meta", 200 - 64)):
                    wait_for("what is too much to be refused", lambda d=daemon, n=least: len(refused(d)) >= n, 60, self.grid.layout.log)
                yield
                over.extend(refused("alpha") + refused("meta"))
        self.beside(attack)
        self.assertEqual(set(over), {"you follow 256 outputs here already", "64 calls watch the job already"})
        self.open_gate(name)
        self.wait_state(ident, ("Completed",))

    def test_a_host_list_of_a_million(self):
        envelope = self.signed("alice", b"#!/bin/sh\n", change=lambda job: setattr(job.components[0], "hosts",
                                                                                 "n[1-1048570]"))
        words = self.beside(lambda: self.submit_here("alice", envelope))
        self.assertEqual({w.split(":")[0] for w in words}, {"RESOURCE_EXHAUSTED"}, words[:3])

    def test_two_megabytes_of_nothing(self):
        """A body that would unpack to hundreds of megabytes, under a signature that is none."""
        envelope = self.forge.sign("alice", b"")
        envelope.body = b"\x32\x00" * 950_000
        words = self.beside(lambda: self.submit_here("alice", envelope))
        self.assertNotIn("alpha.", "".join(words))

    # ---- text

    def test_a_report_with_a_torn_character(self):
        """A site's word is taken without it: seen, it was refused for ever, and the site was down."""
        meta = self.forge.contract.meta
        with self.forge.channel("meta", "site", "gamma") as channel:
            stub = channel.unary_unary("/nui.meta.v1.Meta/Report", request_serializer=lambda b: b,
                                       response_deserializer=meta.ReportReply.FromString)
            good = meta.SiteReport(site="gamma", server="x", features=["cafX"]).SerializeToString()
            self.assertEqual(stub(good.replace(b"cafX", b"caf\xc3"), timeout=600).metascheduler, "meta")
        self.assertIn("text_mended", self.grid.daemons["meta"].log.read_text())

    def grid_job(self, user, body):
        """What the metascheduler says to these bytes under a user's signature."""
        meta = self.forge.contract.meta
        with self.forge.channel("meta", "user", user) as channel:
            try:
                return self.forge.call(channel, "nui.meta.v1.Meta", "Submit",
                                       meta.SubmitRequest(envelope=self.forge.sign(user, body)), meta.SubmitReply, 60).grid_job_id
            except grpc.RpcError as error:
                return f"{error.code().name}: {error.details()}"

    def torn_jobs(self):
        """Bodies with half a character in each text that a user writes; they have the same length as without."""
        def one(change):
            job = self.forge.job("alice", "phys", b"#!/bin/sh\ntrue\n")
            job.components[0].sites.append("alpha")
            change(job, job.components[0])
            body = job.SerializeToString()
            self.assertEqual(body.count(b"cafX"), 1)
            return body.replace(b"cafX", b"caf\xc3")
        for name in ("name", "account", "notify_url", "quote_id"):
            yield name, one(lambda job, _, name=name: setattr(job, name, "cafX"))
        for name in ("class", "qos", "stdout_name", "reservation", "nodeset", "hosts"):
            yield name, one(lambda _, part, name=name: setattr(part, name, "cafX"))
        for name in ("args", "env", "partitions"):
            yield name, one(lambda _, part, name=name: getattr(part, name).append("A=cafX" if name == "env" else "cafX"))
        yield "feature", one(lambda _, part: part.reqs[0].features.append("cafX"))
        yield "url", one(lambda _, part: part.stage_in.add(url="http://127.0.0.1:1/cafX", path="x"))
        yield "dependency", one(lambda job, _: job.depends.add(kind="afterok", job_id="cafX"))

    def test_texts_of_jobs(self):
        """Half a character in any text of a signed job is refused where it arrives; whole ones that a reason's end
        falls into are cut before it, and the site's report goes on."""
        for name, body in self.torn_jobs():
            with self.subTest(name=name):
                self.assertRegex(self.grid_job("alice", body), "^INVALID_ARGUMENT: .*UTF-8")
                self.assertRegex(self.submit_here("alice", self.forge.sign("alice", body)), "^INVALID_ARGUMENT: .*UTF-8")

        def told(ident):
            files = self.grid.json("alice", "status", ident)["transfers"]
            return "éééé" in str(files)

        def act():
            """Jobs that wait for a source whose long name is all accents, an odd number of bytes further on each: the
            metascheduler hears why."""
            for shift in range(2):
                job = self.forge.job("alice", "phys", b"#!/bin/sh\ntrue\n")
                job.components[0].sites.append("alpha")
                job.components[0].stage_in.add(url=f"http://127.0.0.1:1/{'x' * shift}{'é' * 480}", path="in")
                ident = self.grid_job("alice", job.SerializeToString())
                self.assertRegex(ident, r"^grid\.\d+$")
                wait_for("its words", lambda: told(ident), 60, self.grid.layout.log, 0.5)
                self.nui("alice", "cancel", ident)

        self.beside(act)
        states = {row["site"]: row["state"] for row in self.grid.json(layout.OPERATOR, "sites")}
        self.assertEqual(set(states.values()), {"Up"})
        ident = self.grid.submit("bob", "-A", "chem", "-t", "1:00", "-n", 1, "--site", "alpha",
                                 self.write("bob.sh", "#!/bin/sh\necho bob\n"))
        self.wait_state(ident, ("Completed",), who="bob")

    # ---- who may do what

    def test_an_administrator_is_not_root(self):
        """alice is ADMIN1 at alpha: she changes the policy, but neither what runs there, nor as whom, nor whom to
        believe, in whatever way she says it."""
        evil = self.job_dir() / "evil.sh"
        evil.write_text(f"#!/bin/sh\nid -un > {self.job_dir()}/evil.ran\n")
        evil.chmod(0o755)
        keys = [f"{key} {value}" for key, value in (
            ("NOTIFICATIONPROGRAM", evil), ("FEEDBACKPROGRAM", evil), ("CHECKPOINTHOOK", evil), ("SUPERVISE", evil), ("GRIDMAP", evil), ("ADMIN1", "bob"),
            ("ADMIN2", "bob"), ("ADMIN3", "bob"), ("BANK", "127.0.0.1:1"), ("META", "127.0.0.1:1"), ("METAGROUP", "evil"), ("GRIDCFG[evil]", "MAXPROC=9"),
            ("PEERCAP[evil]", "HOLDS=9"),
            ("NOTIFICATIONACCOUNT", "root"), ("CHECKPOINTACCOUNT", "root"), ("NOTIFICATIONURL", "http://127.0.0.1:1/"),
            ("STAGEROOT", "/"), ("STAGEHOSTS", "127.0.0.1"), ("STAGECREDENTIALS", evil), ("RMCFG[x]", f"BIN={evil}"),
            ("RMCFG[x]", f"ADAPTER={evil}"), ("RMCFG[x]", f"JOBSTARTURL=exec://{evil}"), ("RMCFG[x]", "ENV=LD_PRELOAD=/tmp/x"),
            ("STATEDIR", "/"), ("JOBDIR", "/"), ("LOGFILE", "/etc/passwd"), ("KEY", evil), ("CERT", evil), ("CA", evil),
            ("CRL", evil), ("SOCKET", "/tmp/x"), ("LISTEN", "0.0.0.0:1"), ("STATDIR", "/etc"))]
        keys += [keys[0].lower(), " \t" + keys[0], "RESERVATIONDEPTH[0] 1\n" + keys[0], "RESERVATIONDEPTH[0] 1\r" + keys[0],
                 "RESERVATIONDEPTH[0] \\\n1\n" + keys[0], "RESERVATIONDEPTH[0] 1 #\n" + keys[0],
                 f"NOTIFICATIONPROGRAM=\"{evil}\"", "SERVERMODE SIMULATION\n" + keys[0],
                 "RESERVATIONDEPTH[0] 1\nRESERVATIONDEPTH[0] 2"]  # nor what she may change, beside what she says in the log
        before = self.here("alice", "Config", self.admin.ConfigRequest(all=True), self.admin.ConfigReply)
        said = {}

        def change(line):
            try:
                return self.here("alice", "ChangeParam", self.admin.ChangeParamRequest(line=line), self.admin.ChangeReply)
            except grpc.RpcError as error:
                return error.code().name

        def act():
            line = keys[len(said) % len(keys)]
            said.setdefault(line, change(line))
            return self.wait_here("alice", self.submit_here("alice", self.signed("alice", b"#!/bin/sh\nexit 3\n")), "Failed")

        self.beside(act)
        said.update((line, change(line)) for line in keys)
        self.assertLessEqual(set(map(str, said.values())), {"PERMISSION_DENIED", "INVALID_ARGUMENT", "FAILED_PRECONDITION"}, said)
        self.assertEqual(self.here("alice", "Config", self.admin.ConfigRequest(all=True), self.admin.ConfigReply), before)
        self.assertFalse((self.job_dir() / "evil.ran").exists())
        change("RESERVATIONDEPTH[0] 3")
        self.assertNotEqual(self.here("alice", "Config", self.admin.ConfigRequest(all=True), self.admin.ConfigReply), before)

    def on_the_socket(self, user, method, request):
        account = layout.account_of(user)
        self.grid.layout.run.chmod(0o711)
        done = subprocess.run(["setpriv", "--reuid", account, "--regid", str(pwd.getpwnam(account).pw_gid), "--clear-groups",
                               sys.executable, "-c", AS_ACCOUNT, self.grid.layout.run / "alpha.sock", f"/{ADMIN}/{method}"],
                              input=request.SerializeToString(), capture_output=True, timeout=600, cwd="/")
        return done.stdout.decode().strip() or done.stderr.decode()

    def test_a_signed_job_is_no_bearer_cheque(self):
        """Who got hold of alice's envelope can do nothing with it; nor with her job's number, her uuid, or a hold of hers."""
        envelope = self.signed("alice", self.gated_script("cheque").read_bytes())
        other = self.forge.contract.common.Job.FromString(envelope.body)
        other.components[0].script = b"#!/bin/sh\necho another\n"
        other = self.forge.sign("alice", other.SerializeToString())
        request = self.admin.SubmitJobRequest(envelope=envelope)
        stolen = self.signed("alice", b"#!/bin/sh\necho stolen\n")

        def act():
            return (self.submit_here("bob", stolen),
                    self.on_the_socket("bob", "SubmitJob", self.admin.SubmitJobRequest(envelope=stolen)))

        for words in self.beside(act):
            self.assertRegex(words[0], "UNAUTHENTICATED: the job is signed by .*alice")
            self.assertRegex(words[1], "UNAUTHENTICATED: the job is signed by .*alice.*, whose account here is "
                             f"{layout.account_of('alice')}, but {layout.account_of('bob')} sends it")
        self.assertEqual(self.on_the_socket("alice", "SubmitJob", request), "taken")
        first = self.submit_here("alice", envelope)
        self.assertRegex(first, r"^alpha\.\d+$")
        self.assertRegex(self.submit_here("alice", other), "^ALREADY_EXISTS: .*other content was taken as " + first)
        accepted, text = self.forge.submit_to_site("alpha", envelope)
        self.assertFalse(accepted)
        self.assertIn("replayed", text)
        self.open_gate("cheque")
        self.wait_here("alice", first, "Completed")
        self.assertEqual(self.submit_here("alice", envelope), first)
        self.assertEqual(len(wait_for("its charge", lambda: self.charges(first), 60)), 1)

    def test_a_metascheduler_and_local_jobs(self):
        """Jobs of msub are nobody's but their owner's: a metascheduler of this site neither sees nor changes one."""
        ident = self.submit_here("alice", self.signed("alice", self.gated_script("local").read_bytes(), walltime_s=600))
        self.wait_here("alice", ident, "Running")
        local = self.forge.contract.local
        calls = [(method, request(job_id=ident), reply) for method, request, reply in (
            ("Job", local.JobRequest, local.JobInfo), ("Cancel", local.JobRequest, local.CancelReply),
            ("Hold", local.HoldJobRequest, local.HoldJobReply), ("Restage", local.RestageRequest, local.RestageReply))]

        def act():
            codes = []
            for method, request, reply in calls:
                try:
                    codes.append(str(self.forge.as_meta("alpha", method, request, reply)))
                except grpc.RpcError as error:
                    codes.append(error.code().name)
            with self.forge.channel("alpha", "meta", "meta") as channel:
                stub = channel.unary_stream("/nui.local.v1.Local/Output", request_serializer=lambda m: m.SerializeToString(),
                                            response_deserializer=bytes)
                try:
                    codes.append(str(list(stub(local.OutputRequest(job_id=ident), timeout=600))))
                except grpc.RpcError as error:
                    codes.append(error.code().name)
            return tuple(codes)

        self.assertEqual(set(self.beside(act)), {("PERMISSION_DENIED",) * 5})
        self.assertEqual(self.detail("alice", ident).job.state, "Running")
        self.open_gate("local")
        self.wait_here("alice", ident, "Completed")

    def test_a_metascheduler_that_nobody_named(self):
        """Of the same authority, with a job that its user did sign: no site speaks to it, before and after a restart."""
        mine = self.grid.layout.id_dir("meta", "stranger")
        if not mine.exists():
            self.grid.nui_ca("issue", self.grid.layout.ca, "meta", "stranger", "--out", mine)
        local = self.forge.contract.local
        envelope = self.signed("alice", b"#!/bin/sh\ntrue\n")
        calls = {method.name: getattr(local, method.input_type.name)()
                 for method in local.DESCRIPTOR.services_by_name["Local"].methods
                 if method.name not in ("Output", "Files", "Fetch", "Put")}  # which no metascheduler has
        for method in ("Query", "Prepare", "Submit"):
            calls[method].envelope.CopyFrom(envelope)

        def act():
            words = set()
            with self.forge.channel("alpha", "meta", "stranger") as channel:
                for method, request in calls.items():
                    stub = channel.unary_unary(f"/nui.local.v1.Local/{method}",
                                               request_serializer=lambda m: m.SerializeToString(),
                                               response_deserializer=bytes)
                    try:
                        words.add(f"{method}: {stub(request, timeout=600)}")
                    except grpc.RpcError as error:
                        words.add(f"{error.code().name}: {error.details()}")
            return tuple(words)

        refusal = ("PERMISSION_DENIED: site alpha does not serve metascheduler stranger: none of META has that name, and "
                   "no METAGROUP, GRIDCFG or PEERCAP says it")
        self.assertIn("Submit", calls)
        self.assertEqual(set(self.beside(act)), {(refusal,)})
        meta, alpha = self.grid.daemons["meta"], self.grid.daemons["alpha"]
        meta.kill()  # whoever META names need not be there for that
        try:
            alpha.stop()
            alpha.start()
            self.assertEqual(act(), (refusal,))
        finally:
            meta.start()
            self.grid.wait_serving()
        self.assertIn("stranger", alpha.log.read_text())
        self.assertEqual(self.submit_here("alice", envelope)[:6], "alpha.")  # it is not known here


if __name__ == "__main__":
    main()
