"""SIMULATION: the daemon with a clock of its own. Steps, stops, commands at each stop, and the same
starts as `nui sim` on the same log."""
import csv
import os
import random
import sqlite3
import subprocess
from contextlib import closing

from fixture import main
from onesite import SiteCase, layout, wait_for

NODES = 16


def swf(seed, count, procs_max=NODES):
    """A log that fills the machine: arrivals a little faster than it can take them."""
    draw = random.Random(seed)
    at, lines = 0, [f"; MaxProcs: {NODES}"]
    for number in range(1, count + 1):
        at += draw.randint(0, 400)
        procs = min(procs_max, 2 ** draw.randint(0, 4))
        limit = draw.choice((60, 300, 900, 3600))
        run = draw.randint(1, limit)
        lines.append(f"{number} {at} -1 {run} {procs} -1 -1 {procs} {limit} -1 1 {draw.randint(1, 4)} "
                     f"{draw.randint(1, 2)} -1 1 -1 -1 -1")
    return "\n".join(lines) + "\n"


POLICY = """BACKFILLPOLICY FIRSTFIT
NODEALLOCATIONPOLICY FIRSTAVAILABLE
RESERVATIONDEPTH[0] 2
JOBPRIOACCRUALPOLICY ALWAYS
USERCFG[u1] MAXJOB=3
"""

TRACE_NODES = "".join(
    f"COMPUTENODE AVAILABLE 0 node{n:02} [DEFAULT] 2048M {4096 if n > 6 else 1024}M 20000M 4 1 {n} 0 "
    f"Linux x86_64 [{'bigmem' if n > 6 else 'std'}] [batch:4][short:4] [ethernet] 1.0 [NONE] [NONE] "
    "[NONE]\n" for n in range(1, 9))


def trace_job(name, user, tasks, limit, submit, run, feature="[NONE]", queue="batch", account="[NONE]"):
    return (f"{name} 0 {tasks} {user} grp {limit} Completed [{queue}:1] {submit} {submit} {submit} "
            f"{submit + run} [NONE] [NONE] [NONE] >= 0M >= 0M {feature} {submit} {tasks} -1 [NONE]:DEFAULT "
            f"[NONE] {account} [NONE] [NONE] 0 0.00 DEFAULT 1 0M 0M 0M 0 2140000000 [NONE] [DEFAULT] [NONE] "
            "[NONE] [DEFAULT] [NONE] [NONE]\n")


BEGIN = 1_000_000_800  # 09 Sep 2001 02:00:00 UTC


