"""A site that ran Maui: every command and letter of Maui's means what it meant there, and what reads Maui's output
reads this one. One simulation that stands still, asked through the real client."""
import os
import re
import socket
import unittest
from pathlib import Path

import mauireaders as readers
from fixture import main
from onesite import SiteCase
from test_simulation import BEGIN, trace_job

# Eight processors on four nodes in two partitions; classes and QoS are named, a licence floats.
CONFIG = """NODECFG[n[1-2]] PROCS=2 MEM=1024 PARTITION=east
NODECFG[n3] PROCS=2 MEM=4096 PARTITION=west
NODECFG[n4] PROCS=2 MEM=2048 PARTITION=west FEATURES=fast CLASS=batch,short,small
NODECFG[GLOBAL] GRES=matlab:5
SIMJOBSUBMISSIONPOLICY NORMAL
SIMINITIALQUEUEDEPTH 1
SIMSTOPITERATION 2
SIMAUTOSHUTDOWN FALSE
RMPOLLINTERVAL 60
NODEALLOCATIONPOLICY FIRSTAVAILABLE
CLASSCFG[batch] PRIORITY=1
CLASSCFG[short] MAX.WCLIMIT=1:00:00 MAX.PROC=4
CLASSCFG[small] MAXPROC=2
QOSCFG[hi] PRIORITY=10
USERCFG[DEFAULT] QLIST=hi
USERCFG[ann] MAXJOB=1,1 FSTARGET=30
GROUPCFG[grp] MAXJOB=16
FSPOLICY DEDICATEDPS
"""
# ann has n1 for an hour, and MAXJOB keeps her second job; bob has three processors of west for two hours; cat waits for
# four in one partition: n1 and n2, at three.
JOBS = (("101", "ann", 2, 3600, "batch"), ("102", "bob", 3, 7200, "batch"), ("103", "ann", 1, 10800, "batch"),
        ("104", "cat", 4, 3600, "batch"))


