"""Statistics and reports of a simulation that stands at a fixed step: every figure is known, so whole
tables are compared."""
import time

from fixture import main
from onesite import SiteCase, wait_for

BEGIN = 1_000_000_800  # Sun Sep  9 02:00:00 2001 UTC


def job(name, user, tasks, limit, submit, run, queue="batch", account="proj"):
    at = BEGIN + submit
    return (f"{name} 0 {tasks} {user} grp {limit} Completed [{queue}:1] {at} {at} {at} {at + run} [NONE] "
            f"[NONE] [NONE] >= 0M >= 0M [NONE] {at} {tasks} -1 [NONE]:DEFAULT [NONE] {account} [NONE] [NONE] "
            "0 0.00 DEFAULT 1 0M 0M 0M 0 2140000000 [NONE] [DEFAULT] [NONE] [NONE] [DEFAULT] [NONE] [NONE]\n")


def stopped_at_an_hour(case, log, users):
    """A site of eight processors that stands an hour into the log."""
    site = case.site()
    site.write("NODECFG[n[1-2]] PROCS=4 MEM=1024\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\n"
               f"SERVERMODE SIMULATION\nSIMWORKLOADTRACEFILE {log}\nSIMSTOPITERATION 61\n"
               "SIMJOBSUBMISSIONPOLICY NORMAL\nSIMINITIALQUEUEDEPTH 1\nSIMAUTOSHUTDOWN FALSE\n"
               f"RMPOLLINTERVAL 00:01:00\n{users}"
               "CLASSCFG[batch] MAXJOB[USER]=3 MAXPROC[USER:cat]=7,8\n"
               "QOSCFG[hi] QFLAGS=PREEMPTOR,NTR OMAXJOB=5\n", gridmap=False)
    site.start()
    done = site.nui("schedctl", "--wait", "--json")
    assert done.returncode == 0, done.stderr
    return site