class Simulation(SiteCase):
    def simulate(self, name, text):
        site = self.site(name)
        site.write(text, gridmap=False)
        return site

    def starts(self, site):
        """{number: (start, end)} in seconds, of the scratch database."""
        with closing(sqlite3.connect(f"file:{site.dir}/simulation.db?mode=ro", uri=True)) as db:
            return {n: (s // 10**6, e // 10**6) for n, s, e in
                    db.execute("SELECT number, start_us, end_us FROM job")}

    def stopped(self, site):
        return self.data(site, "schedctl", "--wait")[0]

    # ---- the same decisions

    def test_as_nui_sim(self):
        """Job for job, the daemon starts what `nui sim` starts, when it does."""
        log = self.state / "log.swf"
        log.write_text(swf(7, 300))
        site = self.simulate("same", POLICY + f"SERVERMODE SIMULATION\nSIMWORKLOADTRACEFILE {log}\n"
                             f"NODECFG[n[01-{NODES}]] PROCS=1\nSIMJOBSUBMISSIONPOLICY NORMAL\n"
                             "SIMINITIALQUEUEDEPTH 1\nSIMAUTOSHUTDOWN TRUE\n")
        policy = self.state / "policy.cfg"
        policy.write_text(POLICY)
        rows = self.state / "rows.csv"
        self.ok(site, "sim", "--config", policy, "--workload", log, "--nodes", NODES,
                "--jobs-out", rows)
        site.process.start([site.programs["nui-local"], "--config", site.config])
        wait_for("the simulation to end", site.process.died, 120, site.log)
        self.assertTrue(site.logged("sim over", "nothing is left", "jobs_left=0"), site.words())
        base = 946684800  # a log without dates counts from here
        expected = {int(r["job_id"]): (int(r["start"]), int(r["end"]))
                    for r in csv.DictReader(rows.read_text().splitlines())}
        found = {n: (s - base, e - base) for n, (s, e) in self.starts(site).items()}
        self.assertEqual(len(expected), 300)
        self.assertEqual(found, expected)

    def test_a_trace_and_nodecfg(self):
        """A resource trace beside NODECFG: what NODECFG says of a node of the trace counts (MAXJOB, PARTITION, SPEED not, which the
        trace says), and classes have as many initiators as the trace gives them: as in `nui sim`, job for job."""
        nodes, jobs, policy, rows = (self.state / f"both.{x}" for x in ("nodes", "jobs", "cfg", "csv"))
        nodes.write_text(TRACE_NODES.replace("[batch:4][short:4]", "[batch:2][short:4]"))
        jobs.write_text("VERSION 230\n" + "".join(
            trace_job(str(1001 + i), "alice", 1, 600, BEGIN + i, 300, queue="batch" if i % 2 else "short") for i in range(40)))
        text = POLICY + "NODECFG[node01] MAXJOB=1\nNODECFG[node03] CLASS=short\n"
        policy.write_text(text)
        site = self.simulate("both", text + f"SERVERMODE SIMULATION\nSIMWORKLOADTRACEFILE {jobs}\nSIMRESOURCETRACEFILE {nodes}\n"
                             "SIMJOBSUBMISSIONPOLICY NORMAL\nSIMINITIALQUEUEDEPTH 1\nSIMAUTOSHUTDOWN TRUE\n")
        self.ok(site, "sim", "--config", policy, "--workload", jobs, "--resources", nodes, "--jobs-out", rows)
        site.process.start([site.programs["nui-local"], "--config", site.config])
        wait_for("the simulation to end", site.process.died, 120, site.log)
        self.assertTrue(site.logged("sim over", "jobs_left=0"), site.words())
        expected = {int(r["job_id"]): (int(r["start"]), int(r["end"]))
                    for r in csv.DictReader(rows.read_text().splitlines())}
        self.assertEqual(len(expected), 40)
        found = self.starts(site)
        shift = min(s for s, _ in found.values()) - min(s for s, _ in expected.values())
        self.assertEqual({n: (s - shift, e - shift) for n, (s, e) in found.items()}, expected)
        batch = [s for n, (s, _) in found.items() if n % 2 == 0]
        together = max(sum(s <= t < s + 300 for s in batch) for t in batch)
        self.assertLessEqual(together, 13)  # 2 initiators of 6 nodes, one job on node01, none on node03
        self.assertGreater(max(s for s, _ in found.values()), min(s for s, _ in found.values()) + 299)

    # ---- steps

    def demo(self, name, more=""):
        """Eight nodes of four processors, one job a minute, stopped at iteration 10."""
        jobs = [("1001", "alice", 8, 3600, 0, 1800), ("1002", "bob", 16, 7200, 60, 3600),
                ("1003", "alice", 12, 1800, 120, 900), ("1004", "carol", 4, 600, 180, 300),
                ("1005", "bob", 8, 600, 240, 600), ("1006", "dave", 32, 3600, 300, 60),
                ("1007", "carol", 4, 14400, 600, 60)]
        (self.state / f"{name}.jobs").write_text(
            "VERSION 230\n" + "".join(trace_job(*j[:4], BEGIN + j[4], j[5]) for j in jobs))
        (self.state / f"{name}.nodes").write_text(TRACE_NODES)
        site = self.simulate(name, f"""SCHEDCFG[maui] MODE=SIMULATION SERVER=elsewhere PORT=40559
SIMWORKLOADTRACEFILE {self.state}/{name}.jobs
SIMRESOURCETRACEFILE {self.state}/{name}.nodes
SIMJOBSUBMISSIONPOLICY NORMAL
SIMINITIALQUEUEDEPTH 1
SIMSTOPITERATION 10
SIMAUTOSHUTDOWN FALSE
RMPOLLINTERVAL 60
NODEALLOCATIONPOLICY FIRSTAVAILABLE
{more}""")
        site.start()
        self.assertEqual(self.stopped(site)["iteration"], 10)
        return site

    def test_stopped_at_a_step(self):
        """Whole tables at a fixed step; times are the simulation's."""
        site = self.demo("demo")
        self.assertEqual(self.ok(site, "showq"), """ACTIVE JOBS--------------------
JOBNAME            USERNAME      STATE  PROC   REMAINING            STARTTIME

alpha.1005              bob    Running     8    00:09:00  Sun Sep  9 02:08:00
alpha.1001            alice    Running     8    00:51:00  Sun Sep  9 02:00:00
alpha.1002              bob    Running    16     1:52:00  Sun Sep  9 02:01:00

     3 Active Jobs      32 of   32 Processors Active (100.00%)
                         8 of    8 Nodes Active      (100.00%)

IDLE JOBS----------------------
JOBNAME            USERNAME      STATE  PROC     WCLIMIT            QUEUETIME

alpha.1003            alice       Idle    12    00:30:00  Sun Sep  9 02:02:00
alpha.1006             dave       Idle    32     1:00:00  Sun Sep  9 02:05:00

2 Idle Jobs

BLOCKED JOBS----------------
JOBNAME            USERNAME      STATE  PROC     WCLIMIT            QUEUETIME


Total Jobs: 5   Active Jobs: 3   Idle Jobs: 2   Blocked Jobs: 0
""")
        self.assertEqual(self.data(site, "schedctl"), [
            {"mode": "SIMULATION", "iteration": 10, "stopped": True, "stop_at": 10,
             "stop_time": None, "resume_time": None,
             "time": "2001-09-09T02:09:00Z", "interval": "00:01:00", "over": False,
             "acts": None, "started": 0, "alike": 0, "differences": None}])
        self.assertEqual(self.ok(site, "schedctl", "-S"),
                         "scheduling will stop in 00:01:00 at iteration 11\n\n")
        self.assertEqual(self.stopped(site)["time"], "2001-09-09T02:10:00Z")
        self.assertEqual(self.ok(site, "schedctl", "-s", "5I"),
                         "scheduling will stop immediately at iteration 11\n\n")
        self.assertEqual(self.ok(site, "schedctl", "-S", "20I"),
                         "scheduling will stop in 00:20:00 at iteration 31\n\n")
        self.stopped(site)
        self.assertIn("job 1003 requires", self.ok(site, "showstart", "1003").replace("alpha.", ""))
        self.assertEqual(self.ok(site, "schedctl", "-s", "40"),
                         "scheduling will stop in 00:09:00 at iteration 40\n\n")
        self.stopped(site)
        self.assertEqual(self.ok(site, "schedctl"),
                         "mode SIMULATION, iteration 40, scheduling is stopped\n")
        # hold one, let it run out: the rest ends, the held one stays
        self.ok(site, "sethold", "-u", "1006")
        self.assertEqual(self.ok(site, "schedctl", "-r"), "scheduling will resume immediately\n\n")
        self.assertTrue(self.stopped(site)["over"])
        self.assertEqual([j["job_id"] for j in self.data(site, "showq")["blocked"]], ["alpha.1006"])
        self.ok(site, "releasehold", "-u", "1006")
        self.ok(site, "schedctl", "-S", "--wait")
        self.assertEqual([j["job_id"] for j in self.data(site, "showq")["active"]], ["alpha.1006"])
        self.ok(site, "canceljob", "1006")
        wait_for("it to be gone", lambda: not self.data(site, "showq")["active"], 30)
        self.assertEqual(self.data(site, "checkjob", "1006")["job"]["state"], "Cancelled")
        with closing(sqlite3.connect(f"file:{site.dir}/simulation.db?mode=ro", uri=True)) as db:
            audit = [what for what, in db.execute("SELECT what FROM audit ORDER BY sequence")]
        self.assertIn("schedctl step 20", audit)
        self.assertIn("canceljob alpha.1006", audit)

    def test_by_the_clock(self):
        """-S for so long, -s and setres at a moment: all by the simulation's clock."""
        site = self.demo("clock")
        self.assertEqual(self.ok(site, "schedctl", "-S", "0:20:30"),
                         "scheduling will stop in 00:20:30 at Sun Sep  9 02:29:30\n\n")
        state = self.stopped(site)
        self.assertEqual((state["time"], state["iteration"]), ("2001-09-09T02:30:00Z", 31))
        self.ok(site, "schedctl", "-s", "02:40", "--wait")
        self.assertEqual(self.ok(site, "schedctl", "-s", "+0:05:00"),
                         "scheduling will stop in 00:05:00 at Sun Sep  9 02:45:00\n\n")
        self.assertEqual(self.stopped(site)["time"], "2001-09-09T02:45:00Z")
        self.refused(site, "schedctl", "-s", "2001-09-09T01:00:00Z", code=1, says="that moment is over")
        self.refused(site, "schedctl", "-r", "+1:00:00", code=1, says="a simulation's time stands")
        row = self.data(site, "setres", "-s", "04:00", "-d", "1:00:00", "TASKS==1")[0]
        self.assertEqual(row["start_time"], "2001-09-09T04:00:00Z")
        script = self.state / "later.sh"
        script.write_text("#!/bin/sh\n")
        job = self.ok(site, "msub", "-a", "04:30", "-t", "5:00", script).strip()
        self.assertRegex(self.data(site, "mjobctl", "-q", "starttime", job)[0]["value"], "2001-09-09T0[45]:")

    def test_windows_of_some_nodes(self):
        site = self.demo("windows", "NODECFG[DEFAULT] FEATURES=x\n")
        self.ok(site, "canceljob", "1001", "1002", "1005")
        self.ok(site, "sethold", "1003", "1006")
        self.ok(site, "schedctl", "-S", "--wait")
        self.ok(site, "canceljob", "1007")
        self.ok(site, "schedctl", "-S", "--wait")

        def free(*options):
            return [(r["procs"], r["nodes"]) for r in self.data(site, "showbf", *options)]
        self.assertEqual(free(), [(32, 8)])
        self.assertEqual(free("-f", "bigmem"), [(8, 2)])
        self.assertEqual(free("-m", "2G"), [(8, 2)])
        self.assertEqual(free("-f", "std", "-m", "2G"), [])
        self.assertEqual(free("-p", "DEFAULT", "-n", "8"), [(32, 8)])
        self.assertEqual(free("-n", "9"), [])
        self.assertIn("partition: DEFAULT)", self.ok(site, "showbf", "-p", "DEFAULT"))
        self.refused(site, "showbf", "-p", "nowhere", code=5, says="has no partition nowhere")
        self.refused(site, "showbf", "-f", "golden", code=5, says="has the feature golden")

    def test_suspend(self):
        """A suspended job stands still, its processors are another's, and it ends that much later."""
        site = self.demo("suspend")
        end = self.data(site, "checkjob", "1001")["job"]["end_time"]
        self.ok(site, "mjobctl", "-s", "1001")
        self.assertEqual(self.data(site, "checkjob", "1001")["job"]["state"], "Suspended")
        self.ok(site, "schedctl", "-S", "10", "--wait")
        self.ok(site, "canceljob", "1002", "1003", "1006")
        self.ok(site, "mjobctl", "-r", "1001")
        self.ok(site, "schedctl", "-S", "--wait")
        job = self.data(site, "checkjob", "1001")["job"]
        self.assertEqual(job["state"], "Running")
        self.assertGreater(job["end_time"], end)
        self.ok(site, "schedctl", "-r", "--wait")
        start, finish = self.starts(site)[1001]
        self.assertGreaterEqual(finish - start, 1800 + 600)  # its run time, and what it stood still

    def test_over_though_time_has_more(self):
        """A standing reservation comes every day; when nothing has run for HORIZON it is over."""
        site = self.demo("standing", "HORIZON 1:00:00:00\nSRCFG[x] TASKCOUNT=1 PERIOD=DAY "
                         "STARTTIME=8:00:00 ENDTIME=9:00:00 USERLIST=alice\n")
        self.ok(site, "sethold", "-u", "1006")
        self.ok(site, "schedctl", "-r", "--wait")
        self.assertTrue(self.stopped(site)["over"])
        self.assertEqual(len(self.data(site, "showq")["blocked"]), 1)

    def test_run_by_hand_and_recycle(self):
        """runjob at a stop starts at that moment; -R begins anew; -k ends."""
        site = self.demo("hand")
        self.ok(site, "canceljob", "1002")
        wait_for("room", lambda: len(self.data(site, "showq")["active"]) == 2, 30)
        self.ok(site, "runjob", "1003")
        job = wait_for("it to run", lambda: next(
            (j for j in self.data(site, "showq")["active"] if j["job_id"] == "alpha.1003"), None), 30)
        self.assertEqual(job["start_time"], "2001-09-09T02:09:00Z")
        self.ok(site, "schedctl", "-S", "15", "--wait")
        self.assertEqual(self.data(site, "checkjob", "1003")["job"]["state"], "Completed")
        self.assertEqual(self.ok(site, "schedctl", "--recycle"), "nui-local begins again\n\n")
        wait_for("it to begin anew", lambda: len(site.logged("site_ready")) == 2, 60, site.log)
        wait_for("iteration 10", lambda: site.nui("schedctl", "--wait").returncode == 0, 60)
        self.assertEqual(self.stopped(site)["iteration"], 10)
        self.assertEqual(len(self.data(site, "showq")["active"]), 3)
        self.assertEqual(self.ok(site, "schedctl", "-k"), "nui-local shuts down\n\n")
        wait_for("it to end", site.process.died, 30)

    def test_nodes_trace(self):
        """schedctl -n is a resource trace that a simulation reads."""
        site = self.demo("nodes")
        text = self.ok(site, "schedctl", "-n")
        self.assertEqual(len(text.splitlines()), 8)
        self.assertRegex(text.splitlines()[6], r"^COMPUTENODE AVAILABLE 0 node07 \[DEFAULT\] 2048M 4096M "
                         r"20000M 4 1 7 0 \[NONE\] \[NONE\] \[bigmem\] \[batch:4\] \[NONE\] 1 ")
        (self.state / "again.nodes").write_text(text)
        again = self.simulate("again", f"SERVERMODE SIMULATION\nSIMSTOPITERATION 1\nSIMRESOURCETRACEFILE "
                              f"{self.state}/again.nodes\n")
        again.start()
        self.assertEqual(len(self.ok(again, "schedctl", "-n").splitlines()), 8)

    # ---- depths, limits of the parameters

    def test_constant_depth(self):
        site = self.demo("depth", "SIMJOBSUBMISSIONPOLICY CONSTANTJOBDEPTH\nSIMINITIALQUEUEDEPTH 4\n")
        # four came at the beginning, as of then, and others as soon as fewer than four waited
        self.assertEqual(sorted(self.starts(site)), [1001, 1002, 1003, 1004, 1005, 1006, 1007])
        for job in (1001, 1004):
            self.assertEqual(self.data(site, "checkjob", job)["job"]["submit_time"],
                             "2001-09-09T02:03:00Z")

    def test_accuracy_and_scaling(self):
        site = self.demo("scaled", "SIMWCACCURACY 50\nSIMWCSCALINGPERCENT 200\nSIMNODECOUNT 4\n")
        jobs = {j["job_id"]: j for s in ("active", "idle", "blocked")
                for j in self.data(site, "showq")[s]}
        self.assertEqual(jobs["alpha.1001"]["walltime"], "2:00:00")
        self.assertNotIn("alpha.1006", jobs, "more processors than four nodes have")
        self.ok(site, "schedctl", "-S", "60", "--wait")
        self.assertEqual(self.starts(site)[1001], (BEGIN, BEGIN + 3600))

    def test_refused_configurations(self):
        site = self.simulate("bad", "SERVERMODE SIMULATION\n")
        for text, says in (
                ("SERVERMODE SIMULATION\n", "a simulation needs nodes"),
                ("SERVERMODE SIMULATOR\n", "wanted NORMAL, TEST, INTERACTIVE or SIMULATION"),
                ("SERVERMODE TEST\nSCHEDCFG[x] MODE=NORMAL\nNODECFG[a] PROCS=1\n", "two modes"),
                ("SERVERMOED NORMAL\nNODECFG[a] PROCS=1\n", "unknown parameter"),
                ("SERVERMODE NORMAL\n", "NODECFG names no node"),
                ("SERVERMODE SIMULATION\nNODECFG[a] PROCS=1\nSIMWORKLOADTRACEFILE /nonexistent\n",
                 "/nonexistent"),
                ("SERVERMODE SIMULATION\nNODECFG[a] PROCS=1\nSIMSTOPITERATION 9\nSIMEXITITERATION 3\n",
                 "is after SIMEXITITERATION"),
                ("META 127.0.0.1:1\nNODECFG[a] PROCS=1\n", "META without BANK")):
            site.write(text, gridmap=False)
            done = self.run_check(site)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(says, done.stderr)
        site.write("NODECFG[a] PROCS=1\n", gridmap=False)
        self.assertEqual(self.run_check(site).returncode, 0)
        done = self.run_check(site, "--mode", "SIMUL")
        self.assertEqual((done.returncode, "wanted NORMAL" in done.stderr), (2, True), done.stderr)
        self.assertEqual(self.run_check(site, "--mode=simulation").returncode, 0)

    def run_check(self, site, *options):
        return subprocess.run([site.programs["nui-local"], "--config", site.config, "--check", *options],
                              capture_output=True, text=True, timeout=600)

    def test_who_may(self):
        site = self.demo("who", f"ADMIN3 {layout.account_of('alice')}\n")
        if os.geteuid() != 0:
            self.skipTest("needs to be root: other accounts use the socket")
        three, plain = layout.account_of("alice"), layout.account_of("bob")
        self.assertEqual(self.data(site, "schedctl", account=three)[0]["iteration"], 10)
        for option in ("-s", "-S", "-r", "-k", "-R"):
            self.refused(site, "schedctl", option, code=3, says="is for ADMIN1", account=three)
        self.refused(site, "schedctl", code=3, says="is for administrators (ADMIN3)", account=plain)
        self.refused(site, "schedctl", "-s", "-r", code=2, says="one of -s, -S, -r")
        self.refused(site, "schedctl", "-Smany", code=2, says="many")
        self.refused(site, "schedctl", "-S", "0", code=1, says="at least one iteration")
        all_of_them = self.demo("all", "ADMIN3 ALL\n")
        self.assertEqual(self.data(all_of_them, "schedctl", account=plain)[0]["iteration"], 10)
        self.refused(all_of_them, "schedctl", "-s", code=3, says="is for ADMIN1", account=plain)


if __name__ == "__main__":
    main()