class Maui(SiteCase):
    def setUp(self):
        log = self.state / "log.trace"
        log.write_text("VERSION 230\n" + "".join(
            trace_job(n, user, tasks, limit, BEGIN, limit, queue=klass, account="proj")
            for n, user, tasks, limit, klass in JOBS))
        self.alpha = self.site(self._testMethodName)
        self.alpha.write(f"SERVERMODE SIMULATION\nSIMWORKLOADTRACEFILE {log}\n{CONFIG}", gridmap=False)
        self.alpha.start()
        self.ok(self.alpha, "schedctl", "--wait")

    def tearDown(self):
        self.alpha.stop()

    def run_(self, *args):
        return self.ok(self.alpha, *args)

    def no(self, code, says, *args):
        self.refused(self.alpha, *args, code=code, says=says)

    def ids(self, *args):
        """Jobs that a listing of showq names, in its order."""
        return re.findall(r"^ *alpha\.(\d+)", self.run_(*args), re.M)

    # ---- the queue

    def test_showq(self):
        self.assertEqual(self.run_("showq", "-a"), self.run_("showq"))
        self.assertEqual(self.ids("showq"), ["101", "102", "104", "103"])
        self.assertEqual(self.ids("showq", "-p", "ALL"), ["101", "102", "104", "103"])
        self.assertEqual(self.ids("showq", "-p", "east"), ["101", "104", "103"], "who waits may come here")
        self.assertEqual(self.ids("showq", "-r", "-p", "west"), ["102"])
        self.no(5, "has no partition north", "showq", "-p", "north")
        self.no(2, "one of -r, -i, -b, -c and -a", "showq", "-a", "-r")
        plain, verbose = self.run_("showq", "-r").splitlines(), self.run_("showq", "-r", "-v").splitlines()
        self.assertTrue(verbose[0].startswith(plain[0]) and verbose[0].endswith("ACCOUNT      CLASS      QOS"))
        for short, long in zip(plain[2:4], verbose[2:4]):
            self.assertEqual(long, short + "          proj      batch  DEFAULT", "what is cut by column stays")
        self.assertRegex(plain[2], r"^ +alpha\.101  R eas ")
        self.assertRegex(plain[3], r"^ +alpha\.102  R wes ")
        self.assertTrue(self.run_("showq", "-i", "-v").splitlines()[2].endswith("proj      batch  DEFAULT"))

    def test_more_is_never_in_use_than_there_is(self):
        """A drained node whose job goes on counts with what the job has."""
        self.run_("mnodectl", "-m", "state=drained", "n1", "n3")
        text = self.run_("showq")
        self.assertIn("\n     2 Active Jobs       5 of    8 Processors Active (62.50%)\n", text)
        self.assertIn("\n                         3 of    4 Nodes Active      (75.00%)\n", text)
        self.run_("mnodectl", "-m", "state=drained", "n2", "n4")
        text = self.run_("showq")
        self.assertIn("\n     2 Active Jobs       5 of    5 Processors Active (100.00%)\n", text)
        self.assertIn("\n                         3 of    3 Nodes Active      (100.00%)\n", text)

    # ---- one job

    def test_checkjob(self):
        self.assertEqual(self.run_("checkjob", "-A", "101"),
                         "NAME=alpha.101;STATE=Running;UNAME=ann;GNAME=grp;ACCOUNT=proj;RCLASS=batch;WCLIMIT=3600;"
                         f"QUEUETIME={BEGIN};STARTTIME={BEGIN};TASKS=2;NODES=1;QOS=DEFAULT;PRIORITY=1;"
                         "PARTITION=east;HOLD=;TASKLIST=n1:n1;\n")
        self.run_("sethold", "-b", "104")
        self.assertRegex(self.run_("checkjob", "-A", "104"),
                         r"^NAME=alpha\.104;STATE=Idle;.*;STARTTIME=0;TASKS=4;NODES=0;.*;HOLD=Batch;TASKLIST=;\n$")
        self.no(2, "-A is a format of its own", "checkjob", "-A", "--json", "101")
        # -l: which limits count
        hard = self.run_("checkjob", "-l", "HARD", "103")
        self.assertIn("PolicyLevel: HARD: job alpha.103 violates active HARD MAXJOB limit of 1 for user ann", hard)
        self.assertIn("PolicyLevel: soft: job alpha.103 violates active SOFT MAXJOB",
                      self.run_("checkjob", "-l", "soft", "103"))
        off = self.run_("checkjob", "-l", "OFF", "103")
        self.assertIn("PolicyLevel: OFF: no limit keeps job alpha.103", off)
        self.assertIn("job can run in partition DEFAULT (1 procs available", off)
        self.no(1, "wanted HARD, SOFT or OFF", "checkjob", "-l", "HALF", "103")
        # -n: one node's verdict
        on_one = self.run_("checkjob", "-n", "n2", "103")
        self.assertIn("\nn2                       rejected : ReserveTime\n", on_one)
        self.assertNotIn("\nn1 ", on_one)
        self.no(5, "nothing is known of job alpha.103 on node n9", "checkjob", "-n", "n9", "103")
        # -r: whether a reservation lets it in
        self.run_("setres", "-u", "ann", "-n", "keep", "-s", "+9:00:00", "-d", "1:00:00", "n4")
        self.assertIn("job alpha.103 may use reservation 'keep.0'  (ACL: USER==ann+)\n",
                      self.run_("checkjob", "-r", "keep.0", "103"))
        self.assertIn("job alpha.104 may not use reservation 'keep.0'",
                      self.run_("checkjob", "-r", "keep.0", "104"))
        self.no(5, "has no reservation gone.0", "checkjob", "-r", "gone.0", "104")

    def test_estimates_wait_for_the_limit(self):
        """ann's second job has room at once, and may start when her first has ended."""
        self.assertIn("Earliest start in         00:59:00 on Sun Sep  9 03:00:00", self.run_("showstart", "103"))
        self.assertIn("Start: expected in 00:59:00 on Sun Sep  9 03:00:00", self.run_("checkjob", "103"))

    def test_refused_at_once(self):
        """What its class, a limit or a name forbids for ever is said when it comes."""
        script = self.state / "job.sh"
        script.write_text("#!/bin/sh\n")
        for options, says in ((("-q", "short", "-l", "walltime=1:00:01"),
                               "class short: a wallclock limit of 1:00:01 breaks MAX.WCLIMIT of 1:00:00"),
                              (("-q", "short", "-l", "procs=5"), "class short: 5 breaks MAX.PROC of 4"),
                              (("-q", "small", "-l", "procs=3"),
                               "asks for 3 of active MAXPROC, the limit of class small is 2"),
                              (("-q", "shrot",), "site alpha has no class shrot (it has batch, short, small)"),
                              (("-q", "shrot",), "site alpha has no class shrot"),  # nor has it by now
                              (("--qos", "hihi"), "site alpha has no QoS hihi (it has hi)")):
            limit = () if "walltime" in str(options) else ("-t", "10:00")
            self.no(1, says, "msub", *options, *limit, script)
        for options in (("-q", "short"), ("-q", "small"), ("--qos", "hi"), ()):
            self.run_("msub", *options, "-t", "10:00", script)

    def test_changes(self):
        self.run_("mjobctl", "-m", "wclimit+=1:00:00", "104")
        self.assertEqual(self.data(self.alpha, "mjobctl", "-q", "wclimit", "104")[0]["value"], "2:00:00")
        self.run_("mjobctl", "-m", "wclimit-=30:00", "104")
        self.assertEqual(self.data(self.alpha, "mjobctl", "-q", "wclimit", "104")[0]["value"], "1:30:00")
        self.no(1, "is no limit", "mjobctl", "-m", "wclimit-=2:00:00", "104")
        self.run_("mjobctl", "-m", "hold+=user", "104")
        self.run_("mjobctl", "-m", "hold=system", "104")
        self.assertEqual(self.data(self.alpha, "mjobctl", "-q", "holds", "104")[0]["value"], "User,System")
        self.assertEqual([(r["job_id"], r["user"], r["holds"]) for r in self.data(self.alpha, "showhold")],
                         [("alpha.104", "cat", "User,System")])
        self.run_("mjobctl", "-m", "hold-=all", "104")
        self.assertEqual(self.data(self.alpha, "showhold"), [])
        self.run_("mjobctl", "-m", "priority+=7", "104")
        self.assertEqual(self.data(self.alpha, "mjobctl", "-q", "priority", "104")[0]["value"], "8")
        self.no(2, "only wclimit, priority and hold can be added to", "mjobctl", "-m", "account+=x", "104")
        self.no(5, "site alpha has no class shrot (it has batch, short, small)", "mjobctl", "-m", "class=shrot", "104")
        self.assertEqual(self.run_("mjobctl", "-q", "diag", "104"), self.run_("checkjob", "-v", "104"))
        self.no(1, "cannot end by then", "setdeadline", "+1:00:00", "104")
        self.assertIn("job deadline adjusted", self.run_("setdeadline", "+2:00:00", "104"))
        self.run_("schedctl", "-S", "45", "--wait")  # 90 minutes are too long by now
        self.assertIn("it cannot end by its deadline", self.run_("checkjob", "104"))

    def test_runjob(self):
        self.no(1, "violates active HARD MAXJOB limit", "runjob", "-n", "n2", "103")
        self.no(1, "job cannot run", "runjob", "-f", "-n", "n1:n3", "103")
        self.no(5, "has no node n9", "runjob", "-f", "-n", "n9", "103")
        self.no(5, "has no partition north", "runjob", "-f", "-p", "north", "103")
        # n2 is promised to cat from three on: -f is past limits, -x past promises as well
        self.no(1, "job cannot run", "runjob", "-f", "-p", "east", "103")
        self.run_("runjob", "-x", "-c", "-p", "east", "103")
        self.assertIn("TASKLIST=n2;", self.run_("checkjob", "-A", "103"))
        self.run_("runjob", "-s", "103")
        self.assertIn("STATE=Suspended;", self.run_("checkjob", "-A", "103"))
        self.no(2, "-s suspends", "runjob", "-s", "-f", "103")

    # ---- nodes and reservations

    def test_nodes(self):
        self.assertEqual(re.findall(r"checking node (\S+)", self.run_("checknode", "ALL")),
                         ["n1", "n2", "n3", "n4", "GLOBAL"])
        self.assertIn("  Job 'alpha.102'(x1)  -00:01:00", self.run_("checknode", "n4"))
        self.assertIn("Gres:       [matlab 5:5]", self.run_("checknode", "GLOBAL"))
        script = self.state / "job.sh"
        script.write_text("#!/bin/sh\n")
        self.run_("msub", "-t", "10:00", "--licence", "matlab:2", script)
        self.run_("schedctl", "-S", "--wait")
        self.assertIn("Gres:       [matlab 3:5]", self.run_("checknode", "GLOBAL"))
        self.no(5, "has no node LOCAL", "checknode", "LOCAL")
        self.assertIn("node n1: address 127.0.0.1  priority 0  jobs alpha.101\n", self.run_("diagnose", "-n", "-v"))

    def test_showres(self):
        self.assertEqual(self.run_("showres", "-s"),
                         "Job  reservations: 3  active: 2  (3 nodes, 5 procs)\n"
                         "User reservations: 0  active: 0  (0 nodes, 0 procs)\n")
        self.run_("setres", "-a", "phys", "-n", "keep", "-s", "+9:00:00", "-d", "1:00:00", "n4")
        whole, relative = self.run_("showres"), self.run_("showres", "-r")
        self.assertIn("2001" if "2001" in whole else "Sun Sep  9", whole)
        self.assertNotIn("Sun Sep", relative)
        self.assertEqual(len(whole.splitlines()), len(relative.splitlines()))
        lines = self.run_("showres", "-n", "-g").splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["n1", "n1", "n2", "n3", "n4", "n4"], lines)
        self.assertEqual(re.findall(r"^(\S+\.\d+) ", self.run_("showres", "-p", "west"), re.M),
                         ["alpha.102", "keep.0"])
        self.assertIn("    ACL: ACCT==phys+\n", self.run_("showres", "-v", "keep.0"))
        self.assertIn("\n0 reservations located\n", self.run_("showres", "-g"))  # none is of a group
        self.no(2, "-s is sums alone", "showres", "-s", "-n")

    def test_mrsvctl(self):
        self.assertIn("reservation 'cat.0' created on 1 node (2 tasks)",
                      self.run_("mrsvctl", "-c", "-a", "USER==cat,CLASS==batch", "-h", "n4", "-s", "+9:00:00", "-d", "1:00:00"))
        self.run_("mrsvctl", "-c", "-a", "DURATION<=0:30:00", "-n", "brief", "-t", "1", "-s", "+9:00:00", "-d", "1:00:00")
        self.assertEqual(self.run_("mrsvctl", "-l"), self.run_("showres"))
        self.assertEqual(self.run_("mrsvctl", "-q", "ALL"), self.run_("diagnose", "-r"))
        self.assertIn("ACL: RES==cat.0= USER==cat+ CLASS==batch+ ", self.run_("mrsvctl", "-q", "cat.0"))
        self.assertIn("ACL: RES==brief.0= DURATION<=00:30:00+ ", self.run_("mrsvctl", "-q", "brief.0"))
        self.no(2, "say -h HOSTS or -t TASKS", "mrsvctl", "-c", "-a", "USER==cat")
        self.no(2, "wanted USER==NAME", "mrsvctl", "-c", "-a", "HAT==cat", "-t", "1")
        self.run_("mrsvctl", "-r", "cat.0", "brief.0")
        self.assertEqual(self.run_("showres", "-s").splitlines()[1], "User reservations: 0  active: 0  (0 nodes, 0 procs)")

    def test_showbf(self):
        """n2 and one processor of n4 are free; ann has all that she may have."""
        self.assertIn("no procs available\n(job  violates active HARD MAXJOB", self.run_("showbf", "-u", "ann"))
        every = self.run_("showbf", "-A")
        self.assertIn("(user: '[ALL]' group: '[ALL]' partition: ALL)", every)
        self.assertIn("  3 procs available for      00:59:00\n", every)
        self.assertEqual(self.run_("showbf", "-p", "ALL"), self.run_("showbf"))
        self.assertNotIn("  1 proc ", self.run_("showbf", "-r", "2"))
        self.assertIn("  1 proc available with no timelimit\n", self.run_("showbf", "-m", "==2048"))
        self.assertIn("no procs available\n", self.run_("showbf", "-m", ">4096"))
        self.assertIn("  2 procs available for      00:59:00\n", self.run_("showbf", "-m", "<2048"))
        self.assertEqual(self.run_("showbf", "-S", "--noheader").splitlines(),
                         ["n2                      2     1024        0        0         00:59:00",
                          "n4                      1     2048        0        0         INFINITY"])
        self.assertEqual([line.split()[0] for line in self.run_("showbf", "-M", "--noheader").splitlines()],
                         ["n4", "n2"], "the one with more memory first")
        self.assertEqual(len(self.run_("showbf", "-S", "-d", "2:00:00", "--noheader").splitlines()), 1)
        self.assertEqual(len(self.run_("showbf", "-S", "-f", "fast", "--noheader").splitlines()), 1)
        self.no(2, "-A is for everybody", "showbf", "-A", "-u", "ann")

    def test_estimated_starts(self):
        """Three processors are free now, until three but for one."""
        grid = self.run_("showgrid", "eststarttime")
        self.assertIn("Estimated Start Time (hours)", grid)
        rows = {int(m[1]): re.findall(r"\[ +([\d.]+) +1\]", m[0]) for m in re.finditer(r"(?m)^\[ +(\d+) +\]\[.*$", grid)}
        self.assertEqual(set(rows[1][:12]), {"0.00"})
        self.assertEqual(rows[2][:6], ["0.00"] * 5 + ["1.98"], "n2 until three, when it is promised; then what bob has")
        self.assertEqual(rows[16], [], "there are eight")
        self.no(2, "is no statistic", "profiler", "-m", "ESTSTARTTIME")

    # ---- the scheduler

    def test_parameters(self):
        self.assertEqual(self.run_("schedctl", "-l"), self.run_("showconfig"))
        short, whole = self.run_("showconfig").splitlines(), self.run_("showconfig", "-v").splitlines()
        self.assertTrue(any(line.startswith("RMPOLLINTERVAL") for line in short))
        self.assertGreater(len(whole), len(short), "-v: also what is of this machine")
        self.assertEqual(self.run_("schedctl", "-l", "reservationdepth"), "RESERVATIONDEPTH[0]               1\n")
        self.run_("schedctl", "-m", "RESERVATIONDEPTH[0] 2")
        self.assertEqual(self.run_("schedctl", "-l", "RESERVATIONDEPTH"), "RESERVATIONDEPTH[0]               2\n")
        self.no(5, "there is no parameter NONESUCH", "schedctl", "-l", "NONESUCH")
        self.no(2, "name a parameter and its value", "schedctl", "-m", "LOGLEVEL")

    def test_reports(self):
        self.assertEqual(self.run_("showstats", "-S"), self.run_("diagnose", "-S"))
        self.assertEqual(self.run_("showstats", "-d"), self.run_("profiler", "-p", "day"))
        self.assertEqual(self.run_("showstats", "-f"), self.run_("diagnose", "-f"))
        self.assertEqual(self.run_("showstats", "-f", "AVGXFACTOR"), self.run_("showgrid", "AVGXFACTOR"))
        self.assertEqual(self.run_("mdiag", "-j"), self.run_("diagnose", "-j"))
        self.assertIn("job alpha.103 violates active SOFT MAXJOB limit of 1",
                      self.run_("diagnose", "-q", "-l", "SOFT"))
        self.assertNotIn("job alpha", self.run_("diagnose", "-q", "-l", "OFF"))
        self.assertIn("job alpha.103: priority 1  (PolicyViolation)", self.run_("diagnose", "-j", "-v"))
        self.assertIn("job alpha.104\nComponent ", self.run_("diagnose", "-p", "-v"))
        self.assertIn("this site is alone", self.run_("diagnose", "-G"))
        self.no(2, "-l goes with -q and -j", "diagnose", "-n", "-l", "SOFT")
        self.no(2, "-v goes with -p, -q, -j and -n", "diagnose", "-t", "-v")


    def test_who_reads_maui_reads_this(self):
        """The readers are held against Maui's own output by the next test."""
        told = readers.information_provider(self.run_("showq"), self.run_("diagnose", "-g"))
        self.assertEqual(told, {
            "jobs": [("alpha.101", "ACTIVE", "Running", 2, 3540, BEGIN), ("alpha.102", "ACTIVE", "Running", 3, 7140, BEGIN),
                     ("alpha.104", "IDLE", "Idle", 4, 3600, BEGIN), ("alpha.103", "BLOCKED", "Idle", 1, 10800, BEGIN)],
            "running": {"ann": 1, "bob": 1}, "waiting": {"cat": 1, "ann": 1}, "limit": {"DEFAULT": None, "grp": 16},
            "active": 2, "used": 5, "procs": 8, "total": 4})
        job = readers.JobWatcher(self.run_("checkjob", "102"))
        self.assertEqual((job.state, job.used, job.limit, job.tasks, job.nodes, job.start, job.holds, job.why),
                         ("Running", 60, 7200, 3, {"n3": 2, "n4": 1}, "Sun Sep  9 02:00:00", [], None))
        self.assertEqual(job.creds, {"user": "bob", "group": "grp", "account": "proj", "class": "batch", "qos": "DEFAULT"})
        job = readers.JobWatcher(self.run_("checkjob", "103"))
        self.assertEqual((job.state, job.nodes, job.priority), ("Idle", {}, 1))
        self.assertIn("violates active HARD MAXJOB limit of 1 for user ann", job.why)
        self.run_("sethold", "-u", "104")
        self.assertEqual(readers.JobWatcher(self.run_("checkjob", "104")).holds, ["User"])
        said = readers.attributes(self.run_("checkjob", "-A", "102"))
        self.assertEqual((said["NAME"], said["STATE"], said["UNAME"], said["RCLASS"], int(said["WCLIMIT"]),
                          int(said["STARTTIME"]), int(said["TASKS"])),
                         ("alpha.102", "Running", "bob", "batch", 7200, BEGIN, 3))
        self.assertEqual(readers.nodes_of(self.run_("diagnose", "-n")),
                         {"n1": ("Busy", 0, 2, 1024, 1024), "n2": ("Idle", 2, 2, 1024, 1024),
                          "n3": ("Busy", 0, 2, 4096, 4096), "n4": ("Running", 1, 2, 2048, 2048)})
        self.assertEqual(readers.jobs_of(self.run_("diagnose", "-j"))["alpha.101"],
                         ("Running", 2, 3600, "ann", "grp", "proj", "batch"))
        self.assertEqual(readers.reservations_of(self.run_("showres"))["alpha.102"], ("Job", "R", -60, 7200, 2, 3))
        self.assertEqual(readers.start_of(self.run_("showstart", "103")), ("alpha.103", 1, 10800, 3540, 14340))
        self.assertEqual(readers.windows_of(self.run_("showbf", "-A")), [(3, 3540), (1, None)])

    def test_who_watches_maui_watches_this(self):
        """Monitors that take columns by their place, and the pages that administrators' scripts mail around."""
        self.assertEqual(readers.nodes_by_place(self.run_("diagnose", "-n")),
                         {"n1": ("Busy", "0:2", "1024:1024", 1.0, "eas", 0.0, 2),
                          "n2": ("Idle", "2:2", "1024:1024", 1.0, "eas", 0.0, 1),
                          "n3": ("Busy", "0:2", "4096:4096", 1.0, "wes", 0.0, 1),
                          "n4": ("Running", "1:2", "2048:2048", 1.0, "wes", 0.0, 1)})
        self.run_("schedctl", "-S", "10", "--wait")
        self.assertEqual(readers.node_monitor(self.run_("checknode", "n4")),
                         {"state": "Running", "since": 600, "procs": 2, "dedicated": 1, "load": 0.0, "features": ["fast"],
                          "classes": {"batch": "1:2", "short": "1:2", "small": "1:2"}, "total": 660, "active": 100.0, "jobs": ["alpha.102"]})
        jobs = readers.running(self.run_("showq", "-r"))
        self.assertEqual(jobs["alpha.101"], (" ", "R", "eas", "------", 1.0, "ann", "grp", "n1", 2, 2940))
        self.assertEqual(jobs["alpha.102"][7:], ("n3", 3, 6540))
        jobs, backlog = readers.waiting(self.run_("showq", "-i"))
        self.assertEqual((jobs["alpha.104"], backlog), ((True, 11, 1.2, "cat", 4, 3600, "batch"), 4.0))
        self.assertRegex(readers.blocked(self.run_("showq", "-b"))["alpha.103"][1], "^violates active HARD MAXJOB limit of 1 for user ann")
        self.assertEqual(readers.held_nodes(self.run_("showres", "-n"))[:2],
                         [("n1", "Job", "alpha.101", "Running", 2, -660, 3600), ("n1", "Job", "alpha.104", "Idle", 2, 2940, 3600)])
        shares = readers.fairshare(self.run_("diagnose", "-f"))
        self.assertEqual((shares["USER"]["ann"], shares["USER"]["bob"]), ((40.0, "30.00", "40.00"), (60.0, "", "60.00")))
        parts, classes = readers.partitions(self.run_("diagnose", "-t"))
        self.assertEqual(parts["PROC"], {"east": (4, 4, 2, 2), "west": (4, 4, 3, 3)})
        self.assertEqual(classes["batch"], (1, 2))
        self.assertEqual(readers.summary(self.run_("showstats")), (660, 1, 2, 2, 0, 0, 5, 8))
        self.assertEqual(readers.sums(self.run_("showstats", "-u"))["bob"], (1, 3, 5.45, 0, 0.0, 0.0, "-----", 0.0))
        self.assertEqual(readers.priorities(self.run_("diagnose", "-p"))["alpha.104"], (11, {"Serv": 100.0}))


    def test_providers_of_grids(self):
        """What information providers read of standing reservations, QoS and soft limits; and who is asked on which host."""
        self.alpha.stop()
        self.alpha.config.write_text(self.alpha.config.read_text() + """SRCFG[sdj] TASKCOUNT=1 RESOURCES=PROCS:1 PERIOD=INFINITY HOSTLIST=n4
SRCFG[sdj] CLASSLIST=short,small PRIORITY=10
SRCFG[rush] TASKCOUNT=1 RESOURCES=PROCS:2 PERIOD=INFINITY HOSTLIST=n3 CLASSLIST=batch
GROUPCFG[grp] QLIST=hi
""")
        self.alpha.start()
        self.ok(self.alpha, "schedctl", "--wait")
        told = self.run_("diagnose", "-r")
        self.assertEqual(readers.standing_slots(told), {"sdj.0.0": (["short", "small"], 1, ["n4"], 0),
                                                        "rush.0.0": (["batch"], 2, ["n3"], 2)})
        self.assertIn("    Attributes (HostList='n4'   Priority=10)\n", told)
        self.assertEqual(readers.credentials_of(told)["alpha.101"],
                         {"USER": "ann", "GROUP": "grp", "ACCT": "proj", "CLASS": "batch", "QOS": "DEFAULT",
                          "DURATION": "1:00:00", "PROC": "2"})
        jobs, of_jobs, total = readers.slots_of(self.run_("showres"))
        self.assertEqual((jobs, total - of_jobs), (len(readers.credentials_of(told)), 3))
        self.assertEqual(readers.complaints(self.run_("diagnose", "-j")), [])
        self.assertEqual(readers.qos_of(self.run_("diagnose", "-Q")),
                         ({"DEFAULT": (0, "[NONE]", []), "hi": (10, "[NONE]", ["grp"])}, ("DEFAULT", "DEFAULT")))
        self.assertEqual(readers.managers_of(self.run_("diagnose", "-R")), {"TRACE": ("TRACE", "Active")})
        self.assertEqual(readers.active_for(self.run_("showstats")), 60)
        text = self.run_("diagnose", "-q")
        self.assertIn(("alpha.103", "MAXJOB", "ann"), readers.soft_limits(text), text)
        for here in ("localhost", socket.gethostname()):
            self.assertEqual(self.run_("diagnose", "-g", f"--host={here}"), self.run_("diagnose", "-g"))
        self.no(5, "no SITECFG[ce.elsewhere]", "diagnose", "-g", "--host=ce.elsewhere")