class Reports(SiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        log = cls.state / "log.trace"
        # Eight processors. ann has all for half an hour; bob waits for it; cat runs at the stop, dan waits.
        log.write_text("VERSION 230\n" + job("1", "ann", 8, 3600, 0, 1800) +
                       job("2", "bob", 4, 600, 0, 600, queue="short") + job("3", "ann", 2, 1200, 600, 300) +
                       job("4", "cat", 6, 7200, 900, 7200, account="other") +
                       job("5", "dan", 8, 3600, 1200, 60))
        cls.alpha = stopped_at_an_hour(cls, log, "USERCFG[ann] FSTARGET=40 MAXPROC=10,12\n")

    def table(self, *command):
        return self.ok(self.alpha, *command)

    def same(self, want, *command):
        self.assertEqual(self.table(*command), want)

    def test_showstats(self):
        """ann: 8 processors for 30 min of an hour, 2 for 5 min of 20 after 20 min in the queue; bob: 4 for
        10 min of 10 after half an hour; cat has 6 since 02:40."""
        tail = """
Eligible/Idle Jobs:                    1/1         (100.000%)
Active Jobs:                           1
Successful/Completed Jobs:             3/3         (100.000%)
"""
        self.same("""
maui active for       1:00:00  stats initialized on Sun Sep  9 02:00:00
""" + tail + """Avg/Max QTime (Hours):              0.28/0.50     
Avg/Max XFactor:                    2.33/4.00     

Dedicated/Total ProcHours:          6.83/8.00      (85.417%)

Current Active/Total Procs:            6/8         (75.000%)

Avg WallClock Accuracy:          58.333%
Avg Job Proc Efficiency:        100.000%
Est/Avg Backlog (Hours):            1.00/0.00    
""", "showstats")
        self.same("""
current scheduler time: Sun Sep  9 03:00:00 2001 (1000004400)
maui active for       1:00:00  stats initialized on Sun Sep  9 02:00:00
statistics for iteration    61  scheduler started on Sun Sep  9 02:00:00
""" + tail + """Preempt Jobs:                          0
Avg/Max QTime (Hours):              0.28/0.50     
Avg/Max XFactor:                    2.33/4.00     
Avg/Max Bypass:                     0.00/0.00     

Dedicated/Total ProcHours:          6.83/8.00      (85.417%)
Preempt/Dedicated ProcHours:        0.00/6.83      (0.000%)

Current Active/Total Procs:            6/8         (75.000%)
Current Active/Total Nodes:            2/2         (100.000%)

Avg WallClock Accuracy:          58.333%
Avg Job Proc Efficiency:        100.000%
Min System Utilization:          50.000% (on iteration 35)
Est/Avg Backlog (Hours):            1.00/0.00    
""", "showstats", "-v")

    HEAD = """statistics initialized Sun Sep  9 02:00:00

         |------ Active ------|--------------------------------- Completed -----------------------------------|
%-8s  Jobs Procs ProcHours Jobs    %%    PHReq    %%    PHDed    %%   FSTgt  AvgXF  MaxXF  AvgQH  Effic  WCAcc
"""

    def test_showstats_by_credential(self):
        self.same(self.HEAD % "user" + """\
ann          0     0      0.00    2  66.67    8.7  92.86    4.2  86.21 40.00   1.50   2.00   0.17 100.00  37.50
bob          0     0      0.00    1  33.33    0.7   7.14    0.7  13.79 -----   4.00   4.00   0.50 100.00 100.00
cat          1     6     10.00    0   0.00    0.0   0.00    0.0   0.00 -----   0.00   0.00   0.00   0.00   0.00


""", "showstats", "-u")
        self.same(self.HEAD % "acct" + """\
proj         0     0      0.00    3 100.00    9.3 100.00    4.8 100.00 -----   2.33   4.00   0.28 100.00  58.33
other        1     6     10.00    0   0.00    0.0   0.00    0.0   0.00 -----   0.00   0.00   0.00   0.00   0.00


""", "showstats", "-a")
        self.same(self.HEAD % "class" + """\
batch        1     6     10.00    2  66.67    8.7  92.86    4.2  86.21 -----   1.50   2.00   0.17 100.00  37.50
short        0     0      0.00    1  33.33    0.7   7.14    0.7  13.79 -----   4.00   4.00   0.50 100.00 100.00


""", "showstats", "-c")
        self.same(self.HEAD % "qos" + """\
DEFAULT      1     6     10.00    3 100.00    9.3 100.00    4.8 100.00 -----   2.33   4.00   0.28 100.00  58.33


""", "showstats", "-q")
        self.same(self.HEAD % "group" + """\
grp          1     6     10.00    3 100.00    9.3 100.00    4.8 100.00 -----   2.33   4.00   0.28 100.00  58.33


""", "showstats", "-g")

    def test_showstats_nodes(self):
        self.same("""

Node Memory Breakdown:

  Memory  Proc Percent  UpNHours Percent BusyNHours Percent
    1024     8  100.00         2  100.00          2  100.00
   TOTAL     8  100.00         2  100.00          2  100.00


Node Statistics

1024MB Nodes
            NodeName Available      Busy NodeState
                  n1   100.00%   100.00%      Busy
                  n2   100.00%    91.67%   Running
Summary:    2 1024MB Nodes  100.00% Avail   95.83% Busy  (Current: 100.00% Avail   50.00% Busy)

System Summary:    2 Nodes  100.00% Avail   95.83% Busy  (Current: 100.00% Avail   50.00% Busy)


""", "showstats", "-n")

    def grid(self, statistic, title, cells, rows, columns, footer):
        """cells by (row, column); rows and columns: their totals."""
        none = "------------"
        want = f"\n\nstatistics since Sun Sep  9 02:00:00\n\n{title}\n\n[ PROCS ]"
        want += "".join(f"[{h // 60:>4}:{h % 60:02}:00  ]" for h in (2 << c for c in range(12)))
        want += "[     TOTAL  ]\n"
        for r in range(10):
            want += f"[{1 << r:>5}  ]" + "".join(f"[{cells.get((r, c), none)}]" for c in range(12))
            want += f"[{rows.get(r, none)}]\n"
        want += "[ TOTAL ]" + "".join(f"[{columns.get(c, none)}]" for c in range(12)) + "\n" + footer
        want += "Total Samples:                    3\n\n\n\n"
        self.same(want, "showgrid", statistic)

    def test_showgrid(self):
        two, four, eight = (1, 4), (2, 3), (3, 5)  # 2 procs of 20 min, 4 of 10 min, 8 of an hour
        for statistic, title, values, footer in (
                ("AVGQTIME", "Average QueueTime (hours)", ("   0.33    1", "   0.50    1", "   0.00    1"),
                 "Job Weighted QueueTime:      0.2778\n"),
                ("AVGXFACTOR", "Average XFactor Grid", ("   2.00    1", "   4.00    1", "   1.00    1"),
                 "Job Weighted XFactor:        2.3333\nProc Weighted XFactor:       2.0000\n"
                 "PS Weighted XFactor:         1.4483\n"),
                ("MAXXFACTOR", "Maximum XFactor", ("   2.00    1", "   4.00    1", "   1.00    1"),
                 "Overall Max XFactor:         4.0000\n"),
                ("JOBCOUNT", "Job Count (jobs)", ("         1  ",) * 3,
                 "Total Jobs:                       3\n"),
                ("PHREQUEST", "ProcHour Request (percent of total)",
                 ("   7.14    1", "   7.14    1", "  85.71    1"), "Total PH Requested:            9.33\n"),
                ("PHRUN", "ProcHour Run (percent of total)",
                 ("   3.45    1", "  13.79    1", "  82.76    1"), "Total PH Run:                  4.83\n"),
                ("WCACCURACY", "WallClock Accuracy (percent)",
                 ("  25.00    1", " 100.00    1", "  50.00    1"), "Overall WallClock Accuracy:   51.786\n"),
                ("JOBEFFICIENCY", "Job Efficiency (percent)", (" 100.00    1",) * 3,
                 "Overall Job Efficiency:     100.000\n"),
                ("QOSDELIVERED", "Quality of Service Delivered (percent)", (" 100.00    1",) * 3,
                 "Overall QOS Delivered:      100.000\n")):
            cells = dict(zip((two, four, eight), values))
            self.grid(statistic, title, cells, {r: v for (r, _), v in cells.items()},
                      {c: v for (_, c), v in cells.items()}, footer)

    def test_profiler(self):
        head = "profile of %d jobs that ended from Sun Sep  9 %s to Sun Sep  9 %s\n\n%-16s    Jobs      %%" \
               "      PHReq      %%      PHDed      %%  AvgXF  MaxXF  AvgQH  MaxQH  Effic  WCAcc\n"
        self.same(head % (3, "02:30:00", "02:40:00", "user") + """\
ann                    2  66.67       8.67  92.86       4.17  86.21   1.50   2.00   0.17   0.33 100.00  37.50
bob                    1  33.33       0.67   7.14       0.67  13.79   4.00   4.00   0.50   0.50 100.00 100.00

""", "profiler", "-p", "user")
        self.same(head % (3, "02:30:00", "02:40:00", "hour") + """\
Sun Sep  9 02:00       3 100.00       9.33 100.00       4.83 100.00   2.33   4.00   0.28   0.50 100.00  58.33

""", "profiler", "-p", "hour")
        # from 02:35 on; ended before 02:40
        self.same(head % (1, "02:35:00", "02:35:00", "all") + """\
ALL                    1 100.00       0.67 100.00       0.17 100.00   2.00   2.00   0.33   0.33 100.00  25.00

""", "profiler", "-b", "2001-09-09T02:35:00Z", "-e", "2001-09-09T02:40:00Z")

    def test_diagnose_limits(self):
        """Limits across credentials, and a QoS's flags."""
        limits = {kind: {r["name"]: r["limits"] for r in self.data(self.alpha, "diagnose", kind)}
                  for kind in ("-u", "-c", "-Q")}
        self.assertEqual(limits["-u"]["ann"], "MAXPROC=10,12")
        self.assertEqual(limits["-c"]["batch"], "MAXJOB[USER]=3 MAXPROC[USER:cat]=7,8")
        self.assertEqual(limits["-Q"]["hi"], "OMAXJOB=5")
        qos = next(r for r in self.data(self.alpha, "diagnose", "-Q") if r["name"] == "hi")
        self.assertEqual(sorted(qos["flags"].split(",")), ["NTR", "PREEMPTOR"])
        self.assertIn("MAXJOB[USER]=3 MAXPROC[USER:cat]=7,8\n", self.table("diagnose", "-c"))

    def test_showbf(self):
        """Two processors are free until dan's reservation, when cat's limit ends."""
        self.same("""backfill window (user: 'root' group: '[ALL]' partition: ALL) Sun Sep  9 03:00:00

  2 procs available for       1:40:00



node n1 is unavailable (state 'Busy')
node n2 is blocked by reservation alpha.5 in 1:40:00

""", "showbf", "-v")
        self.refused(self.alpha, "showbf", "-v", "--json", code=2, says="-v, -S and -M are tables only")

    def test_diagnose(self):
        trace = self.state / "alpha" / "simulation.stats"
        wait_for("the trace", lambda: "(3 jobs)" in self.table("diagnose", "-S"), 30)
        self.same(f"""Scheduler: mode SIMULATION  active for 1:00:00 (since Sun Sep  9 02:00:00)
Iterations: 61  last Sun Sep  9 03:00:00  Live Jobs: 2
Trace: {trace} (3 jobs)

""", "diagnose", "-S")
        self.assertEqual([path.name for path in trace.iterdir()], [time.strftime("%a_%b_%d_%Y", time.localtime(BEGIN + 1800))])
        self.same("RM[TRACE]  type: 'TRACE'  state: 'Active'\n  Event Management:  (event interface disabled)\n\n",
                  "diagnose", "-R")
        self.same("""diagnosing memory table

    Memory Nodes    Up Procs  Free  Dedicated(MB)   Disk(MB)   Swap(MB)

      1024     2     2     8     2              0          0          0

""", "diagnose", "-m")
        rows = [("NODE", 2, 2, " 100.00%"), ("PROC", 8, 6, "  75.00%"), ("MEM", 2048, 0, "   0.00%"),
                ("SWAP", 0, 0, "   0.00%"), ("DISK", 0, 0, "   0.00%")]
        self.same("""Displaying Partition Status

System Partition Settings:  PList: DEFAULT PDef: DEFAULT

Name                    Procs

DEFAULT                     8

Partition    Configured         Up     U/C  Dedicated     D/U     Active     A/U

""" + "".join(f"{name}{'-' * (80 - len(name))}\n{'DEFAULT':<11} {has:>11} {has:>10}"
              f"{' 100.00' if has else '   0.00'}%" + 2 * f" {used:>10}{share}" + "\n"
              for name, has, used, share in rows) + """
Class/Queue State

             [<CLASS> <AVAIL>:<UP>]...

     DEFAULT [NONE]

""", "diagnose", "-t")


if __name__ == "__main__":
    main()
