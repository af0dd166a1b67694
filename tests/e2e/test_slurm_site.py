"""A site of its own over a real Slurm, without bank and metascheduler: reservations that Slurm keeps as
well, policy on real jobs, ends that Slurm has forgotten, a first configuration, TEST beside Slurm."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

import watchdog
from fixture import ROOT, main, wait_for
from onesite import SiteCase, layout

from grid import slurm as real

LACKING = real.missing()

GUARD = """
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
sys.stdin.read()  # until the test is gone
from grid.slurm import Slurm
Slurm(sys.argv[2]).stop()
"""


@unittest.skipIf(LACKING, f"Slurm's packages are not installed ({LACKING}): see deploy/packages")
@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs of other accounts")
class SlurmSite(SiteCase):
    """Three nodes of four processors; c3 is Slurm's last choice by weight."""
    nodes = [("c1", {"CPUs": 4, "RealMemory": 4000, "Weight": 20}),
             ("c2", {"CPUs": 4, "RealMemory": 4000, "Weight": 10}),
             ("c3", {"CPUs": 4, "RealMemory": 4000, "Weight": 30})]
    options = {}
    policy = ""
    rm_words = "MIRROR=TRUE COMPLETIONS={rm.completions}"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.user, cls.other = layout.account_of("alice"), layout.account_of("bob")
        cls.rm = real.Slurm(cls.state / "slurm", nodes=cls.nodes,
                            classes={"batch": "", "debug": "MaxTime=30"}, **cls.options)
        cls.slurm_guard = subprocess.Popen(
            [sys.executable, "-c", GUARD, str(ROOT / "deploy"), str(cls.rm.root)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
        watchdog.guarded(cls.rm.root, cls.slurm_guard)
        cls.addClassCleanup(cls.slurm_down)
        cls.rm.make()
        cls.rm.start()
        cls.alpha = cls.site("alpha")
        cls.configure()
        cls.alpha.start()
        wait_for("alpha to see Slurm", lambda: cls.alpha.logged("slurm reached"), 60, cls.alpha.log)

    @classmethod
    def configure(cls, more="", mode="NORMAL"):
        cls.alpha.write(f"SERVERMODE {mode}\nRMPOLLINTERVAL 2\nCGROUPS FALSE\nLOGLEVEL DEBUG\n"
                        f"RMCFG[base] TYPE=SLURM SERVER={cls.rm.server} KEY={cls.rm.key} "
                        f"CONF={cls.rm.conf} POLL=1 PATIENCE=20 {cls.rm_words.format(rm=cls.rm)}\n"
                        f"{cls.policy}{more}")

    @classmethod
    def slurm_down(cls):
        cls.rm.stop()
        cls.slurm_guard.stdin.close()
        cls.slurm_guard.wait(60)

    def tearDown(self):
        self.rm.start()
        for user in (self.user, self.other):
            self.rm.command("scancel", "-u", user)
        wait_for("Slurm's queue to be empty",
                 lambda: not self.rm.command("squeue", "-h", "-a").stdout.strip(), 60)
        if self.alpha.process.pid() is None:
            self.alpha.start()
        wait_for("alpha's queue to be empty", lambda: self.queue() == {}, 60, self.alpha.log)

    # ---- what is where

    def queue(self):
        done = self.alpha.nui("showq", "--json")
        both = json.loads(done.stdout) if done.returncode == 0 else None
        return both if both is None else {
            row["job_id"]: {**row, "section": s} for s in ("active", "idle", "blocked") for row in both[s]}

    def sbatch(self, *args, user=None, **options):
        return self.rm.sbatch("-t", 5, "--chdir=/tmp", *args, user=user or self.user, **options)

    def nui_id(self, job):
        def known():
            for ident in self.queue() or {}:
                if self.data(self.alpha, "checkjob", ident)["job"]["rm_job_id"] == str(job):
                    return ident
            return None
        return wait_for(f"alpha to know Slurm's job {job}", known, 40, self.alpha.log, 0.2)

    def wait_logged(self, *words, seconds=40):
        return wait_for(f"alpha to say {words}", lambda: self.alpha.logged(*map(str, words)), seconds,
                        self.alpha.log)

    def reservations(self):
        """Slurm's, by name."""
        found = {}
        for line in self.rm.scontrol("show", "reservations", "-o").splitlines():
            words = dict(w.split("=", 1) for w in line.split() if "=" in w)
            if "ReservationName" in words:
                found[words["ReservationName"]] = words
        return found


class Policy(SlurmSite):
    policy = "NODEALLOCATIONPOLICY PRIORITY\n"

    # ---- reservations

    def test_reservation_is_kept_by_slurm_too(self):
        """Nobody's scontrol takes the nodes; whom it admits is started inside it; it goes with ours, also
        after a kill -9, and comes back when somebody deletes it."""
        made = self.ok(self.alpha, "setres", "-u", self.user, "-s", "+0:00:00", "-d", "1:00:00",
                       "-n", "maint", "c1")
        name = "nui-alpha-" + made.split("'")[1]
        there = wait_for("Slurm to have it", lambda: self.reservations().get(name), 30, self.alpha.log)
        self.assertEqual(there["Nodes"], "c1")
        # as an administrator would, past nui
        stray = self.sbatch("-H", "-n", 1, "-w", "c1", user=self.other)
        with self.alpha.process.halted():
            self.rm.release_past_nui(stray)
        reasons = ("None", "JobHeldUser", "JobHeldAdmin", "PartitionDown", "Priority")
        wait_for("Slurm to have tried", lambda: self.rm.job(stray)["Reason"] not in reasons, 10)
        self.assertEqual(self.rm.job(stray)["JobState"], "PENDING")
        self.rm.command("scancel", stray)
        inside = self.sbatch("-n", 4, "-N", 1, "-w", "c1")
        self.rm.wait_job(inside, "RUNNING")
        wait_for("the job to have left it", lambda: "Reservation" not in self.rm.job(inside), 20)
        self.rm.command("scancel", inside)
        self.rm.wait_job(inside, "CANCELLED")
        self.rm.scontrol("delete", f"reservationname={name}")
        wait_for("it to be back", lambda: self.reservations().get(name), 30, self.alpha.log)
        self.alpha.process.stop(9)
        self.rm.scontrol("create", "reservation", "reservationname=nui-alpha-left.1", "StartTime=now",
                         "Duration=60", "Nodes=c2", "Users=root", "Flags=IGNORE_JOBS")
        self.rm.scontrol("create", "reservation", "reservationname=theirs", "StartTime=now+60",
                         "Duration=1", "Nodes=c3", "Users=root", "Flags=IGNORE_JOBS")
        self.alpha.start()
        wait_for("what nobody wants to be gone",
                 lambda: set(self.reservations()) == {name, "theirs"}, 30, self.alpha.log)
        self.rm.scontrol("delete", "reservationname=theirs")
        self.ok(self.alpha, "releaseres", made.split("'")[1])
        wait_for("it to be gone", lambda: not self.reservations(), 30, self.alpha.log)

    # ---- policy on real jobs

    def test_administrative_reservation(self):
        """Jobs that it does not admit stay off its nodes, now and where they would run into it."""
        made = self.ok(self.alpha, "setres", "-u", self.other, "-s", "+0:20:00", "-d", "1:00:00",
                       "-n", "later", "c[1-3]")
        long = self.sbatch("-n", 1, "-t", 40)
        short = self.sbatch("-n", 1, "-t", 10)
        self.rm.wait_job(short, "RUNNING")
        admitted = self.sbatch("-n", 1, "-t", 40, user=self.other)
        self.rm.wait_job(admitted, "RUNNING")
        self.assertEqual(self.rm.job(long)["JobState"], "PENDING")
        self.ok(self.alpha, "releaseres", made.split("'")[1])
        self.rm.wait_job(long, "RUNNING")

    def test_weight(self):
        """The node of the least weight first, as Slurm would."""
        order = [self.rm.wait_job(self.sbatch("-n", 4, "-N", 1), "RUNNING")["NodeList"] for _ in range(3)]
        self.assertEqual(order, ["c2", "c1", "c3"])


class Fairshare(SlurmSite):
    policy = ("FSPOLICY DEDICATEDPS\nFSDEPTH 4\nFSINTERVAL 1:00:00\nFSWEIGHT 100\nFSUSERWEIGHT 100\n"
              f"USERCFG[DEFAULT] FSTARGET=50\nBACKFILLPOLICY NONE\n")

    def test_fairshare_and_start_of_both_in_turn(self):
        """He who has used more waits for the other, also over kill -9 of slurmctld and of nui-local."""
        full = self.sbatch("-n", 12)
        self.rm.wait_job(full, "RUNNING")
        heavy = self.sbatch("-n", 12)
        self.nui_id(heavy)
        light = self.sbatch("-n", 12, user=self.other)
        known = time.time()
        ids = [self.nui_id(j) for j in (heavy, light)]
        wait_for("Slurm's state to be on disk", lambda: self.rm.saved() > known, 60)
        self.rm.kill("slurmctld")
        self.wait_logged("unreachable", "nothing is decided")
        self.alpha.process.stop(9)
        self.rm.start_ctld()
        self.alpha.start()
        wait_for("both to be there again", lambda: set(ids) <= set(self.queue() or {}), 60,
                 self.alpha.log)
        self.rm.command("scancel", full)
        self.rm.wait_job(light, "RUNNING")
        self.assertEqual(self.rm.job(heavy)["JobState"], "PENDING")
        self.rm.command("scancel", light)
        self.rm.wait_job(heavy, "RUNNING")


class Forgotten(SlurmSite):
    """Ends that Slurm does not know any more (a slurmctld started without its state knows none)."""

    def away(self, during):
        """nui-local is killed, `during` happens, Slurm forgets it all, nui-local comes back."""
        settled = len(self.alpha.logged(" done starts="))
        wait_for("a few polls", lambda: len(self.alpha.logged(" done starts=")) > settled + 1, 30)
        self.alpha.process.stop(9)
        got = during()
        self.rm.end("slurmctld")  # by itself: slurmdbd undoes what a killed one had not committed
        self.rm.start_ctld(forget=True)
        self.rm.wait_ready()
        self.alpha.start()
        return got

    def strays(self, unseen_jobs):
        """A job that nui knows ends; another comes, is started by hand and goes unseen."""
        runs = self.sbatch("-n", 2, script="#!/bin/sh\nsleep 600\n")
        self.rm.wait_job(runs, "RUNNING")
        ident = self.nui_id(runs)

        def during():
            self.rm.command("scancel", runs)
            self.rm.wait_job(runs, "CANCELLED")
            self.recorded(runs)
            unseen = self.sbatch("-N", 2, "-n", 5, "-A", "phys", "-J", "past us",
                                 script="#!/bin/sh\nsleep 2\nexit 3\n")
            self.rm.scontrol("update", f"jobid={unseen}", f"partition={real.HOLDING}")
            ended = self.rm.wait_job(unseen, "FAILED")
            self.recorded(unseen)
            # what a user could write there himself is not believed
            made_up = self.sbatch("-n", 1, "-J", "x EndTime=2026-01-01T00:00:00", script="#!/bin/sh\nsleep 1\n")
            self.rm.scontrol("update", f"jobid={made_up}", f"partition={real.HOLDING}")
            self.rm.wait_job(made_up, "COMPLETED")
            self.recorded(made_up)
            return unseen, ended
        unseen, ended = self.away(during)
        self.wait_logged("svc job_ended", f"job={ident} ", "how=cancelled")
        self.wait_logged("slurm job_ended", f"slurm_job={unseen} ", "how=exited exit_code=3")
        self.wait_logged("caught_up", f"unseen_jobs={unseen_jobs}")
        ends = len(self.alpha.logged(" svc job_ended "))
        self.alpha.process.stop(9)  # what is billed is not billed again
        self.alpha.start()
        self.wait_logged("caught_up", "unseen_jobs=")
        self.rm.wait_job(self.sbatch("-n", 1, script="#!/bin/sh\ntrue\n"), "COMPLETED")
        wait_for("that to be known", lambda: len(self.alpha.logged(" svc job_ended ")) > ends, 30)
        self.assertEqual(len(self.alpha.logged(" svc job_ended ")), ends + 1)
        return ended

    def recorded(self, job):
        wait_for("Slurm to record it", lambda: f"JobId={job} " in self.rm.completions.read_text(), 30)

    def test_from_the_completion_file(self):
        self.strays(1)


@unittest.skipIf(real.missing_accounting(), f"not installed: {real.missing_accounting()} (see deploy/packages)")
class Accounting(Forgotten):
    """Slurm with slurmdbd over a MariaDB, and with its own scheduler for one partition."""
    options = {"accounting": True, "gather": "linux", "scheduler": "sched/backfill", "priority": "priority/multifactor",
               "more": "PriorityWeightAge=1000\nPriorityWeightQOS=500\nPriorityWeightFairShare=2000\n"
                       "PriorityDecayHalfLife=7-0\nPriorityMaxAge=7-0"}
    rm_words = "SACCT=TRUE USAGE=TRUE"
    policy = "FSPOLICY UTILIZEDPS\nFSDEPTH 2\nFSINTERVAL 1:00:00\nFSWEIGHT 1\nFSUSERWEIGHT 1\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for words in (["add", "account", "phys", "Fairshare=3", "GrpTRES=cpu=8"],
                      ["add", "account", "chem", "Fairshare=1"],
                      ["add", "qos", "gold", "Priority=50", "MaxJobsPU=3"],
                      ["add", "user", cls.user, "account=phys", "MaxJobs=5"],
                      ["modify", "user", cls.user, "set", "qos+=gold"]):
            done = cls.rm.command("sacctmgr", "-i", *words)
            assert done.returncode == 0, done.stderr

    def recorded(self, job):
        wait_for("slurmdbd to know its end", lambda: re.search(
            rf"^{job}\|\d{{4}}-", self.rm.command("sacct", "-nPXaD", "-S", "now-600", "-E", "now", "-s",
                                                 "CD,F,CA", "-o", "JobID,End").stdout, re.M), 30)

    def test_from_the_completion_file(self):
        """Here: from sacct, which cannot be made to say what it should not."""
        self.strays(2)

    def test_first_configuration(self):
        """What --from-slurm writes passes --check and runs in TEST beside Slurm's own scheduler, where
        schedctl tells what differs."""
        done = self.rm.command(self.programs["nui-local"], "--from-slurm", "--grid", layout.GRID, "--server",
                               self.rm.server, "--keys", self.state / "keys")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("CLASSCFG[debug] MAX.WCLIMIT=1800", "QOSCFG[gold] PRIORITY=50 MAXJOB[USER]=3",
                     "ACCOUNTCFG[phys] FSTARGET=75.00 MAXPROC=8", "ACCOUNTCFG[chem] FSTARGET=25.00",
                     f"USERCFG[{self.user}] MAXJOB=5 QLIST=gold:normal", "BACKFILLPOLICY FIRSTFIT",
                     "NODEALLOCATIONPOLICY PRIORITY", "SERVERMODE TEST", "QOSWEIGHT 5.000000",
                     "FSUSERWEIGHT 10.000000", "#   c2 CPUTot=4 RealMemory=4000 Weight=10",
                     "#   LicenseName=ansys Total=2 Used=0 Free=2 Reserved=0 Remote=no"):
            self.assertIn(line, done.stdout.splitlines())
        self.assertIn("SACCT=TRUE", done.stdout)
        self.assertEqual(done.stderr, "")
        test = self.site("test", "nui")
        test.write("")
        own = {line.split()[0] for line in test.config.read_text().splitlines()}
        written = [line for line in done.stdout.splitlines() if line.split(" ")[0] not in own]
        test.config.write_text(test.config.read_text() + "\n".join(written) +
                               "\nRMPOLLINTERVAL 2\nRMCFG[slurm] POLL=1\n")
        checked = subprocess.run([self.programs["nui-local"], "--check", "--config", test.config],
                                 text=True, capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("is good", checked.stdout)
        self.assertNotIn("has no effect", checked.stderr)
        self.alpha.process.stop()  # Slurm is on its own now
        test.start()
        wait_for("it to see Slurm", lambda: test.logged("slurm reached"), 60, test.log)
        # held by the limit of 8 processors here, which Slurm was not told to enforce
        jobs = [self.sbatch("-A", "phys", "-n", 4, "-N", 1)
                for _ in range(3)]
        wait_for("it to want two of them",
                 lambda: self.ok(test, "schedctl").count("would start job") == 2, 60, test.log)
        for job in jobs:  # what its own scheduler would do
            self.rm.scontrol("update", f"jobid={job}", f"partition={real.HOLDING}")
        for job in jobs:
            self.rm.wait_job(job, "RUNNING")
        said = wait_for("it to compare", lambda: [
            line for line in self.ok(test, "schedctl").splitlines() if "would wait here" in line], 60, test.log)
        self.assertEqual(len(said), 1)
        self.assertIn("started there since: 3, as here would be: ", self.ok(test, "schedctl"))
        [data] = self.data(test, "schedctl")
        self.assertEqual(data["started"], 3)
        self.assertIn("would wait here", data["differences"])
        self.assertFalse(test.logged("started_without_us"))
        test.stop()

    def test_usage(self):
        """What a job really used, by sacct, comes with its end, and counts where shares go by use: of two equal
        jobs the one that only slept has next to none."""
        slept = self.sbatch("-n", 2, user=self.other, script="#!/bin/sh\nsleep 3\n")
        job = self.sbatch("-n", 2, script="#!/bin/sh\nend=$(($(date +%s) + 3))\n"
                                          "while [ $(date +%s) -lt $end ]; do i=$((i + 1)); done\n")
        ended = self.rm.wait_job(job, "COMPLETED")
        line = self.wait_logged("slurm job_ended", f"slurm_job={job} ", "cpu_ms=")[-1]
        used = int(re.search(r"cpu_ms=(\d+)", line)[1])
        held = 2000 * sum(sign * time.mktime(time.strptime(ended[k], "%Y-%m-%dT%H:%M:%S"))
                          for k, sign in (("EndTime", 1), ("StartTime", -1)))
        self.assertGreater(used, 100)
        self.assertLess(used, held, "it used one processor of two")
        self.wait_logged("slurm job_ended", f"slurm_job={slept} ", "cpu_ms=")
        shares = {row["name"]: row["percent"] for row in self.data(self.alpha, "diagnose", "-f")
                  if row["kind"] == "user"}
        self.assertGreater(shares[self.user], 4 * shares.get(self.other, 0), shares)

    def test_not_a_slurm(self):
        done = subprocess.run([self.programs["nui-local"], "--from-slurm", "--bin", "/nonexistent"], text=True,
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (1, "", 1))
        self.assertIn("Slurm cannot be read", done.stderr)


class Steps(SlurmSite):
    """A Slurm with its own scheduler, as sites have it, and no plugin: nui-local beside it, then with one partition,
    then with all of them, and back from each step. The lines are those of nui-local(8)."""
    options = {"class_state": "UP", "scheduler": "sched/backfill", "priority": "priority/multifactor",
               "submit_plugins": "", "scheduler_parameters": "batch_sched_delay=0"}
    rm_words = "PATIENCE=60"

    @classmethod
    def configure(cls, more="", mode="TEST"):
        text = cls.rm.conf.read_text()
        cls.others = re.sub(r"(?m)^PartitionName=.*\n", "", text)
        cls.partitions("PartitionName=batch Nodes=c1 State=UP Default=YES", "PartitionName=small Nodes=c[2-3] State=UP")
        super().configure(more, mode)

    @classmethod
    def partitions(cls, *lines):
        """slurm.conf is as it was but for these."""
        cls.rm.conf.write_text(cls.others + "\n".join(lines) + "\n")
        cls.rm.scontrol("reconfigure")

    def given(self, words):
        """nui-local decides for these."""
        self.alpha.process.stop()
        type(self).rm_words = f"PATIENCE=60 {words}"
        SlurmSite.configure.__func__(type(self), mode="NORMAL")
        self.alpha.start()

    def taken_back(self, *partitions):
        self.alpha.process.stop()
        for name in partitions:
            self.rm.scontrol("update", f"partitionname={name}", "state=up")
        self.rm.scontrol("update", "reservationname=nui-alpha-part", "endtime=now")

    def passes(self):
        return int(re.search(r"iteration (\d+)", self.ok(self.alpha, "schedctl"))[1])

    def refused(self, *args):
        with self.assertRaises(real.Failure):
            self.sbatch(*args)

    def test_steps(self):
        before = self.rm.conf.read_text()
        # beside: nothing of Slurm's is changed
        first = self.sbatch("--hold", "-p", "small", "-n", 2)
        wait_for("alpha to know it", lambda: "alpha.1" in self.ok(self.alpha, "showq"), 60, self.alpha.log)
        known = self.passes()  # what starts before a pass has seen it is not compared
        wait_for("a pass that sees it", lambda: self.passes() > known, 60, self.alpha.log)
        self.rm.scontrol("release", first)
        self.rm.wait_job(first, "RUNNING")
        wait_for("alpha to compare", lambda: "started there since: 1" in self.ok(self.alpha, "schedctl"), 60,
                 self.alpha.log)
        self.rm.command("scancel", first)
        self.rm.wait_job(first, "CANCELLED")
        self.assertEqual(self.rm.conf.read_text(), before)
        self.assertFalse(self.reservations())
        # part: one partition
        self.partitions("PartitionName=batch Nodes=c1 State=UP Default=YES", "PartitionName=small Nodes=c[2-3] State=DOWN",
                        "PartitionName=nui Nodes=c[2-3] State=UP ReqResv=YES")
        self.given("CLASSES=small")
        wait_for("the nodes to be kept", lambda: "nui-alpha-part" in self.reservations(), 60, self.alpha.log)
        theirs = self.sbatch("-p", "batch", "-n", 1)
        self.rm.wait_job(theirs, "RUNNING")
        ours = self.sbatch("-p", "small", "-N", 2, "-n", 8)
        there = self.rm.wait_job(ours, "RUNNING", 90)
        self.assertEqual((there["NodeList"], there["Partition"]), ("c[2-3]", "nui"))
        ident = self.nui_id(ours)
        self.assertEqual(set(self.queue()), {ident}, "the others' jobs are none of alpha's")
        self.assertEqual({row["node"] for row in self.data(self.alpha, "diagnose", "-n")}, {"c2", "c3"})
        wait_for("its user to be out of the reservation",
                 lambda: self.reservations()["nui-alpha-part"]["Users"] == "root", 30, self.alpha.log)
        self.refused("-p", "nui", "-n", 1)  # past nui, as a user might try
        self.refused("-p", "nui", "-n", 1, "--reservation=nui-alpha-part")
        waits = self.sbatch("-p", "small", "-n", 4, "-N", 1)
        self.nui_id(waits)
        self.rm.command("scontrol", "update", f"jobid={waits}", "partition=nui", user=self.user)
        self.assertEqual(self.rm.job(waits)["JobState"], "PENDING")
        self.rm.scontrol("update", f"jobid={waits}", "partition=small")
        # back: Slurm starts what waits
        self.taken_back("small")
        self.rm.command("scancel", ours)
        there = self.rm.wait_job(waits, "RUNNING", 90)
        self.assertEqual(there["Partition"], "small")
        self.assertEqual(self.rm.job(theirs)["JobState"], "RUNNING")
        for job in (theirs, waits):
            self.rm.command("scancel", job)
            self.rm.wait_job(job, "CANCELLED")
        # whole
        self.partitions("PartitionName=batch Nodes=ALL State=DOWN Default=YES", "PartitionName=small Nodes=ALL State=DOWN",
                        "PartitionName=nui Nodes=ALL State=UP ReqResv=YES")
        self.given("CLASSES=batch,small")
        all_of_it = self.sbatch("-n", 12)
        self.assertEqual(self.rm.wait_job(all_of_it, "RUNNING", 120)["NodeList"], "c[1-3]")
        self.refused("-p", "nui", "-n", 1)
        # and back
        last = self.sbatch("-p", "small", "-n", 1)
        self.nui_id(last)
        self.taken_back("batch", "small")
        self.rm.command("scancel", all_of_it)
        self.assertEqual(self.rm.wait_job(last, "RUNNING", 90)["Partition"], "small")
        self.rm.command("scancel", last)
        self.partitions("PartitionName=batch Nodes=c1 State=UP Default=YES", "PartitionName=small Nodes=c[2-3] State=UP")
        self.assertEqual(self.rm.conf.read_text(), before)


if __name__ == "__main__":
    main()
