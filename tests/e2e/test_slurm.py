"""A real Slurm under site alpha, beside an embedded site: users keep sbatch, nui decides."""
import json
import os
import re
import shutil
import signal
import sqlite3
import time
import unittest
from contextlib import closing

from fixture import SAMPLES, GridCase, layout, main, wait_for
from shelf import SIZE, Shelf
from test_scripts import MPI, mpi_missing

from grid import slurm as real

LACKING = real.missing()


def moment(job, field):
    return time.mktime(time.strptime(job[field], "%Y-%m-%dT%H:%M:%S"))


@unittest.skipIf(LACKING, f"Slurm's packages are not installed ({LACKING}): see deploy/packages")
@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs of other accounts")
class SlurmGrid(GridCase):
    """Site alpha is under a real Slurm."""

    @classmethod
    def fund(cls):
        super().fund()
        cls.shelf = Shelf()
        cls.addClassCleanup(cls.shelf.shutdown)
        cls.rm = cls.grid.slurm["alpha"]
        cls.user = layout.account_of("alice")
        cls.log = cls.grid.daemons["alpha"].log
        config = cls.grid.layout.config("alpha")
        # a token that is good for seconds: slurmrestd refuses it afterwards, so that all of this needs many
        config.write_text(config.read_text().replace(" PATIENCE=20 ", " PATIENCE=20 TOKENLIFE=4 ") +
                          f"QOSCFG[gold] PRIORITY=10\nSTAGEHOSTS 127.0.0.1/32\n"
                                               f"USERCFG[{cls.user}] QLIST=gold\n")
        cls.grid.daemons["alpha"].stop()
        cls.grid.daemons["alpha"].start()
        cls.grid.wait_serving()

    def tearDown(self):
        """Whatever a test left: gone, in Slurm and in nui."""
        self.rm.start()
        self.rm.command("scancel", "-u", self.user)
        wait_for("Slurm's queue to be empty",
                 lambda: not self.rm.command("squeue", "-h", "-a").stdout.strip(), 60)
        wait_for("alpha's queue to be empty", lambda: self.queue() == {}, 60, self.log)

    # ---- what is where

    def raw(self, *args):
        """A command of the cluster's, as root on its socket; subprocess.CompletedProcess."""
        config = self.job_dir() / "here.cfg"
        config.write_text(f"GRID {layout.GRID}\nSITECFG[alpha] "
                          f"SOCKET={self.grid.layout.run}/alpha.sock\n")
        return self.rm.command(self.grid.programs["nui"], *args,
                               env_extra={"NUI_CONFIG": str(config)})

    def here(self, *args, code=0):
        done = self.raw(*args)
        self.assertEqual(done.returncode, code, f"nui {' '.join(map(str, args))}\n{done.stdout}"
                                                f"{done.stderr}")
        return done

    def queue(self):
        """Rows of showq by nui's id; None while the daemon is away."""
        done = self.raw("showq", "--json")
        if done.returncode:
            return None
        both = json.loads(done.stdout)
        return {row["job_id"]: {**row, "section": section} for section in ("active", "idle", "blocked")
                for row in both[section]}

    def sbatch(self, *args, **options):
        return self.rm.sbatch("-A", "phys", "--chdir=/tmp", *args, user=self.user, **options)

    def said(self, event, *words):
        """A line of alpha's log with the event and all the words."""
        for line in self.log.read_text().splitlines():
            if f" {event} " in line and all(str(w) in line for w in words):
                return line
        return None

    def wait_said(self, event, *words, seconds=40):
        return wait_for(f"alpha to say {event} {words}", lambda: self.said(event, *words), seconds,
                        self.log)


@unittest.skipIf(real.missing_accounting(), f"not installed: {real.missing_accounting()} (see deploy/packages)")
class Accounted(SlurmGrid):
    """One node, and slurmdbd over a MariaDB."""

    sites = {"alpha": (1, 4)}
    slurm = {"alpha": {"nodes": [("alpha01", {"CPUs": 4, "RealMemory": 4000})], "accounting": True}}

    def test_what_slurm_ran_unseen(self):
        """Slurm's own accounting against the bank's: a job that ran while nui was away is found, one that nui
        started is known."""
        since = int(time.time())
        known = self.sbatch("-n", 2, "-t", 5, script="#!/bin/sh\nsleep 2\n")
        self.rm.wait_job(known, "COMPLETED")
        self.wait_said("job_ended", f"slurm_job={known} ")
        self.settled()
        # as nui-reconcile(1) says: without states sacct leaves out what was held while it ran, as nui's jobs are
        words = ("sacct", "--allusers", "--parsable2", "--duplicates", "--state=BF,CA,CD,DL,F,NF,OOM,PR,TO",
                 "--starttime", time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since)), "--endtime", "now",
                 "--format=JobIDRaw,Submit,Start,End,AllocCPUS,ElapsedRaw,User,Account,State")
        accounting = self.job_dir() / "sacct.txt"

        def told():
            accounting.write_text(self.rm.command(*words).stdout)
            return all(re.search(rf"^{job}\|.*\|COMPLETED$", accounting.read_text(), re.M) for job in (known, unseen))
        alpha = self.grid.daemons["alpha"]
        alpha.stop()
        try:
            unseen = self.sbatch("-H", "-n", 3, "-N", 1, "-t", 5, script="#!/bin/sh\nsleep 2\n")
            self.rm.release_past_nui(unseen)
            ended = self.rm.wait_job(unseen, "COMPLETED")
            wait_for("slurmdbd to know both ends", told, 30)
            self.rm.completions.unlink()  # or nui would learn of it there
            self.rm.end("slurmctld")  # by itself: slurmdbd undoes what a killed one had not committed
            self.rm.start_ctld(forget=True)
            self.rm.wait_ready()
        finally:
            alpha.start()
            self.grid.wait_serving()
        done = self.nui(layout.OPERATOR, "reconcile", "--json", "--site", "alpha", "--from", f"@{since}", "--to",
                        "+1:00:00", "--sacct", accounting)
        self.assertEqual(done.returncode, 0, done.stderr)
        [row] = json.loads(done.stdout)
        self.assertEqual((row["class"], row["site_job"]), ("UNSEEN", str(unseen)))
        self.assertEqual(row["site_ps"], 3 * (moment(ended, "EndTime") - moment(ended, "StartTime")))


