"""What no page of the policy book can say, on one live nui-local: what takes its time, calendars, launches that
fail, jobs past their limit, nodes that go."""
import json
import os
import struct
import time
import unittest
from datetime import UTC, datetime, timedelta

from fixture import ROOT, main
from onesite import wait_for
from policy_case import PolicyCase


def moment(text):
    return datetime.fromisoformat(text).timestamp()


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Live(PolicyCase):
    @classmethod
    def setUpClass(cls):
        """It is Monday noon for this daemon, whenever it is started: no test meets a midnight."""
        super().setUpClass()
        now = int(time.time())
        monday = now // 604800 * 604800 + 4 * 86400 + 12 * 3600  # 1970 began on a Thursday
        zone = cls.state / "etc" / "zone"
        zone.write_bytes(b"TZif" + bytes(16) + struct.pack(">6I", 0, 0, 0, 0, 1, 4) +
                         struct.pack(">iBB", monday - now, 0, 0) + b"NUI\0")
        cls.midnight = datetime.fromtimestamp(now - 12 * 3600, UTC)
        cls.alpha.start(env={**os.environ, "TZ": f":{zone}"})

    def finish(self, ident):
        self.ok(self.alpha, "canceljob", ident)
        self.wait_job(ident, "Cancelled")

    def wait_reason(self, ident, code):
        wait_for(f"{ident} to wait for {code}", lambda: self.job(ident)["reason_code"] == code, 60, self.alpha.log)
        return self.job(ident)

    def section(self, ident):
        rows = self.data(self.alpha, "showq")
        return next((s for s in ("active", "idle", "blocked") if any(r["job_id"] == ident for r in rows[s])), None)

    def test_past_the_limit(self):
        """JOBMAXOVERRUN and WCVIOLATIONACTION on a process that does not end by itself."""
        self.reload("NODECFG[n[1-2]] PROCS=1\nJOBMAXOVERRUN INFINITY\nRMPOLLINTERVAL 1\n")
        job = self.msub("-t", "1", "-w", "n1", "/usr/bin/sleep", "3600")
        wait_for("its limit to be over", lambda: any(r["remaining"].startswith("-") for r in
                                                     self.data(self.alpha, "showq")["active"]), 60)
        self.assertEqual(self.job(job)["state"], "Running")
        self.ok(self.alpha, "changeparam", "JOBMAXOVERRUN", "0")
        self.wait_job(job, "Timeout")
        self.ok(self.alpha, "changeparam", "WCVIOLATIONACTION", "PREEMPT")
        job = self.msub("-t", "1", "-w", "n1", "/usr/bin/sleep", "3600")
        wait_for("it to have started anew", lambda: self.job(job)["start_count"] > 1, 60, self.alpha.log)

    def fails_to_start(self):
        """A job in whose directory's place is a file, on its way; its next launch has another."""
        ident = self.waiter("-h")
        (self.state / "jobs" / ident).write_text("in the way")
        self.ok(self.alpha, "releasehold", "-u", ident)
        wait_for("it to fail", lambda: self.job(ident)["reason_code"] == "RMFailure", 60, self.alpha.log)
        return ident

    def test_launch_fails(self):
        """RMFailure: held after DEFERCOUNT deferrals, until released; else deferred, and with
        RESERVATIONRETRYTIME its node is kept for it."""
        self.reload("NODECFG[n1] PROCS=1\nDEFERCOUNT 0\nRMPOLLINTERVAL 1\n")
        held = self.fails_to_start()
        self.assertEqual(self.data(self.alpha, "checkjob", held)["holds"], ["Batch"])
        self.ok(self.alpha, "releasehold", "-b", held)
        self.wait_job(held, "Running")
        self.ok(self.alpha, "canceljob", held)
        self.reload("NODECFG[n1] PROCS=1\nRESERVATIONRETRYTIME 1:00:00\nRMPOLLINTERVAL 1\n")
        deferred = self.fails_to_start()
        self.assertEqual(self.data(self.alpha, "checkjob", deferred)["holds"], [])
        other = self.waiter()
        wait_for("a pass", lambda: self.job(other)["reason_code"] not in (None, "NotPlanned"), 60)
        self.assertEqual(self.job(other)["state"], "Idle")

    def test_fails_once(self):
        """DEFERSTARTCOUNT: deferred from the second failure on; after one it is tried again at once."""
        self.reload("NODECFG[n1] PROCS=1\nDEFERSTARTCOUNT 2\nRMPOLLINTERVAL 1\n")
        ident = self.waiter("-h")
        (self.state / "jobs" / ident).write_text("in the way")
        self.ok(self.alpha, "releasehold", "-u", ident)
        self.wait_job(ident, "Running")
        self.assertEqual(len([line for line in self.alpha.logged("start_failed") if f"job={ident} " in line]), 1)

    def test_used_by_nobody(self):
        """IDLETIME: a standing reservation that nobody has used for so long is given up."""
        since = int(time.time())
        self.reload("NODECFG[n1] PROCS=1\nSRCFG[kept] PERIOD=INFINITY HOSTLIST=n1 USERLIST=man IDLETIME=0:00:02\n")
        job = self.waiter()
        self.wait_job(job, "Running")
        self.assertGreaterEqual(moment(self.job(job)["start_time"]), since + 2)

    def test_reserved_only(self):
        """QFLAGS USERESERVED: inside reservations that admit them and nowhere else, though others are idle."""
        self.reload("NODECFG[n[1-2]] PROCS=1\nQOSCFG[inside] QFLAGS=USERESERVED\nUSERCFG[games] QLIST=inside QDEF=inside\n"
                    "SRCFG[day] PERIOD=INFINITY HOSTLIST=n1 USERLIST=games,man\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\n")
        self.assertEqual(self.where(self.waiter()), "n1")
        second = self.waiter()
        self.assertEqual(self.where(self.waiter(account="mail")), "n2")
        self.assertEqual((self.job(second)["state"], self.job(second)["reason_code"]), ("Idle", "Resources"))

    # ---- deferrals

    def deferred(self, ident, reason, count):
        """What checkjob and showq say of it: why, how often, until when: an hour from then."""
        before = time.time() - 2
        job = self.wait_reason(ident, reason)
        self.assertEqual((job["state"], job["defer_count"], self.section(ident)), ("Idle", count, "blocked"), job)
        self.assertTrue(before + 3600 - 60 < moment(job["clears_time"]) < time.time() + 3600, job)
        shown = self.ok(self.alpha, "checkjob", ident)
        self.assertIn(f"DeferCount: {count}\n", shown)
        self.assertIn(f"Waits: {job['reason']} ({reason})\nClears: in 00:5", shown)

    def test_rejected(self):
        """RMFailure: its interpreter cannot be executed here, the site's fault. Once DEFERTIME is over it is idle again and tried; deferred more
        than DEFERCOUNT times it is held."""
        self.reload("NODECFG[n1] PROCS=1\nRMPOLLINTERVAL 1\n")
        shell = self.shared / "shell"
        shell.write_text("#!/no/such/thing\n")
        shell.chmod(0o755)
        script = self.shared / "rejected.sh"
        script.write_text(f"#!{shell}\n")
        ident = self.msub("-t", "1:00:00", script)
        self.deferred(ident, "RMFailure", 1)
        self.finish(ident)
        self.reload("NODECFG[n1] PROCS=1\nDEFERTIME 0:00:01\nDEFERCOUNT 1\nRMPOLLINTERVAL 1\n")
        ident = self.msub("-t", "1:00:00", script)
        wait_for("it to be held", lambda: self.data(self.alpha, "checkjob", ident)["holds"] == ["Batch"], 60,
                 self.alpha.log)
        job = self.job(ident)
        self.assertEqual((job["reason_code"], job["defer_count"], self.section(ident)), ("RMFailure", 2, "blocked"))
        self.assertIn("No such file or directory", job["reason"])
        self.assertIn("Holds:    Batch\n", self.ok(self.alpha, "checkjob", ident))
        shell.unlink()
        shell.symlink_to("/bin/true")
        self.ok(self.alpha, "releasehold", "-b", ident)
        self.wait_job(ident, "Completed")

    def test_over_a_limit_when_its_moment_comes(self):
        """PolicyViolation: what is promised to it is due, and its user is over a soft limit by then."""
        self.reload("NODECFG[n1] PROCS=1\nJOBMAXOVERRUN INFINITY\nRMPOLLINTERVAL 1\n")
        self.where(self.msub("-t", "1", "/usr/bin/sleep", "3600", account="man"))
        ident = self.waiter()
        wait_for("a promise", lambda: self.job(ident)["reserved_start"], 60, self.alpha.log)
        self.ok(self.alpha, "schedctl", "-s")  # else it would go on sliding
        due = moment(self.job(ident)["reserved_start"])
        wait_for("it to be due", lambda: time.time() > due + 1, 60)  # whole seconds are shown
        self.ok(self.alpha, "changeparam", "USERCFG[games]", "MAXJOB=0,9")
        self.ok(self.alpha, "schedctl", "-r")
        self.deferred(ident, "PolicyViolation", 1)

    # ---- deadlines and targets

    def test_deadlines(self):
        """One is met: promised its node whatever RESERVATIONDEPTH says. The other is missed, and is
        ended with that reason."""
        self.reload("NODECFG[n1] PROCS=1\nRESERVATIONDEPTH 0\nRMPOLLINTERVAL 1\n")
        first = self.waiter()
        self.wait_job(first, "Running")
        script = self.shared / "quick.sh"
        script.write_text("#!/bin/sh\n")
        other = self.msub("-t", "30:00", script)
        met = self.msub("-t", "30:00", "--deadline", "+3:00:00", script)
        missed = self.msub("-t", "1:00:00", "--deadline", "+1:00:01", script)
        wait_for("a promise", lambda: self.job(met)["reserved_start"], 60, self.alpha.log)
        self.assertIsNone(self.job(other)["reserved_start"])
        self.wait_job(missed, "Failed")
        self.assertIn("cannot end by its deadline", self.job(missed)["reason"])
        self.finish(first)
        for ident in (other, met):
            self.wait_job(ident, "Completed")

    def test_targets(self):
        """QTTARGET and XFTARGET: priority rises as 1 / (distance squared), and more and more until the target."""
        self.reload("NODECFG[n1] PROCS=1\nQUEUETIMEWEIGHT 0\nTARGETWEIGHT 1\nTARGETQUEUETIMEWEIGHT 10000000\n"
                    "TARGETXFACTORWEIGHT 1000\nQOSCFG[soon] QTTARGET=1:00:00\nQOSCFG[short] XFTARGET=2\n"
                    "USERCFG[DEFAULT] QLIST=soon,short\nRMPOLLINTERVAL 1\n")
        self.where(self.waiter())
        soon, short = self.waiter("--qos", "soon"), self.waiter("--qos", "short")
        # which queue time the priority is of, by the formula
        minutes = {soon: lambda p: 60 - (1e7 / p) ** .5, short: lambda p: 60 * (1 - (1e3 / p) ** .5)}
        seen = {soon: [], short: []}

        def grown():
            for ident, found in seen.items():
                job = self.job(ident)
                if not found or job["priority"] > found[-1]:
                    found.append(job["priority"])
                    most = (time.time() - moment(job["submit_time"]) + 1) / 60
                    self.assertLess(minutes[ident](job["priority"]), most, job)
            return all(len(found) > 1 for found in seen.values())
        wait_for("both to have grown", grown, 60)
        self.assertTrue(2777 <= seen[soon][0] < 2900, seen)  # (60 minutes)^-2 * 10 million; of a minute less: 2872
        self.ok(self.alpha, "changeparam", "QOSCFG[soon]", "QTTARGET=0:00:01")
        self.ok(self.alpha, "changeparam", "QOSCFG[short]", "XFTARGET=1.0001")
        wait_for("them to be there", lambda: all(self.job(ident)["priority"] == 10 ** 9 for ident in seen), 60)

    # ---- calendars: the daemon's clock says Monday noon, the client's is another

    def local(self, text):
        """(days after that Monday, "18:00:00"): a moment by the daemon's clock."""
        after = datetime.fromisoformat(text) - self.midnight
        return after.days, str(timedelta(seconds=after.seconds))

    def standing(self):
        """{name: when its periods begin, in order}; the present one since its nodes were found."""
        found = {}
        for row in self.data(self.alpha, "showres"):
            if row["standing"]:
                found.setdefault(row["standing"], []).append(self.local(row["start_time"]))
        return {name: [(d, "now" if (d, at[:3]) == (0, "12:") else at) for d, at in sorted(starts)]
                for name, starts in found.items()}

    def promised(self, ident):
        wait_for(f"a promise for {ident}", lambda: self.job(ident)["reserved_start"], 60, self.alpha.log)
        self.assertEqual(self.job(ident)["state"], "Idle")
        return self.local(self.job(ident)["reserved_start"])

    def runs(self, *args, **options):
        ident = self.waiter(*args, **options)
        self.wait_job(ident, "Running")
        return ident

    def test_calendar(self):
        """By DAY and by WEEK, on some days, so many of them: when they are, and what waits for their end."""
        rest = ("NODECFG[n[1-4]] PROCS=1\nRMPOLLINTERVAL 1\nRESERVATIONDEPTH 5\nQOSCFG[inside] QFLAGS=USERESERVED\n"
                "USERCFG[man] QLIST=inside\n")
        self.reload(rest +
                    "SRCFG[now] PERIOD=DAY DAYS=MON,THU STARTTIME=8:00:00 ENDTIME=18:00:00 HOSTLIST=n1 USERLIST=man DEPTH=4\n"
                    "SRCFG[tomorrow] PERIOD=DAY DAYS=TUE STARTTIME=8:00:00 ENDTIME=18:00:00 HOSTLIST=n2 USERLIST=man\n"
                    "SRCFG[daily] PERIOD=DAY STARTTIME=16:00:00 ENDTIME=17:00:00 HOSTLIST=n3 DEPTH=3\n"
                    "SRCFG[week] PERIOD=WEEK WSTARTTIME=1:16:00:00 WENDTIME=3:12:00:00 HOSTLIST=n4 USERLIST=man\n")
        wait_for("them", lambda: len(self.standing()) == 4, 60, self.alpha.log)
        self.assertEqual(self.standing(), {
            "now": [(0, "now"), (3, "8:00:00"), (7, "8:00:00"), (10, "8:00:00")],
            "tomorrow": [(1, "8:00:00"), (8, "8:00:00")], "week": [(0, "16:00:00"), (7, "16:00:00")],
            "daily": [(0, "16:00:00"), (1, "16:00:00"), (2, "16:00:00")]})
        inside = self.runs("-w", "n1", account="man")
        barred = self.waiter("-w", "n1")
        self.assertEqual(self.promised(barred), (0, "18:00:00"))
        self.runs("-w", "n2", "-t", "19:00:00")
        self.assertEqual(self.promised(self.waiter("-w", "n3", "-t", "5:00:00")), (0, "17:00:00"))
        self.runs("-w", "n3", "-t", "3:00:00")
        self.assertEqual(self.promised(self.waiter("-w", "n4", "-t", "5:00:00")), (2, "12:00:00"))
        self.finish(inside)
        # one ends and another begins while we look
        hour = str(timedelta(seconds=int(time.time() - self.midnight.timestamp()) + 3))
        self.reload(rest + f"SRCFG[now] PERIOD=DAY STARTTIME=8:00:00 ENDTIME={hour} HOSTLIST=n1\n"
                    f"SRCFG[then] PERIOD=DAY STARTTIME={hour} ENDTIME=18:00:00 HOSTLIST=n4 USERLIST=man\n")
        waits = self.waiter("--qos", "inside", account="man")
        for ident in (barred, waits):
            self.wait_job(ident, "Running")
            self.assertGreaterEqual(self.local(self.job(ident)["start_time"])[1], hour)

    def test_samples(self):
        """deploy/samples/shortpool.cfg: busy nodes whose jobs end in time are promised to the pool; who may use it;
        nobody runs on Tuesday night."""
        nodes = "NODECFG[n[1-4]] PROCS=2\nRESERVATIONDEPTH 5\nRMPOLLINTERVAL 1\n"
        self.reload(nodes)
        busy = [self.runs("-w", "n[1-2]", "-t", "10:00:00", "--tasks", 4), self.runs("-w", "n[3-4]", "--tasks", 4)]
        self.reload(nodes + (ROOT / "deploy" / "samples" / "shortpool.cfg").read_text())
        wait_for("them", lambda: len(self.standing()) == 2, 60, self.alpha.log)
        self.assertEqual(self.standing(), {"shortpool": [(0, "now"), (1, "8:00:00")],
                                           "downtime": [(1, "2:00:00"), (8, "2:00:00")]})
        self.assertEqual({r["node"] for r in self.data(self.alpha, "showres", "-n", "shortpool.0.0")}, {"n3", "n4"})
        for ident in busy:
            self.finish(ident)
        self.finish(self.runs("--tasks", 8, "-t", "2:00:00"))
        self.assertEqual(self.promised(self.waiter("--tasks", 8, "-t", "2:00:01")), (0, "18:00:00"))
        self.assertEqual(self.promised(self.waiter("-t", "15:00:00")), (1, "6:00:00"))
        self.assertIn(self.where(self.waiter("-t", "5:00:00")), ("n1", "n2"))

    # ---- administrators' reservations

    def test_affinity(self):
        """The manual's example: + attracts, = may, - only where nothing else is free; all that overlap have to admit."""
        self.reload("NODECFG[n[1-4]] PROCS=1\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\nRMPOLLINTERVAL 1\n")
        self.ok(self.alpha, "setres", "-n", "seed", "-u", "games:man+:mail=:news-", "n2")
        self.ok(self.alpha, "setres", "-n", "wide", "-u", "lp:man", "n3|n4")
        self.ok(self.alpha, "setres", "-n", "narrow", "-u", "lp:bin", "n3")
        try:
            for account in ("games", "man", "mail"):
                ident = self.waiter(account=account)
                self.assertEqual(self.where(ident), "n2", account)
                self.finish(ident)
            self.assertEqual(self.where(self.waiter(account="news")), "n1")
            self.assertEqual(self.where(self.waiter(account="news")), "n2")
            for account in ("man", "bin"):
                self.wait_reason(self.waiter("-w", "n3", account=account), "NeverFree")
            self.assertEqual(self.where(self.waiter("-w", "n3", account="lp")), "n3")
        finally:
            self.ok(self.alpha, "releaseres", "seed.0", "wide.0", "narrow.0")

    def test_timeflex(self):
        """Beside a running job there is no room in that time; with TIMEFLEX it is later: when the job's limit ends."""
        self.reload("NODECFG[n[1-2]] PROCS=1\nRMPOLLINTERVAL 1\n")
        busy = self.runs("-w", "n1", "-t", "20:00")
        words = ("-n", "flex", "-u", "games", "-s", "+0:05:00", "-d", "10:00", "TASKS==2")
        self.refused(self.alpha, "setres", *words, code=1, says="there is room for 1 task")
        self.ok(self.alpha, "setres", "-x", "TIMEFLEX", *words)
        try:
            [row] = [r for r in self.data(self.alpha, "showres") if r["reservation_id"] == "flex.0"]
            after = moment(row["start_time"]) - moment(self.job(busy)["start_time"])
            self.assertTrue(1200 <= after < 1202, (row, self.job(busy)))
            self.assertEqual(moment(row["end_time"]) - moment(row["start_time"]), 600)
        finally:
            self.ok(self.alpha, "releaseres", "flex.0")

    def test_flags(self):
        """BYNAME: whoever asks for it; SINGLEUSE: gone with its job; OWNERPREEMPT: the owner's job evicts others;
        SPACEFLEX: other nodes where its own are drained."""
        self.reload("NODECFG[n[1-2]] PROCS=1\nNODECFG[n[3-5]] PROCS=1 FEATURES=c\nRMPOLLINTERVAL 1\n")
        names = []

        def reserve(name, *args):
            names.append(f"{name}.0")
            self.ok(self.alpha, "setres", "-n", name, *args)
        try:
            reserve("named", "-u", "games", "-x", "BYNAME", "n1")
            barred = self.waiter("-w", "n1")
            self.wait_reason(barred, "NeverFree")
            self.assertEqual(self.where(self.waiter("--reservation", "named.0")), "n1")
            self.finish(barred)  # where nothing can be reserved for the first, later ones evict nobody
            reserve("mine", "-u", "games", "-o", "USER:man", "-x", "OWNERPREEMPT", "n2")
            other = self.runs("-w", "n2")
            self.runs("-w", "n2", account="man")
            self.wait_job(other, "Idle")
            reserve("once", "-u", "games", "-x", "SINGLEUSE", "n3")
            self.finish(self.runs("-w", "n3"))
            wait_for("it to be gone", lambda: "once.0" not in self.ok(self.alpha, "showres"), 60, self.alpha.log)
            names.remove("once.0")
            reserve("space", "-u", "games", "-x", "SPACEFLEX", "-f", "c", "TASKS==1")

            def node():
                return [r["node"] for r in self.data(self.alpha, "showres", "-n", "space.0")]
            before = node()
            self.changed.update(before)
            self.ok(self.alpha, "mnodectl", "-m", "state=drained", *before)
            wait_for("another node", lambda: len(node()) == 1 and node() != before, 60, self.alpha.log)
        finally:
            self.ok(self.alpha, "releaseres", *names)

    def test_acl_kinds(self):
        """What else may admit besides a user: each kind bars a job that is not so, and admits one that is."""
        self.reload("NODECFG[n1] PROCS=2\nRMPOLLINTERVAL 1\nCLASSCFG[fast] PRIORITY=1\nQOSCFG[lo] PRIORITY=1\n"
                    "QOSCFG[hi] QFLAGS=PREEMPTEE\nUSERCFG[games] QLIST=hi:lo QDEF=lo\n")
        kinds = ((("-g", "lp"), (), "lp"),
                 (("-a", "project"), ("-A", "project"), "games"),
                 (("-c", "fast"), ("-q", "fast"), "games"),
                 (("-Q", "hi"), ("--qos", "hi"), "games"),
                 (("--job-attribute", "PREEMPTEE"), ("--qos", "hi"), "games"),
                 (("--job-duration", "<=0:30:00"), ("-t", "0:20:00"), "games"),
                 (("--job-procs", ">=2"), ("--tasks", "2"), "games"))
        for acl, good, account in kinds:
            self.ok(self.alpha, "setres", "-n", "kind", *acl, "n1")
            name = next(r["reservation_id"] for r in self.data(self.alpha, "showres")
                        if r["reservation_id"].startswith("kind."))
            try:
                barred = self.waiter("-w", "n1")
                self.wait_reason(barred, "NeverFree")
                self.finish(barred)
                self.finish(self.runs("-w", "n1", *good, account=account))
            finally:
                self.ok(self.alpha, "releaseres", name)

    def test_dedicated(self):
        """DEDICATEDNODE: all of a node for one task of it."""
        self.reload("NODECFG[n1] PROCS=2\nRMPOLLINTERVAL 1\n")
        for flags, free in (((), True), (("-x", "DEDICATEDNODE"), False)):
            self.ok(self.alpha, "setres", "-n", "part", "-u", "man", *flags, "TASKS==1")
            name = next(r["reservation_id"] for r in self.data(self.alpha, "showres")
                        if r["reservation_id"].startswith("part."))
            try:
                ident = self.waiter()
                if free:
                    self.wait_job(ident, "Running")
                else:
                    self.wait_reason(ident, "NeverFree")
                self.finish(ident)
            finally:
                self.ok(self.alpha, "releaseres", name)

    # ---- limits

    def test_arrays(self):
        """So many of an array at one time; each of its jobs counts against its user's limits."""
        self.reload("NODECFG[n[1-4]] PROCS=1\nUSERCFG[games] MAXJOB=3\nUSERCFG[man] MAXIJOB=1\nRMPOLLINTERVAL 1\n")
        one = self.waiter("--array", "1-7:2%2").split()
        two = self.waiter("--array", "0,9").split()
        for ident in (*one[:2], two[0]):
            self.wait_job(ident, "Running")
        for ident in one[2:]:
            job = self.wait_reason(ident, "ArrayLimit")
            self.assertIn("2 jobs of its array run", job["reason"])
            self.assertEqual(self.section(ident), "blocked")
        job = self.wait_reason(two[1], "PolicyViolation")
        self.assertEqual((job["limit"], job["limit_value"], job["limit_usage"]), ("MAXJOB", 3, 3))
        others = self.waiter("--array", "1-3", account="man").split()
        self.wait_job(others[0], "Running")
        self.wait_reason(others[2], "IdlePolicyViolation")
        self.finish(one[0])
        self.wait_job(one[2], "Running")
        self.assertEqual([self.job(i)["state"] for i in (one[3], two[1])], ["Idle"] * 2)
        self.finish(two[0])
        self.wait_job(two[1], "Running")  # its array has no limit, the other's is reached
        self.assertEqual(self.job(one[3])["reason_code"], "ArrayLimit")

    def test_class_limit(self):
        """What its class does not take is refused when it comes; what it does not take any more is blocked: showq,
        checkjob."""
        self.reload("NODECFG[n1] PROCS=1\nCLASSCFG[short] MAX.WCLIMIT=1:00:00\nRMPOLLINTERVAL 1\n")
        before = self.waiter()
        self.wait_job(before, "Running")
        ident = self.waiter("-q", "short")
        self.ok(self.alpha, "changeparam", "CLASSCFG[short]", "MAX.WCLIMIT=0:10:00")
        self.refused(self.alpha, "msub", "-t", "1:00:00", "-q", "short", "/usr/bin/sleep", "1", account="games", code=1,
                     says="class short: a wallclock limit of 1:00:00 breaks MAX.WCLIMIT of 00:10:00")
        job = self.wait_reason(ident, "ClassLimits")
        self.assertEqual((job["state"], self.section(ident)), ("Idle", "blocked"))
        self.assertIn(f"cannot select job {ident} for partition DEFAULT ({job['reason']})", self.ok(self.alpha, "checkjob",
                                                                                                 ident))
        self.ok(self.alpha, "canceljob", before)
        self.ok(self.alpha, "changeparam", "CLASSCFG[short]", "MAX.WCLIMIT=2:00:00")
        self.wait_job(ident, "Running")

    def test_estimate_of_a_local_job(self):
        """What is reserved for jobs of the grid is not free for one of the cluster's own: msub's estimate is the
        promise that it gets."""
        self.reload("NODECFG[n[1-2]] PROCS=1\nSRCFG[grid] PERIOD=INFINITY HOSTLIST=n1 JOBATTRLIST=GRID\n"
                    "RMPOLLINTERVAL 1\n")
        self.assertEqual(self.where(self.waiter()), "n2")
        row = json.loads(self.msub("--json", "-t", "10:00", "/usr/bin/sleep", "1"))[0]
        wait_for("a promise", lambda: self.job(row["job_id"])["reserved_start"], 60, self.alpha.log)
        self.assertEqual(row["start_estimate"], self.job(row["job_id"])["reserved_start"])

    def test_qos_lost(self):
        """QOSAccess: a waiting job whose QoS is taken away is deferred, with its default one."""
        self.reload("NODECFG[n1] PROCS=1\nQOSCFG[hi] PRIORITY=100\nUSERCFG[games] QLIST=hi:lo QDEF=lo\n"
                    "QOSCFG[lo] PRIORITY=1\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\n")
        self.where(self.waiter())
        job = self.waiter("--qos", "hi")
        self.assertEqual(self.job(job)["qos"], "hi")
        self.ok(self.alpha, "changeparam", "USERCFG[games]", "QLIST=lo")
        self.assertEqual((self.job(job)["qos"], self.job(job)["reason_code"]), ("lo", "QOSAccess"))

    def test_default_limits(self):
        """A job that says no limit: its class's, else the site's."""
        self.reload("NODECFG[n1] PROCS=4 FEATURES=fast\nNODECFG[n2] PROCS=4\nSYSTEMDEFAULTJOBWALLTIME 1:30:00\n"
                    "CLASSCFG[short] DEFAULT.WCLIMIT=0:10:00 DEFAULT.FEATURES=fast\n")
        plain, short = self.msub("/usr/bin/sleep", "3600"), self.msub("-q", "short", "/usr/bin/sleep", "3600")
        self.assertEqual(self.job(plain)["walltime"], "1:30:00")
        self.assertEqual((self.job(short)["walltime"], self.where(short)), ("00:10:00", "n1"))

    def test_nodes_that_are_gone(self):
        """Out of the configuration: no promise, not listed; a job that runs there is seen until its end."""
        self.reload("NODECFG[n[1-3]] PROCS=1\n")
        runs = self.waiter("-w", "n3")
        self.assertEqual(self.where(runs), "n3")
        self.reload("NODECFG[n1] PROCS=1\nNODEDOWNSTATEDELAYTIME 0:10:00\nJOBACTIONONNODEFAILURE FAIL\n")
        names = [n["node"] for n in self.data(self.alpha, "diagnose", "-n")]
        self.assertEqual((names[0], "n2" in names), ("n1", False))
        self.refused(self.alpha, "checknode", "n2", code=5, says="no node n2")
        self.refused(self.alpha, "msub", "-t", "60", "--tasks", "2", "/usr/bin/sleep", "1", account="games", code=1,
                     says="2 tasks")

    def test_cpuload(self):
        self.reload("NODECFG[n[1-2]] PROCS=4\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\nRMPOLLINTERVAL 1\n")
        self.where(self.waiter("-w", "n1", "--tasks", "2"))
        self.assertEqual(self.where(self.waiter()), "n1")
        self.ok(self.alpha, "changeparam", "NODEALLOCATIONPOLICY", "CPULOAD")
        self.assertEqual(self.where(self.waiter()), "n2")

    def test_what_waits_for_better_days(self):
        """Nodes that are down and reservations without an end: queued, deferred or barred, run when they are
        back; what all nodes together could not hold is refused at once."""
        self.reload("NODECFG[n[1-2]] PROCS=2\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\n")
        self.ok(self.alpha, "mnodectl", "-m", "state=down", "n2")
        self.changed.add("n2")
        large = self.waiter("--tasks", "4")
        wait_for("it to be deferred", lambda: self.job(large)["reason_code"] == "NoResources", 60, self.alpha.log)
        self.assertIn(large, [j["job_id"] for j in self.data(self.alpha, "showq", "-b")["blocked"]])
        self.refused(self.alpha, "msub", "-t", "60", "--tasks", "5", "/usr/bin/sleep", "1", account="games", code=1,
                     says="5 tasks")
        self.ok(self.alpha, "mnodectl", "-m", "state=up", "n2")
        self.wait_job(large, "Running")
        self.ok(self.alpha, "canceljob", large)
        self.ok(self.alpha, "setres", "-n", "closed", "ALL")
        barred = self.waiter()
        wait_for("it to say why", lambda: self.job(barred)["reason_code"] == "NeverFree", 60)
        self.ok(self.alpha, "releaseres", "closed.0")
        self.wait_job(barred, "Running")


if __name__ == "__main__":
    main()