@unittest.skipUnless(os.environ.get("NUI_SHARED"), "the shared reference is not here (NUI_SHARED)")
class OfMaui(unittest.TestCase):
    """What Maui itself printed, read by the same readers."""

    def of(self, name):
        return (Path(os.environ["NUI_SHARED"]) / "reference" / "maui-output" / f"{name}.txt").read_text()

    def test_readers(self):
        told = readers.information_provider(self.of("showq"), self.of("diagnose-u"))
        self.assertEqual((told["active"], told["used"], told["procs"], len(told["jobs"]), told["running"]["alice"]),
                         (7, 30, 32, told["total"], 3))
        self.assertEqual((told["limit"]["alice"], told["limit"]["carol"]), (3, None))
        self.assertEqual(told["jobs"][0][:5], ("1024", "ACTIVE", "Running", 8, 540))
        job = readers.JobWatcher(self.of("checkjob-running"))
        self.assertEqual((job.state, job.used, job.limit, job.tasks, job.nodes, job.creds["user"]),
                         ("Running", 1500, 14400, 4, {"node01": 3, "node03": 1}, "carol"))
        self.assertEqual(readers.JobWatcher(self.of("checkjob-held")).holds, ["Batch"])
        self.assertIn("violates active HARD MAXJOB limit of 3", readers.JobWatcher(self.of("checkjob-blocked")).why)
        self.assertEqual(readers.nodes_of(self.of("diagnose-n"))["node06"], ("Running", 1, 4, 512, 1024))
        self.assertEqual(readers.jobs_of(self.of("diagnose-j"))["1024"],
                         ("Running", 8, 600, "alice", "phys", "projA", "short"))
        self.assertEqual(readers.reservations_of(self.of("showres"))["1024"], ("Job", "R", -60, 600, 5, 8))
        self.assertEqual(readers.start_of(self.of("showstart-job"))[:4], ("1030", 12, 7200, 3300))
        self.assertEqual(readers.windows_of(self.of("showbf")), [(2, 7260), (1, 10500)])

    def test_watchers(self):
        node = readers.nodes_by_place(self.of("diagnose-n"))["node06"]
        self.assertEqual(node, ("Running", "1:4", "512:1024", 1.0, "DEF", 3.0, 4))
        page = readers.node_monitor(self.of("checknode"))
        self.assertEqual((page["state"], page["since"], page["dedicated"], page["classes"]["batch"], page["total"], page["active"],
                          page["jobs"]), ("Running", 3660, 3, "1:4", 7260, 61.98, ["1018"]))
        self.assertEqual(readers.running(self.of("showq-r"))["1024"],
                         ("+", "R", "DEF", "100.00", 4.9, "alice", "phys", "node01", 8, 540))
        jobs, backlog = readers.waiting(self.of("showq-i"))
        self.assertEqual((jobs["1030"], len(jobs), backlog), ((True, 198, 1.2, "dave", 12, 7200, "batch"), 3, 34.0))
        self.assertEqual(len(readers.blocked(self.of("showq-b"))), 9)
        self.assertEqual(readers.held_nodes(self.of("showres-n"))[0], ("node01", "Job", "1024", "Running", 1, -60, 600))
        shares = readers.fairshare(self.of("diagnose-f"))
        self.assertEqual((shares["USER"]["bob"], shares["GROUP"]["bio"]), ((47.09, "20.00-", "38.11"), (11.3, "", "15.03")))
        self.assertEqual(readers.priorities(self.of("diagnose-p"))["1030"],
                         (198, {"Cred": 0.0, "FS": 69.1, "Serv": 18.8, "Res": 12.1}))
        self.assertEqual(readers.sums(self.of("showstats-u"))["bob"], (2, 6, 11.23, 6, 37.5, 25.5, "20.00", 61.38))
        parts, classes = readers.partitions(self.of("diagnose-t"))
        self.assertEqual((parts["PROC"], classes), ({"DEFAULT": (36, 32, 30, 30)}, {"short": (24, 32), "batch": (10, 32)}))
        self.assertEqual(readers.summary(self.of("showstats")), (7260, 11, 14, 7, 16, 16, 30, 32))

    def test_providers(self):
        self.assertEqual(readers.standing_slots(self.of("diagnose-r")), {"short.0.0": (["short"], 1, [], 4)})
        self.assertEqual(readers.credentials_of(self.of("diagnose-r"))["1030"],
                         {"USER": "dave", "GROUP": "bio", "ACCT": "projC", "CLASS": "batch", "QOS": "DEFAULT",
                          "DURATION": "2:00:00", "PROC": "12"})
        self.assertEqual(readers.slots_of(self.of("showres")), (8, 42, 54))
        self.assertEqual(readers.complaints(self.of("diagnose-j")), [])
        found, system = readers.qos_of(self.of("diagnose-Q"))
        self.assertEqual((found["hi"], found["DEFAULT"], system),
                         ((1000, "PREEMPTOR", ["chem"]), (0, "[NONE]", ["chem"]), ("DEFAULT", "DEFAULT")))
        self.assertEqual(readers.managers_of(self.of("diagnose-R")), {"[DEFAULT]": ("PBS", "[NONE]")})
        self.assertEqual(readers.active_for(self.of("showstats")), 7260)
        self.assertEqual(len(readers.soft_limits(self.of("diagnose-q"))), 9)


if __name__ == "__main__":
    main()