class SlurmCase(SlurmGrid):
    """alpha: two plain nodes and two with features and graphics cards, of four processors each."""

    sites = {"alpha": (4, 4), "beta": (2, 4)}
    slurm = {"alpha": {
        "nodes": [("alpha01", {"CPUs": 4, "RealMemory": 4000, "Feature": "small,intel"}),
                  ("alpha02", {"CPUs": 4, "RealMemory": 4000, "Feature": "small,intel"}),
                  ("alpha03", {"CPUs": 4, "RealMemory": 16000, "Feature": "big,amd", "Gres": "gpu:2"}),
                  ("alpha04", {"CPUs": 4, "RealMemory": 16000, "Feature": "big,amd",
                               "Gres": "gpu:2"})],
        "classes": {"batch": "", "debug": "MaxTime=30"}, "slurmd_timeout": 10}}

    # ---- starting and ending

    def test_sbatch_is_started_and_charged(self):
        self.settled()
        before = self.balance()["settled"]
        job = self.sbatch("-n", 2, "-t", 5, script="#!/bin/sh\nsleep 2\nexit 3\n")
        ended = self.rm.wait_job(job, "FAILED")
        self.assertEqual(ended["ExitCode"], "3:0")
        self.assertEqual(ended["Partition"], real.HOLDING, "it was not nui that started it")
        told = self.wait_said("job_ended", f"slurm_job={job} ", "exit_code=3")
        ident = re.search(r" job=(\S+)", told)[1]
        self.assertIn(f"nodes={ended['NodeList']}:", self.said("job_chosen", f"job={ident} "))
        wait_for("alpha's queue to be empty", lambda: self.queue() == {}, 30)
        after = self.settled()["settled"]
        seconds = int(ended["EndTime"][-2:]) - int(ended["StartTime"][-2:])
        self.assertEqual(after - before, 2 * (seconds % 60))

    def test_nobody_but_nui_uses_its_partition(self):
        done = self.rm.command("sbatch", "-p", real.HOLDING, "--chdir=/tmp", user=self.user,
                               input="#!/bin/sh\ntrue\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is for nui-local", done.stderr)
        job = self.sbatch("-H")
        done = self.rm.command("scontrol", "update", f"jobid={job}", f"partition={real.HOLDING}",
                               user=self.user)
        self.assertNotEqual(done.returncode, 0)

    def test_grid_job(self):
        # no step of Slurm's hears the signal; slurmrestd has to take the wish
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", 60, "--signal", "USR1@10",
                                 SAMPLES / "hello.sh")
        self.wait_state(ident, ("Completed",))
        said = self.nui("alice", "output", ident).stdout
        self.assertIn("1 + 2 + ... + 20000 = 200010000", said)
        self.assertIn(f"at site alpha, 2 tasks, as {self.user}", said)
        self.settled()
        self.assertEqual(len(self.charges(ident)), 1)
        self.assert_books_close()

    def test_a_script_that_cannot_be_executed(self):
        """Failed at once, with a sentence, for nothing; who exits with the same code by his own will pays."""
        for name, first, says in (("interpreter", "#!/bin/bsah\n", "/bin/bsah, which does not exist here"),
                                  ("chdir", "#!/bin/sh\n#SBATCH --chdir=/nowhere\n", "(--chdir) does not exist at this site"),
                                  ("dos", "#!/bin/sh\r\n", "the script has DOS line ends")):
            ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", 60, self.write(name, f"{first}echo\n"))
            job = self.wait_state(ident, ("Failed",))
            self.assertIn(says, job["components"][0]["reason"])
            self.settled()
            self.assertEqual(self.charges(ident), [])
        there = self.write("there", '#!/bin/sh\npwd\necho "$SLURM_SUBMIT_DIR $1"; test -r "$NUI_JOBDIR/script"\n')
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", 60, "--chdir", "/usr/share", there, "it's")
        self.wait_state(ident, ("Completed",))
        self.assertEqual(self.nui("alice", "output", ident).stdout, "/usr/share\n/usr/share it's\n")
        self.settled()
        self.assertEqual(len(self.charges(ident)), 1)
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", 60, self.write("own", "#!/bin/sh\nexit 127\n"))
        self.wait_state(ident, ("Failed",))
        self.settled()
        self.assertEqual(len(self.charges(ident)), 1)
        self.assert_books_close()

    def test_files_there_and_away(self):
        """Slurm is given the job when its file is there, in the directory in which Slurm runs it; what it made goes away."""
        url, digest = self.shelf.put("slurm", gated=True)
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-n", 2, "-t", "2:00", "--stage-in",
                                 f"{url}=in/data,sha256={digest}", "--stage-out", f"made={self.shelf.url('made')}",
                                 self.write("files.sh", "#!/bin/sh\n[ -O in/data ] && sha256sum < in/data > made\n"))

        def half():
            files = json.loads(self.nui("alice", "status", ident, "--json").stdout)["transfers"]
            return files and files[0]["bytes_done"] >= SIZE // 2
        wait_for("half of it", half, 60, self.log)
        self.assertEqual(self.rm.command("squeue", "-h", "-a").stdout, "")
        self.shelf.gates["slurm"].set()
        self.wait_state(ident, ("Completed",))
        wait_for("what it made", lambda: "made" in self.shelf.taken, 60, self.log)
        self.assertEqual(self.shelf.taken["made"].split()[0].decode(), digest)
        site_job = self.status("alice", ident)["components"][0]["site_job_id"]
        told = json.loads(self.here("checkjob", site_job, "--json").stdout)["job"]
        self.assertRegex(told["rm_job_id"], r"^\d+$")  # Slurm's number of it
        self.settled()
        self.assertEqual(len(self.charges(ident)), 1)
        self.assert_books_close()

    def test_what_slurm_refuses(self):
        """RMReject: nothing is taken for a partition that is drained; deferred, and why is told."""
        self.rm.scontrol("update", f"partitionname={real.HOLDING}", "state=DRAIN")
        try:
            ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", 60, SAMPLES / "hello.sh")
            job = wait_for("it to be refused", lambda: (lambda j: j["defer_count"] and j)(json.loads(
                self.here("checkjob", "--json", ident).stdout)["job"]), 40, self.log)
        finally:
            self.rm.scontrol("update", f"partitionname={real.HOLDING}", "state=UP")
        self.assertEqual((job["state"], job["reason_code"], job["defer_count"]), ("Idle", "RMReject", 1))
        self.assertIn("artition", job["reason"])  # in Slurm's words
        self.nui("alice", "cancel", ident)

    def reservations(self):
        """Slurm's, by name."""
        lines = [dict(w.split("=", 1) for w in line.split() if "=" in w)
                 for line in self.rm.scontrol("show", "reservations", "-o").splitlines()]
        return {words["ReservationName"]: words for words in lines if "ReservationName" in words}

    def test_tasks_by_run_and_by_an_mpi(self):
        """nui run is Slurm's srun there, and mpiexec finds Slurm's places: a process for each task, on its nodes."""
        program = self.job_dir() / "nui"
        shutil.copy(self.grid.programs["nui"], program)
        script = self.job_dir() / "tasks.sh"
        script.write_text(f"""#!/bin/sh
#SBATCH --output=tasks.out --ntasks-per-node=2
{program} run -l sh -c 'echo "$SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME"' | sort
{program} run -n 2 sh -c 'exit $((3 * SLURM_PROCID))' 2> /dev/null
echo "code $?"
""" + (MPI.split("\n", 2)[2] if not mpi_missing() else ""))
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", "5:00", "-n", 4,
                                 script)
        self.wait_state(ident, ("Completed", "Failed"), seconds=120)
        lines = self.nui("alice", "output", ident).stdout.splitlines()
        nodes = {line.split()[-1] for line in lines[:4]}
        self.assertEqual([line.split(" on ")[0] for line in lines[:4]], [f"{i}: {i} of 4" for i in range(4)], lines)
        self.assertEqual((len(nodes), lines[4]), (2, "code 3"))
        if not mpi_missing():
            self.assertEqual(sorted(lines[5:]), [f"{i} 4 6" for i in range(4)])
        self.settled()
        self.assertEqual(len(self.charges(ident)), 1)

    def test_coallocated_with_an_embedded_site(self):
        """beta is full for half a minute, so that both parts are reserved: Slurm keeps alpha's nodes, too, from
        whoever would take them past nui."""
        self.grid.submit("alice", "-A", "phys", "--site", "beta", "-t", 30, "-n", 8, self.gated_script("fills"))
        wait_for("beta to be full", lambda: self.began("fills"), 40)
        ident = self.grid.submit("alice", "-A", "phys", "-t", 60,
                                 "--component", "left:site=alpha,tasks=4",
                                 "--component", "right:site=beta,tasks=3", SAMPLES / "pair.py")
        name, kept = wait_for("Slurm to have the reservation",
                              lambda: next(iter(self.reservations().items()), None), 30, self.log, 0.1)
        self.assertRegex(name, r"^nui-alpha-\d+$")
        stray = self.sbatch("-H", "-n", 1, "-N", 1, "-t", 5, "-w", kept["Nodes"])
        with self.grid.daemons["alpha"].process.halted():
            self.rm.release_past_nui(stray)
        wait_for("Slurm to have tried", lambda: self.rm.job(stray)["Reason"] not in
                 ("None", "JobHeldUser", "JobHeldAdmin", "PartitionDown", "Priority"), 20)
        self.assertEqual(self.rm.job(stray)["JobState"], "PENDING")
        self.assertIn(name, self.reservations(), "the stray was not tried while it lasted")
        self.rm.command("scancel", stray)
        self.wait_state(ident, ("Completed",), seconds=120)
        self.open_gate("fills")
        said = [self.nui("alice", "output", ident, part).stdout for part in ("left", "right")]
        results = {re.search(r"joint result: (\d+)", text).group(1) for text in said}
        self.assertEqual(len(results), 1)
        number = re.search(r"slurm_job=(\d+)", self.said("job_submitted", f"job=alpha.{name.split('-')[-1]} "))[1]
        self.assertEqual(self.rm.job(number)["NodeList"], kept["Nodes"])
        wait_for("the reservation to be gone", lambda: not self.reservations(), 30, self.log)
        self.settled()
        self.assertEqual(len(self.charges(ident)), 2)
        self.assert_books_close()

    # ---- what Slurm knows of a job is what counts here

    def nui_id(self, job):
        """Our id of Slurm's job, once it is known."""
        def known():
            for row in (self.queue() or {}).values():
                detail = self.detail(row["job_id"])
                if detail and detail["job"]["rm_job_id"] == str(job):
                    return row["job_id"]
            return None
        return wait_for(f"alpha to know Slurm's job {job}", known, 40, self.log, 0.2)

    def detail(self, ident):
        done = self.raw("checkjob", "--json", ident)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def test_fields(self):
        job = self.sbatch("-H", "-p", "debug", "-N", 2, "-n", 4, "--mem=300", "-C", "big&amd", "-t", 7,
                          "--comment=qos:gold", "-J", "fields")
        detail = self.detail(self.nui_id(job))
        row = detail["job"]
        self.assertEqual([row[k] for k in ("user", "account", "class", "qos", "procs", "walltime")],
                         [self.user, "phys", "debug", "gold", 4, "00:07:00"])
        self.assertEqual(detail["holds"], ["User"])
        self.assertEqual(detail["rejections"], {"Features": 2})
        self.rm.scontrol("update", f"jobid={job}", "timelimit=9")
        wait_for("the new limit", lambda: self.detail(self.nui_id(job))["job"]["walltime"] == "00:09:00", 30)
        self.rm.scontrol("release", job)
        ran = self.rm.wait_job(job, "RUNNING")
        self.assertEqual(ran["NodeList"], "alpha[03-04]")

    def test_gres_and_licences(self):
        """What one job has of them the next waits for, by our decision: it is never handed to Slurm."""
        gpus = self.sbatch("-N", 1, "-n", 1, "-t", 5, "--gres=gpu:2")
        node = self.rm.wait_job(gpus, "RUNNING")["NodeList"]
        other = self.rm.wait_job(self.sbatch("-n", 1, "-t", 5, "--gpus=2"), "RUNNING")["NodeList"]
        self.assertEqual({node, other}, {"alpha03", "alpha04"})
        third = self.sbatch("-n", 2, "-t", 5, "-N", 1, "--gpus-per-task=1")
        licensed = self.sbatch("-n", 1, "-t", 5, "-L", "matlab:3,ansys")
        self.rm.wait_job(licensed, "RUNNING")
        more = self.sbatch("-n", 1, "-t", 5, "-L", "matlab:2")
        detail = self.detail(self.nui_id(more))
        self.assertIn("matlab", json.dumps(detail))
        self.assertEqual(self.rm.job(more)["Partition"], "batch", "Slurm was asked in vain")
        ident = self.nui_id(third)
        self.assertEqual(self.queue()[ident]["section"], "idle")
        self.assertEqual(self.rm.job(third)["Partition"], "batch", "Slurm was asked in vain")
        self.rm.command("scancel", licensed, gpus)
        self.rm.wait_job(more, "RUNNING")
        self.assertEqual(self.rm.wait_job(third, "RUNNING")["NodeList"], node)
        odd = self.sbatch("-H", "-N", 2, "-n", 2, "-t", 5, "--gpus=3")  # Slurm may have 1 here, 2 there
        self.wait_said("job_not_schedulable", f"rm_job={odd} ", "3 gpu of the whole job")

    def test_nodes_by_name(self):
        """-w, more nodes than it names, -x."""
        named = self.sbatch("-n", 1, "-t", 5, "-w", "alpha02")
        self.assertEqual(self.rm.wait_job(named, "RUNNING")["NodeList"], "alpha02")
        pair = self.sbatch("-N", 2, "-n", 2, "-t", 5, "-w", "alpha03", "-x", "alpha04")
        first = self.rm.wait_job(pair, "RUNNING")["NodeList"]
        self.assertIn(first, ("alpha[01,03]", "alpha[02-03]"))
        without = self.sbatch("-n", 1, "-t", 5, "-x", "alpha[01-03]")
        self.assertEqual(self.rm.wait_job(without, "RUNNING")["NodeList"], "alpha04")
        self.assertIsNone(self.said("placed_otherwise"))
        waits = self.sbatch("-n", 4, "-N", 1, "-t", 5, "-w", "alpha02")
        ident = self.nui_id(waits)
        self.assertEqual(self.queue()[ident]["section"], "idle")
        self.assertEqual(self.rm.job(waits)["Partition"], "batch")
        self.rm.command("scancel", named, pair)
        self.assertEqual(self.rm.wait_job(waits, "RUNNING")["NodeList"], "alpha02")

    def test_array_a_few_at_a_time(self):
        """--array=0-2%1: one after the other, and Slurm is never asked for the second while one runs."""
        failed = self.log.read_text().count(" start_failed ")
        array = self.sbatch("-n", 1, "-t", 5, "--array=0-2%1", script="#!/bin/sh\nsleep 2\n")
        for task in range(3):
            self.wait_said("job_ended", f"slurm_job={array}_{task} ", "how=exited")
        self.assertEqual(self.log.read_text().count(" start_failed "), failed)
        runs = sorted((self.rm.job(f"{array}_{t}")["StartTime"], self.rm.job(f"{array}_{t}")["EndTime"])
                      for t in range(3))
        for (_, end), (start, _) in zip(runs, runs[1:]):
            self.assertLessEqual(end, start)

    def test_dependency_begin_time_and_array(self):
        first = self.sbatch("-n", 1, "-t", 5, script="#!/bin/sh\nsleep 3\n")
        then = self.sbatch("-n", 1, "-t", 5, "-d", f"afterok:{first}", script="#!/bin/sh\ntrue\n")
        array = self.sbatch("-n", 1, "-t", 5, "--array=0-3", script="#!/bin/sh\nsleep 1\n")
        later = self.sbatch("-n", 1, "-t", 5, "--begin=now+1hour")
        self.rm.wait_job(then, "COMPLETED")
        self.assertEqual(self.rm.job(first)["JobState"], "COMPLETED")
        wait_for("the array to end", lambda: self.rm.command(
            "squeue", "-h", "-a", "-j", array).stdout.strip() == "", 60)
        self.assertEqual(self.rm.job(later)["JobState"], "PENDING")
        for task in range(4):
            self.wait_said("job_ended", f"slurm_job={array}_{task} ", "how=exited")

    # ---- both sides

    def slurm_says(self, job, *states):
        return self.rm.wait_job(job, states, 40)

    def nui_says(self, ident, what, check):
        wait_for(f"nui to say that {ident} is {what}", lambda: check(self.detail(ident) or {}), 40, self.log, 0.1)

    def test_either_side_holds_and_releases(self):
        """A waiting job: held, released and cancelled, each by each side."""
        runs = self.sbatch("-n", 16, "-t", 5)
        self.rm.wait_job(runs, "RUNNING")
        job, there = self.sbatch("-n", 16, "-t", 5), self.sbatch("-n", 16, "-t", 5)
        ident, other = self.nui_id(job), self.nui_id(there)

        def held(yes):
            wait_for(f"Slurm to {'hold' if yes else 'release'} it",
                     lambda: self.rm.job(job)["Reason"].startswith("JobHeld") == yes, 40)
            self.nui_says(ident, "held" if yes else "released", lambda d: bool(d.get("holds")) == yes)
            self.assertEqual(self.queue()[ident]["section"], "blocked" if yes else "idle")
        for hold, release in ((("scontrol", "hold"), ("scontrol", "release")), (("sethold",), ("releasehold",)),
                              (("scontrol", "hold"), ("releasehold", "-a")), (("sethold",), ("scontrol", "release"))):
            for words, yes in ((hold, True), (release, False)):
                done = self.rm.command(*words, job) if words[0] == "scontrol" else self.here(*words, ident)
                self.assertEqual(done.returncode, 0, done.stderr)
                held(yes)
        self.here("canceljob", ident)
        self.slurm_says(job, "CANCELLED")
        self.rm.command("scancel", there, user=self.user)
        wait_for("nui to let it go", lambda: other not in (self.queue() or {other}), 40)

    def test_either_side_suspends_and_resumes(self):
        """A running job, that of a user of Slurm or one from the grid: suspended and resumed by each side; then
        cancelled by each."""
        there = self.sbatch("-n", 1, "-t", 5)
        self.rm.wait_job(there, "RUNNING")
        script = self.job_dir() / "long.sh"
        script.write_text("#!/bin/sh\nsleep 600\n")
        ours = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-n", 1, "-t", 300, script)
        self.wait_state(ours, ("Running",))
        ours = re.search(r" slurm_job=(\d+)", self.log.read_text().rsplit(" job_submitted ", 1)[1])[1]
        for job in (self.sbatch("-n", 1, "-t", 5), ours):
            self.rm.wait_job(job, "RUNNING")
            ident = self.nui_id(job)

            def suspended(yes):
                self.slurm_says(job, "SUSPENDED" if yes else "RUNNING")
                self.nui_says(ident, "suspended" if yes else "running",
                              lambda d: d and ("uspended" in json.dumps(d)) == yes)
            for stop, go_on in ((("suspend",), ("resume",)), (("mjobctl", "-s"), ("mjobctl", "-r")),
                                (("suspend",), ("mjobctl", "-r")), (("mjobctl", "-s"), ("resume",))):
                for words, yes in ((stop, True), (go_on, False)):
                    self.here(*words, ident) if words[0] == "mjobctl" else self.rm.scontrol(*words, job)
                    suspended(yes)
            self.here("canceljob", ident)
            self.slurm_says(job, "CANCELLED")
        self.rm.command("scancel", there, user=self.user)
        self.wait_said("job_ended", f"slurm_job={there} ", "how=cancelled")

    def test_requeue_waits_for_nui(self):
        """By either side; it runs again when nui says so. Slurm takes it for submitted anew each time: it is
        the same job all the same, also after a kill -9, and what was billed is not billed again."""
        job = self.sbatch("-n", 1, "-t", 5, "--requeue")
        self.rm.wait_job(job, "RUNNING")
        ident = self.nui_id(job)
        for restarts, act in ((1, lambda: self.rm.scontrol("requeue", job)),
                              (2, lambda: self.here("mjobctl", "-R", ident))):
            wait_for("the guard", lambda: self.rm.job(job)["Priority"] == "0", 20)
            chosen = self.log.read_text().count(" job_chosen ")
            act()
            wait_for("that run to be over", lambda: self.log.read_text().count(
                f"slurm_job={job} how=requeued") == restarts, 40, self.log)
            wait_for("it to run again", lambda: self.rm.job(job)["JobState"] == "RUNNING" and
                     self.rm.job(job)["Restarts"] == str(restarts), 60, self.log)
            self.assertGreater(self.log.read_text().count(" job_chosen "), chosen,
                               "it runs again and nui did not decide that")
        self.assertIsNone(self.said("started_without_us", f"rm_job={job} "))
        self.rm.command("scancel", job)
        self.wait_said("job_ended", f"slurm_job={job} ", "how=cancelled")
        billed = self.settled()["settled"]
        self.restart()
        self.assertEqual(self.log.read_text().count(f"slurm_job={job} how="), 3)
        self.assertEqual(self.settled()["settled"], billed)

    def restart(self):
        """kill -9, and on; what ended meanwhile is found. What the log says has been written down once a call is
        answered."""
        self.queue()
        caught = self.log.read_text().count(" caught_up ")
        self.grid.daemons["alpha"].kill()
        self.grid.daemons["alpha"].start()
        wait_for("alpha to have caught up", lambda: self.log.read_text().count(" caught_up ") > caught, 60, self.log)

    def test_started_behind_our_back(self):
        job = self.sbatch("-H", "-n", 1, "-t", 5)
        ident = self.nui_id(job)
        with self.grid.daemons["alpha"].process.halted():
            self.rm.release_past_nui(job)
            self.rm.wait_job(job, "RUNNING")
        self.wait_said("started_without_us", f"rm_job={job} ")
        wait_for("showq to say so", lambda: self.queue()[ident]["section"] == "active", 20)
        self.settled()
        before = self.balance()["settled"]
        self.rm.command("scancel", job)
        self.wait_said("job_ended", f"slurm_job={job} ")
        wait_for("it to be charged all the same", lambda: self.balance()["settled"] > before, 40)

    # ---- nodes

    def test_drain_and_resume(self):
        self.rm.scontrol("update", "nodename=alpha01", "state=drain", "reason=disk errors")
        try:
            self.wait_said("state", "node=alpha01", "drained", '"disk errors"')
            job = self.sbatch("-N", 1, "-n", 4, "-t", 5)
            self.assertNotEqual(self.rm.wait_job(job, "RUNNING")["NodeList"], "alpha01")
            self.assertRegex(self.here("checknode", "alpha01").stdout, r"State: +Drained  .*\nReason: +disk errors\n")
        finally:
            self.rm.scontrol("update", "nodename=alpha01", "state=resume")
        self.wait_said("state", "node=alpha01", "state=up")

    def test_a_node_dies_and_comes_back(self):
        """kill -9 of a slurmd and of what runs there: Slurm gives it up (SlurmdTimeout); a job that may not be
        requeued has failed with its node, the other one waits and runs again, by nui's decision."""
        lost = self.sbatch("-N", 1, "-n", 1, "-t", 5, "--no-requeue", "-w", "alpha03")
        again = self.sbatch("-N", 1, "-n", 1, "-t", 5, "--requeue", "-w", "alpha03")
        for job in (lost, again):
            self.rm.wait_job(job, "RUNNING")
        ident = self.nui_id(again)
        try:
            self.rm.kill("slurmd.alpha03")
            steps = self.rm.steps()
            for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped: none can tell of another's end
                for pid in steps:
                    try:
                        os.kill(pid, number)
                    except ProcessLookupError:
                        pass
            self.wait_said("state", "node=alpha03", "state=down", "NOT_RESPONDING", seconds=60)
            self.wait_said("job_ended", f"slurm_job={lost} ", "how=node_failure")
            self.wait_said("job_ended", f"slurm_job={again} ", "how=requeued")
            wait_for("nui to say why", lambda: re.search(r"State: +Down  .*\nReason: +Not responding\n", self.here(
                "checknode", "alpha03").stdout), 30)
            self.assertNotEqual(self.queue()[ident]["section"], "active")
        finally:
            self.rm.start_slurmd("alpha03")
            wait_for("it to be taken back", lambda: self.rm.command(
                "scontrol", "update", "nodename=alpha03", "state=resume").returncode == 0, 30, interval=0.5)
        wait_for("nui to have it again", lambda: "Down" not in self.raw("checknode", "alpha03").stdout, 60, self.log)
        self.assertEqual(self.rm.wait_job(again, "RUNNING")["NodeList"], "alpha03")

    # ---- outages

    def test_slurmctld_away(self):
        runs = self.sbatch("-n", 1, "-t", 5)
        self.rm.wait_job(runs, "RUNNING")
        waits = self.sbatch("-n", 16, "-t", 5)  # more than is free while the other runs
        ident = self.nui_id(waits)
        known = time.time()  # Slurm writes its state down a little later, and forgets what it did not
        self.rm.scontrol("update", f"jobid={waits}", "name=written")  # or it may have done so before we looked
        wait_for("Slurm's state to be on disk", lambda: self.rm.saved() > known, 60)
        self.rm.kill("slurmctld")
        self.wait_said("unreachable", "nothing is decided")
        self.assertIn(ident, self.queue())
        reached = self.log.read_text().count(" reached ")
        self.rm.start_ctld()
        wait_for("Slurm to be reached again",
                 lambda: self.log.read_text().count(" reached ") > reached, 60, self.log)
        self.assertEqual(self.rm.job(runs)["JobState"], "RUNNING")
        self.rm.command("scancel", runs)
        self.rm.wait_job(waits, "RUNNING", 90)

    def test_nui_local_away(self):
        """What ended meanwhile is billed once; what was submitted meanwhile is taken up."""
        self.settled()
        before = self.balance()["settled"]
        ends = self.sbatch("-n", 2, "-t", 5, script="#!/bin/sh\nsleep 600\n")
        self.rm.wait_job(ends, "RUNNING")
        goes_on = self.sbatch("-n", 1, "-t", 5)
        self.rm.wait_job(goes_on, "RUNNING")
        self.grid.daemons["alpha"].kill()
        self.rm.command("scancel", ends)
        ended = self.rm.wait_job(ends, "CANCELLED")
        new = self.sbatch("-n", 1, "-t", 5)
        self.grid.daemons["alpha"].start()
        self.rm.wait_job(new, "RUNNING")
        self.wait_said("job_ended", f"slurm_job={ends} ", "how=cancelled")
        self.assertEqual(self.rm.job(goes_on)["JobState"], "RUNNING")
        self.assertIsNone(self.said("started_without_us", f"rm_job={goes_on} "))
        for job in (goes_on, new):
            self.rm.command("scancel", job)
        wait_for("alpha's queue to be empty", lambda: self.queue() == {}, 60, self.log)
        self.settled()
        self.assert_books_close()
        self.assertGreater(self.balance()["settled"], before)
        self.assertEqual(self.log.read_text().count(f"slurm_job={ends} how="), 1)
        self.assertEqual(ended["JobState"], "CANCELLED")

    def test_a_restored_state(self):
        """What came after the copy that was put back is ended in Slurm as well, has failed and costs nothing; what Slurm has of
        the users' own goes on and is known again."""
        self.settled()
        before = self.sbatch("-n", 1, "-t", 5)
        self.rm.wait_job(before, "RUNNING")
        alpha, state = self.grid.daemons["alpha"], self.grid.layout.state / "alpha" / "local.db"
        kept = state.with_name("local.db.kept")
        with closing(sqlite3.connect(state)) as source, closing(sqlite3.connect(kept)) as copy:
            source.backup(copy)
        known = set(self.queue())
        after = self.sbatch("-n", 1, "-t", 5)
        self.rm.wait_job(after, "RUNNING")
        (forgotten,) = set(self.queue()) - known
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", "10:00", "-n", 1, self.gated_script("stray"))
        self.wait_state(ident, ("Running",))
        running = self.rm.command("squeue", "-h", "-a", "-t", "R", "-o", "%i").stdout.split()
        (stray,) = set(running) - {str(before), str(after)}
        alpha.kill()
        for end in ("-wal", "-shm"):
            state.with_name(f"local.db{end}").unlink(missing_ok=True)
        shutil.move(kept, state)
        alpha.start()
        self.wait_said("stray_ended", "job=alpha.")
        self.rm.wait_job(stray, "CANCELLED")
        lost = self.wait_state(ident, ("Failed",))
        self.assertIn("restored to a moment before the job came", lost["reason"])
        wait_for("alpha to know both of the users' own again", lambda: len(self.queue() or ()) == 2, 60, self.log)
        for job in (before, after):
            self.assertEqual(self.rm.job(job)["JobState"], "RUNNING")
            self.rm.command("scancel", job)
        wait_for("alpha's queue to be empty", lambda: self.queue() == {}, 60, self.log)
        # What the forgotten record of `after` held is nobody's any more: STALE_HOLD once it has expired, or by hand.
        held = json.loads(self.nui(layout.OPERATOR, "hold", "list", "--json").stdout)
        self.assertEqual([row["site_job"] for row in held], [forgotten])
        self.nui(layout.OPERATOR, "hold", "release", held[0]["hold"], "-d", "its record was lost")
        self.settled()
        self.assertEqual(self.charges(ident), [])
        self.assert_books_close()

    def test_requeued_while_nui_local_was_away(self):
        """The run that was over by then is billed once, to the second, whether the job waits for nui again or ran
        once more, by somebody else's doing, and ended before nui was back."""
        before = self.settled()["settled"]
        goes_on, ends = (self.sbatch("-n", 2, "-t", 5, "--requeue") for _ in range(2))
        first = {}
        for job in (goes_on, ends):
            first[job] = self.rm.wait_job(job, "RUNNING")
            wait_for("the guard", lambda: self.rm.job(job)["Priority"] == "0", 20)
            self.wait_said("job_started", f"job={self.nui_id(job)} ")
        self.grid.daemons["alpha"].kill()
        owed = 0
        for job in (goes_on, ends):
            started = moment(first[job], "StartTime")
            wait_for("it to have run for a while", lambda: time.time() > started + 3, 30)
            self.rm.scontrol("requeue", job)
            again = wait_for("it to be submitted anew", lambda: [
                moment(j, "SubmitTime") for j in [self.rm.job(job)]
                if j["JobState"] == "PENDING" and moment(j, "SubmitTime") > started], 30)[0]
            owed += 2 * int(again - started)
        wait_for("its node to have cleaned up", lambda: time.time() > again + 4, 30)
        self.rm.scontrol("update", f"jobid={ends}", "StartTime=now")
        self.rm.scontrol("release", ends)
        self.rm.wait_job(ends, "RUNNING", 60)
        self.rm.command("scancel", ends)
        ended = self.rm.wait_job(ends, "CANCELLED")
        owed += 2 * max(1, int(moment(ended, "EndTime") - moment(ended, "StartTime")))
        wait_for("that to be a while ago", lambda: time.time() > moment(ended, "EndTime") + 3, 30)
        self.grid.daemons["alpha"].start()
        for job in (goes_on, ends):
            self.wait_said("job_ended", f"slurm_job={job} ", "how=requeued")
        self.wait_said("job_ended", f"slurm_job={ends} ", "how=cancelled")
        self.rm.wait_job(goes_on, "RUNNING", 60)
        self.wait_said("job_started", f"job={self.nui_id(goes_on)} ")
        self.rm.command("scancel", goes_on)
        ended = self.rm.wait_job(goes_on, "CANCELLED")
        self.wait_said("job_ended", f"slurm_job={goes_on} ", "how=cancelled")
        owed += 2 * max(1, int(moment(ended, "EndTime") - moment(ended, "StartTime")))
        self.restart()
        self.assertEqual(self.settled()["settled"], before + owed)
        for job in (goes_on, ends):
            self.assertEqual(self.log.read_text().count(f"slurm_job={job} how="), 2)
        self.assert_books_close()

    def test_unseen_jobs_are_billed(self):
        """Started by somebody else and over while nui-local was away: charged to the second, once found in
        Slurm's list, once in its completion file (a slurmctld without its state knows no job, and counts anew:
        so this test is the last)."""
        owed = 0
        for forget in (False, True):
            if not forget:  # what ran for us just before is in those records, too, and has been paid
                ours = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-t", 60, SAMPLES / "hello.sh")
                self.wait_state(ours, ("Completed",))
                before = self.settled()["settled"]
                self.assertEqual(len(self.charges(ours)), 1)
            self.grid.daemons["alpha"].kill()
            job = self.sbatch("-n", 3, "-t", 5, script="#!/bin/sh\nsleep 2\n")
            self.rm.scontrol("update", f"jobid={job}", f"partition={real.HOLDING}")
            ended = self.rm.wait_job(job, "COMPLETED")
            owed += 3 * int(moment(ended, "EndTime") - moment(ended, "StartTime"))
            wait_for("Slurm to record it", lambda: f"JobId={job} " in self.rm.completions.read_text(), 30)
            if forget:
                self.rm.end("slurmctld")
                self.rm.start_ctld(forget=True)
                self.rm.wait_ready()
            self.grid.daemons["alpha"].start()
            wait_for("the charge", lambda: (self.balance() or {}).get("settled") == before + owed, 60, self.log)
        self.assertEqual(self.settled()["settled"], before + owed)
        self.assert_books_close()

    # ---- policy on real jobs

    def test_backfill(self):
        """Behind a job that needs everything, one that is over in time goes first; a longer one waits."""
        first = self.sbatch("-n", 12, "-t", 2, script="#!/bin/sh\nsleep 600\n")
        self.rm.wait_job(first, "RUNNING")
        large = self.sbatch("-n", 16, "-t", 5)
        self.nui_id(large)
        long = self.sbatch("-n", 1, "-t", 30)
        self.nui_id(long)
        short = self.sbatch("-n", 1, "-t", 1)
        self.rm.wait_job(short, "RUNNING")
        self.assertEqual(self.rm.job(large)["JobState"], "PENDING")
        self.assertEqual(self.rm.job(long)["JobState"], "PENDING")


if __name__ == "__main__":
    main()
