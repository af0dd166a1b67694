"""Who is who: forged, foreign, expired, wrong-kind and revoked, each refused by the daemon itself."""
import os
import re
import shutil
import sqlite3
import subprocess
import time

from fixture import Forge, GridCase, layout, main, wait_for

EXPIRED_CONFIG = """[ca]
default_ca = grid
[grid]
database = {dir}/index.txt
new_certs_dir = {dir}
certificate = {ca}/ca.pem
private_key = {ca}/ca.key
rand_serial = yes
default_md = sha256
policy = any
[any]
organizationName = supplied
organizationalUnitName = supplied
commonName = supplied
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = clientAuth
subjectAltName = URI:{uri}
"""


class Security(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.forge = Forge(cls.grid)
        for site in cls.grid.sites:  # which their sites do speak to: what are they refused then?
            path = cls.grid.layout.config(site)
            path.write_text(path.read_text() + "PEERCAP[rogue] HOLDS=1024\nPEERCAP[greedy] HOLDS=1024\n")
            cls.grid.daemons[site].stop()
            cls.grid.daemons[site].start()
        cls.grid.wait_serving()

    def refused_by_alpha(self, envelope, words):
        before = self.grid.nui("alice", "jobs", "--json").stdout
        accepted, text = self.forge.submit_to_site("alpha", envelope)
        self.assertFalse(accepted, text)
        self.assertRegex(text, words)
        self.assertEqual(self.grid.nui("alice", "jobs", "--json").stdout, before)
        self.assert_nothing_held()

    def assert_nothing_held(self):
        self.assertEqual(self.balance()["held"], 0)

    def config_with(self, name, like="alice", **keys):
        """A configuration like that of someone, with keys replaced."""
        lines = self.grid.layout.config(like).read_text().splitlines()
        for key, value in keys.items():
            lines = [f"{key} {value}" if line.split(" ")[0] == key else line for line in lines]
        self.grid.layout.config(name).write_text("\n".join(lines) + "\n")

    # ---- envelopes

    def test_an_honest_envelope_is_accepted_so_the_refusals_mean_something(self):
        body = self.forge.job("alice", "phys").SerializeToString()
        accepted, text = self.forge.submit_to_site("alpha", self.forge.sign("alice", body),
                                                   "grid.900001")
        self.assertTrue(accepted, text)
        self.settled()

    def test_changed_body(self):
        body = self.forge.job("alice", "phys").SerializeToString()
        envelope = self.forge.sign("alice", body)
        envelope.body = body.replace(b"echo forged", b"echo FORGED")
        self.refused_by_alpha(envelope, "(?i)signature")

    def test_changed_signature(self):
        envelope = self.forge.sign("alice", self.forge.job("alice", "phys").SerializeToString())
        envelope.signature = envelope.signature[:-1] + bytes([envelope.signature[-1] ^ 1])
        self.refused_by_alpha(envelope, "(?i)signature")

    def test_bob_signs_for_alice(self):
        body = self.forge.job("alice", "phys").SerializeToString()
        self.refused_by_alpha(self.forge.sign("bob", body), "(?i)sign|submitter|bob")

    def test_foreign_authority(self):
        other = self.grid.layout.work / "other-ca"
        self.grid.nui_ca("init", other, "--grid", layout.GRID)
        self.grid.nui_ca("issue", other, "user", "alice", "--out", self.grid.layout.ids / "user-fake")
        body = self.forge.job("alice", "phys").SerializeToString()
        self.refused_by_alpha(self.forge.sign("fake", body), "(?i)certificate")

    def test_not_in_the_gridmap(self):
        self.grid.nui_ca("issue", self.grid.layout.ca, "user", "mallory", "--out",
                         self.grid.layout.id_dir("user", "mallory"))
        body = self.forge.job("mallory", "phys").SerializeToString()
        self.refused_by_alpha(self.forge.sign("mallory", body), "(?i)gridmap|mapped|mapfile|account")

    def test_expired_job(self):
        job = self.forge.job("alice", "phys")
        job.created_us -= 7200 * 10**6
        job.expires_us -= 7200 * 10**6
        self.refused_by_alpha(self.forge.sign("alice", job.SerializeToString()), "(?i)expired|past")

    def test_a_refusal_fences_whoever_led_before(self):
        """Of a group: what the leader before has sent comes late, after the site denied the job to the one that
        leads it now, and then perhaps went elsewhere."""
        job = self.forge.job("alice", "phys")
        job.components[0].sites.append("beta")
        envelope = self.forge.sign("alice", job.SerializeToString())
        said = [self.forge.submit_to_site("alpha", envelope, "grid.900005", epoch=epoch)[1] for epoch in (2, 1, 3)]
        self.assertRegex(said[0], "^Denied: the job does not allow")
        self.assertRegex(said[1], "^ABORTED: epoch 1 is older than 2")
        self.assertRegex(said[2], "^Denied: ")

    def test_a_question_is_no_job(self):
        """What is signed for an estimate: no metascheduler, site or bank takes it for a job."""
        job = self.forge.job("alice", "phys")
        job.question = True
        envelope = self.forge.sign("alice", job.SerializeToString())
        meta, bank = self.forge.contract.meta, self.forge.contract.bank
        self.refused_by_alpha(envelope, "question only")
        hold = bank.HoldRequest(key=bytes(16), envelope=envelope, site_job_id="alpha.9001", procs=1, walltime_us=1000000)
        for who, daemon, service, method, request, reply in (
                (("user", "alice"), "meta", "meta.v1.Meta", "Submit", meta.SubmitRequest(envelope=envelope), meta.SubmitReply),
                (("site", "alpha"), "bank", "bank.v1.Bank", "Hold", hold, bank.HoldReply)):
            with self.subTest(daemon), self.forge.channel(daemon, *who) as channel:
                with self.assertRaisesRegex(Exception, "question only"):
                    self.forge.call(channel, f"nui.{service}", method, request, reply)
        self.assert_nothing_held()

    def test_a_site_that_was_only_asked(self):
        """It has the signed job, but not the hand-over; the one that the chosen site has is worth nothing to it."""
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha,gamma", "-t", 60, "--hold",
                                 self.write("given.sh", "#!/bin/sh\necho given\n"))
        job = self.wait_state(ident, ("Queued",))
        given = job["components"][0]["site"]
        other = {"alpha": "gamma", "gamma": "alpha"}[given]
        with sqlite3.connect(f"file:{self.grid.layout.state}/{given}/local.db?mode=ro", uri=True) as db:
            packed, part = db.execute("SELECT bytes, component FROM envelope JOIN job USING (number) WHERE "
                                      "grid_job_id = ?", (ident,)).fetchone()
        bank, common = self.forge.contract.bank, self.forge.contract.common
        envelope = common.Envelope.FromString(packed)
        self.assertEqual(envelope.handover.metascheduler, "meta")
        shown = common.Envelope.FromString(packed)
        shown.ClearField("handover") # as it came with QUERY
        for who, what, words in ((other, shown, f"no metascheduler has handed component {part} of this job over to site {other}"),
                                 (other, envelope, f"the hand-over is not for component {part} of this job at site {other}"),
                                 (given, shown, f"no metascheduler has handed component {part} of this job over to site {given}")):
            hold = bank.HoldRequest(key=os.urandom(16), envelope=what, site_job_id=f"{who}.9002", component=part,
                                    procs=1, walltime_us=60_000_000)
            with self.subTest(who, words=words), self.forge.channel("bank", "site", who) as channel:
                with self.assertRaisesRegex(Exception, re.escape(words)):
                    self.forge.call(channel, "nui.bank.v1.Bank", "Hold", hold, bank.HoldReply)
        self.assert_nothing_held()
        self.nui("alice", "releasehold", "-u", ident)
        self.wait_state(ident, ("Completed",))

    def test_a_replayed_job(self):
        """A rogue metascheduler has the envelope of a job that ran: the site where it did knows it; elsewhere
        the bank does."""
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha,gamma", "-t", 60,
                                 self.write("once.sh", "#!/bin/sh\necho once\n"))
        self.wait_state(ident, ("Completed",))
        self.settled()
        paid = self.balance()["settled"]
        ran = self.status("alice", ident)["components"][0]["site"]
        other = {"alpha": "gamma", "gamma": "alpha"}[ran]
        with sqlite3.connect(f"file:{self.grid.layout.state}/{ran}/local.db?mode=ro", uri=True) as db:
            packed, part = db.execute("SELECT bytes, component FROM envelope JOIN job USING (number) WHERE "
                                      "grid_job_id = ?", (ident,)).fetchone()
        envelope = self.forge.contract.common.Envelope.FromString(packed)
        self.grid.nui_ca("issue", self.grid.layout.ca, "meta", "rogue", "--out",
                         self.grid.layout.id_dir("meta", "rogue"))
        for meta, name in (("rogue", "grid.1"), ("rogue", ident), ("meta", "grid.900003")):
            accepted, text = self.forge.submit_to_site(ran, envelope, name, meta, part)
            self.assertFalse(accepted)
            self.assertIn(f"taken here as {ident} of metascheduler meta", text)
        accepted, here = self.forge.submit_to_site(other, envelope, "grid.1", "rogue", part)
        self.assertTrue(accepted, here)
        local = self.forge.contract.local

        def bank_refused():
            job = self.forge.as_meta(other, "Job", local.JobRequest(job_id=here), local.JobInfo, "rogue")
            return job if "BankDenied" in job.reason.code else None
        job = wait_for("the bank to refuse the hold", bank_refused, 60)
        self.assertIn(f"the hand-over is not for component {part} of this job at site {other}", job.reason.text)
        self.forge.as_meta(other, "Cancel", local.JobRequest(job_id=here), local.CancelReply, "rogue")
        self.assertEqual(self.balance()["settled"], paid)
        self.assert_nothing_held()

    def test_one_job_at_three_sites(self):
        """A rogue metascheduler hands the job that it was given to one site after the other, under one name: it
        runs at one, is paid for once, and the others say why not, also when it has ended well."""
        self.settled()
        paid = self.balance()["settled"]
        self.grid.nui_ca("issue", self.grid.layout.ca, "meta", "greedy", "--out",
                         self.grid.layout.id_dir("meta", "greedy"))
        with open(self.gated_script("thrice"), "rb") as script:
            envelope = self.forge.sign("alice", self.forge.job("alice", "phys",
                                                               script.read()).SerializeToString())
        local, names = self.forge.contract.local, {}

        def hand(site):
            accepted, names[site] = self.forge.submit_to_site(site, self.forge.hand_over(envelope, site, "greedy"),
                                                              "grid.7", "greedy")
            self.assertTrue(accepted, names[site])

        def said(code):
            jobs = {site: self.forge.as_meta(site, "Job", local.JobRequest(job_id=ident), local.JobInfo,
                                             "greedy") for site, ident in names.items()}
            return {site: job.reason.text for site, job in jobs.items() if job.reason.code == code}
        hand("alpha")
        hand("gamma")
        late = wait_for("the bank to refuse one of two",
                        lambda: self.began("thrice") and said("HeldElsewhere"), 60)
        ran = "alpha" if "gamma" in late else "gamma"
        self.assertEqual(list(late), [site for site in names if site != ran])
        self.assertIn(f"credits are held for part main of this signed job already, for {names[ran]} at {ran} "
                      "(hold.", *late.values())
        self.open_gate("thrice")
        wait_for("it to be paid", lambda: self.balance()["settled"] > paid, 60)
        once = self.balance()["settled"]
        hand("beta")
        text = wait_for("the bank to refuse what has ended well", lambda: said("RunsUsedUp").get("beta"), 60)
        self.assertIn("has ended well as often as its user signed for (1)", text)
        for site in names:
            if site != ran:
                self.forge.as_meta(site, "Cancel", local.JobRequest(job_id=names[site]), local.CancelReply,
                                   "greedy")
        self.assertEqual(self.began("thrice"), [f"main {names[ran]}"])
        self.assertEqual(self.balance()["settled"], once)
        self.assert_nothing_held()

    def test_what_a_site_does_not_let_the_grid_have(self):
        """The rule and its value are what the user reads."""
        script = self.write("long.sh", "#!/bin/sh\n")
        before = {}
        rule = "GRIDCFG[DEFAULT] MAXJOBWALLTIME=00:30:00"
        try:
            for site in ("alpha", "beta"):
                path = self.grid.layout.config(site)
                before[path] = path.read_text()
                path.write_text(before[path] + rule + "\n")
            words = "GRIDCFG[DEFAULT] MAXJOBWALLTIME=00:30:00 for jobs of the grid: asked are 1:00:00"

            def told():
                done = self.grid.nui("alice", "estimate", "-A", "phys", "-t", "1:00:00", script)
                return done.stdout.count(words) == len(before)
            wait_for("both sites to have read it", told, 30)
            done = self.nui("alice", "submit", "-A", "phys", "-t", "1:00:00", "--site", "alpha", script,
                            code=1)
            self.assertIn(words, done.stderr)
            first = self.grid.submit("alice", "-A", "phys", "-t", "1:00:00", "-n", 2, self.gated_script("full"))
            self.wait_state(first, ("Running",))
            ident = self.grid.submit("alice", "-A", "phys", "-t", "1:00:00", script)
            job = self.wait_state(ident, ("Queued",))
            self.assertEqual(job["components"][0]["site"], "gamma")
            self.assertIn(words, self.nui("alice", "status", ident).stdout)
            self.open_gate("full")
            self.wait_state(ident, ("Completed",))
        finally:
            for path, text in before.items():
                path.write_text(text)

    def test_a_job_outlives_its_signature(self):
        """It waits at a site until its signature has expired: nothing starts until its owner renews it, which
        neither a dead site nor a killed metascheduler loses."""
        first = self.grid.submit("alice", "-A", "phys", "--site", "gamma", "-n", 2, "-t", 600,
                                 self.gated_script("before"))
        self.wait_state(first, ("Running",))
        submitted = time.time()
        ident = self.grid.submit("alice", "-A", "phys", "--site", "gamma", "-t", 60, "--valid", 12,
                                 self.write("late.sh", "#!/bin/sh\necho late\n"))
        self.wait_state(ident, ("Queued",))
        wait_for("the signature to expire", lambda: time.time() > submitted + 13, 30)
        self.open_gate("before")
        wait_for("the bank to refuse an expired job",
                 lambda: (self.status("alice", ident) or {}).get("components", [{}])[0].get("reason_code")
                 == "JobExpired" or "expired" in self.nui("alice", "status", ident).stdout, 60)
        self.assertEqual(self.grid.nui("bob", "renew", ident).returncode, 5)
        self.nui("alice", "renew", ident, "--for", "90:00:00:00", code=1)
        site, meta = self.grid.daemons["gamma"], self.grid.daemons["meta"]
        site.kill()
        done = self.nui("alice", "renew", ident, "--for", "1:00:00")
        self.assertRegex(done.stdout, rf"^job {ident} may go on until \d{{4}}-")
        meta.kill()
        meta.start()
        site.start()
        self.wait_state(ident, ("Completed",), seconds=90)
        self.assertIn("late", self.nui("alice", "output", ident).stdout)
        self.nui("alice", "renew", ident, code=1)

    def test_a_user_may_not_speak_as_the_metascheduler(self):
        import grpc
        local = self.forge.contract.local
        envelope = self.forge.sign("alice", self.forge.job("alice", "phys").SerializeToString())
        with self.forge.channel("alpha", "user", "alice") as channel:
            with self.assertRaises(grpc.RpcError) as caught:
                self.forge.call(channel, "nui.local.v1.Local", "Submit",
                                local.SubmitRequest(envelope=envelope, component="main",
                                                    grid_job_id="grid.900002", attempt=1),
                                local.SubmitReply)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED)

    # ---- certificates

    def test_expired_certificate(self):
        where = self.grid.layout.id_dir("user", "late")
        where.mkdir(mode=0o700)
        shutil.copy(self.grid.layout.id_dir("user", "alice") / "key.pem", where / "key.pem")
        (where / "index.txt").touch()
        (where / "ca.cnf").write_text(EXPIRED_CONFIG.format(
            dir=where, ca=self.grid.layout.ca, uri=f"nui://{layout.GRID}/user/alice"))
        for command in (["req", "-new", "-config", "/dev/null", "-key", "key.pem", "-subj",
                         "/O=demo/OU=user/CN=alice", "-out", "csr"],
                        ["ca", "-batch", "-notext", "-config", "ca.cnf", "-extensions", "leaf",
                         "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-in", "csr",
                         "-out", "cert.pem"]):
            subprocess.run(["openssl", *command], cwd=where, check=True, capture_output=True)
        self.config_with("late", CERT=where / "cert.pem", KEY=where / "key.pem")
        done = self.nui("late", "whoami", code=3)
        self.assertIn("expired", done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_certificate_of_another_grid(self):
        other = self.grid.layout.work / "far-ca"
        self.grid.nui_ca("init", other, "--grid", "far")
        out = self.grid.layout.id_dir("user", "far")
        self.grid.nui_ca("issue", other, "user", "alice", "--out", out)
        self.config_with("far", CERT=out / "cert.pem", KEY=out / "key.pem")
        done = self.nui("far", "whoami", code=3)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_wrong_kind_of_certificate(self):
        """A user's certificate does not make a bank; an agency's does not submit jobs."""
        mine, where = self.grid.layout.id_dir("user", "alice"), self.grid.layout
        for name in ("bank", "meta", "alpha"):
            state = where.work / f"not-{name}"
            self.config_with(f"not-{name}", like=name, CERT=mine / "cert.pem", KEY=mine / "key.pem",
                             STATEDIR=state, PIDFILE=state / "pid", PORTFILE=state / "port",
                             LISTEN="127.0.0.1:0", LOGFILE=where.log / f"not-{name}.log")
            state.mkdir()
            done = subprocess.run([self.grid.daemons[name].program, "--config",
                                   where.config(f"not-{name}")], capture_output=True, text=True,
                                  timeout=600)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("nui://demo/user/alice", done.stderr)
            self.assertFalse((state / "port").exists())
        script = self.write("agency.sh", "#!/bin/sh\n")
        self.nui(layout.AGENCY, "submit", "-A", "phys", "-t", 60, script, code=3)

    def test_a_readable_key_is_refused(self):
        key = self.grid.layout.work / "loose.key"
        shutil.copy(self.grid.layout.id_dir("user", "alice") / "key.pem", key)
        key.chmod(0o644)
        self.config_with("loose", KEY=key)
        done = self.grid.nui("loose", "whoami")
        self.assertIn(done.returncode, (1, 3))
        self.assertIn("loose.key", done.stderr)
        key.chmod(0o600)
        self.nui("loose", "whoami")

    def test_jobs_are_their_owners(self):
        script = self.write("mine.sh", "#!/bin/sh\necho secret\n")
        ident = self.grid.submit("alice", "-A", "phys", "-n", 1, "-t", 60, script)
        self.wait_state(ident, ("Completed",))
        for words in (["status", ident], ["output", ident], ["watch", ident]):
            done = self.grid.nui("bob", *words)
            self.assertIn(done.returncode, (3, 5), done.stdout + done.stderr)
            self.assertNotIn("secret", done.stdout)
        self.assertIn("secret", self.nui("alice", "output", ident).stdout)

    def test_deposits_are_the_agencys(self):
        before = self.balance()
        for who in ("alice", "bob"):
            self.nui(who, "deposit", "-A", "phys", 1000, code=3)
        self.assertEqual(self.balance()["granted"], before["granted"])

    def test_revoked_is_refused_without_a_restart(self):
        """By the metascheduler, the bank and every site; others are not disturbed."""
        grid = self.grid
        pids = {name: daemon.pid() for name, daemon in grid.daemons.items()}
        out = grid.layout.id_dir("user", "gone")
        grid.nui_ca("issue", grid.layout.ca, "user", "gone", "--out", out)
        self.config_with("gone", CERT=out / "cert.pem", KEY=out / "key.pem")
        self.nui("gone", "whoami")
        grid.nui_ca("revoke", grid.layout.ca, "user", "gone")
        wait_for("the metascheduler to refuse the revoked certificate",
                 lambda: grid.nui("gone", "whoami").returncode == 3, 30)
        done = self.nui("gone", "whoami", code=3)
        self.assertIn("revoked", done.stderr)
        wait_for("the bank to refuse it", lambda: grid.nui("gone", "balance").returncode == 3, 30)
        body = self.forge.job("gone", "phys").SerializeToString()
        envelope = self.forge.sign("gone", body)

        def site_refuses():
            accepted, text = self.forge.submit_to_site("alpha", envelope)
            self.assertFalse(accepted)
            return "revoked" in text
        wait_for("the site to refuse a job signed with it", site_refuses, 30)
        self.nui("alice", "whoami")
        self.assertEqual(pids, {name: daemon.pid() for name, daemon in grid.daemons.items()})


if __name__ == "__main__":
    main()
