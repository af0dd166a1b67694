"""Statistics, history, reports: showstats, showgrid, profiler, resetstats, showaudit, the rest of
diagnose, and the trace that the simulator reads back."""
import csv
import re

from admin_case import AdminCase, plain
from fixture import layout, main, wait_for

GRID = ["0:02:00", "0:04:00", "0:08:00", "0:16:00", "0:32:00", "1:04:00", "2:08:00", "4:16:00",
        "8:32:00", "17:04:00", "34:08:00", "68:16:00"]
SUMS = {"jobs": int, "jobs_percent": float, "successful": int, "ph_requested": float,
        "ph_requested_percent": float, "ph_dedicated": float, "ph_dedicated_percent": float,
        "avg_xfactor": float, "max_xfactor": float, "avg_queue_hours": float,
        "max_queue_hours": float, "efficiency": float, "wc_accuracy": float, "backfilled": int,
        "avg_bypass": float, "preempted": int, "qos_delivered": float}


def masked(text):
    """A table whose moments, spans and measured fractions are made alike."""
    text = re.sub(r" *(?<![\w.])\d+\.\d\d\d?(?![\d.])", " N", plain(text))
    return re.sub(r"(?<=12\.3 N) +\d+\.\d(?= N)", " #", text)  # hours dedicated


def grid_table(rows):
    """The body of showgrid JOBCOUNT for {(procs, column): jobs}."""
    def cells(counts):
        return "".join(f"[{n:>10}  ]" if n else "[------------]" for n in counts)
    sizes = [1 << i for i in range(10)]
    table = {size: [rows.get((size, c), 0) for c in range(12)] for size in sizes}
    lines = ["[ PROCS ]" + "".join(f"[{t:>10}  ]" for t in GRID) + "[     TOTAL  ]"]
    lines += [f"[{size:>5}  ]" + cells(table[size] + [sum(table[size])]) for size in sizes]
    lines.append("[ TOTAL ]" + cells([sum(table[s][c] for s in sizes) for c in range(12)]))
    return "\n".join(lines) + "\n"


class Stats(AdminCase):
    """Tests 1 look at the three jobs of setUp, 5 run more, 9 begins anew: unittest goes by name."""
    config = "STATDIR trace\nUSERCFG[DEFAULT] FSTARGET=25\n"
    ready = False

    def end(self, name, *options, code=0):
        """A job that runs and ends with that code; its site id."""
        _, site_id = self.submit(name, *options, code=code)
        self.wait_local(site_id, "Running")
        self.open_gate(name)
        self.wait_local(site_id, "Failed" if code else "Completed")
        return site_id

    def submit(self, name, *options, who="alice", code=0):
        ident = self.grid.submit(who, "-A", "phys", "--site", "alpha", *options,
                                 self.gated_script(name, code))
        return ident, wait_for(f"{ident} to be at alpha", lambda: self.at_site(ident), 30)

    def setUp(self):
        """Once: one that went well, one that failed, one cancelled in the queue, one while it ran."""
        cls = type(self)
        if cls.ready:
            return
        cls.first = self.end("first", "-n", 2, "-t", "0:10:00", "--name", "my-job")
        cls.second = self.end("second", "-n", 4, "-t", "1:00:00", code=3)
        cls.big = self.submit("fills", "-n", 8, "-t", "1:00:00")[1]
        self.wait_local(cls.big, "Running")
        cls.never = self.submit("never", "-n", 3, "-t", "0:05:00")[1]
        self.here("canceljob", cls.never)
        self.here("canceljob", cls.big)
        self.wait_local(cls.big, "Cancelled")
        cls.ready = True

    def schema(self, value, shape):
        """Exactly these keys, each of its type, or null where the type is a tuple with None."""
        self.assertEqual(list(value), list(shape))
        for key, kind in shape.items():
            if isinstance(kind, tuple) and value[key] is None:
                continue
            kind = kind[0] if isinstance(kind, tuple) else kind
            number = kind is float and isinstance(value[key], int) and not isinstance(value[key], bool)
            self.assertTrue(number or isinstance(value[key], kind), f"{key}: {value[key]!r}")

    def same_csv(self, *command):
        """--csv has the same columns and rows as --json."""
        rows = list(csv.reader(self.here(*command, "--csv").stdout.splitlines()))
        data = self.data(*command)
        data = data if isinstance(data, list) else [data]
        self.assertEqual(rows[0], list(data[0]))
        self.assertEqual(len(rows) - 1, len(data))
        self.assertEqual(len(self.here(*command, "--csv", "--noheader").stdout.splitlines()), len(data))

    # ---- showstats

    def test_1_showstats(self):
        self.assertEqual(masked(self.here("showstats").stdout), """
maui active for SPAN  stats initialized on DATE

Eligible/Idle Jobs:                    0/0         ( N%)
Active Jobs:                           0
Successful/Completed Jobs:             1/3         ( N%)
Avg/Max QTime (Hours): N/ N     
Avg/Max XFactor: N/ N     

Dedicated/Total ProcHours: N/ N      ( N%)

Current Active/Total Procs:            0/8         ( N%)

Avg WallClock Accuracy: N%
Avg Job Proc Efficiency: N%
Est/Avg Backlog (Hours): N/ N    
""")
        long = masked(self.here("showstats", "-v").stdout)
        self.assertEqual(re.sub(r"\d{4} \(\d+\)|(?<=iteration )( *\d+)", "#", long), """
current scheduler time: DATE #
maui active for SPAN  stats initialized on DATE
statistics for iteration #  scheduler started on DATE

Eligible/Idle Jobs:                    0/0         ( N%)
Active Jobs:                           0
Successful/Completed Jobs:             1/3         ( N%)
Preempt Jobs:                          0
Avg/Max QTime (Hours): N/ N     
Avg/Max XFactor: N/ N     
Avg/Max Bypass: N/ N     

Dedicated/Total ProcHours: N/ N      ( N%)
Preempt/Dedicated ProcHours: N/ N      ( N%)

Current Active/Total Procs:            0/8         ( N%)
Current Active/Total Nodes:            0/4         ( N%)

Avg WallClock Accuracy: N%
Avg Job Proc Efficiency: N%
Min System Utilization: N% (on iteration #)
Est/Avg Backlog (Hours): N/ N    
""")
        data = self.data("showstats")
        self.schema(data, {
            "site": str, "time": str, "active_for": str, "started_time": str, "since_time": str,
            "iteration": int, "eligible_jobs": int, "idle_jobs": int, "active_jobs": int,
            "completed_jobs": int, "successful_jobs": int, "preempted_jobs": int,
            "avg_queue_hours": float, "max_queue_hours": float, "avg_xfactor": float,
            "max_xfactor": float, "avg_bypass": float, "max_bypass": int, "ph_dedicated": float,
            "ph_total": float, "ph_preempted": float, "procs_active": int, "procs": int,
            "nodes_active": int, "nodes": int, "wc_accuracy": float, "efficiency": float,
            "min_utilization": (float, None), "min_utilization_iteration": int,
            "backlog_hours": float, "avg_backlog_hours": float})
        self.assertEqual((data["completed_jobs"], data["successful_jobs"], data["procs"]), (3, 1, 8))
        self.assertGreater(data["ph_total"], data["ph_dedicated"])
        self.assertGreater(data["ph_dedicated"], 0)
        self.same_csv("showstats")
        self.refused("showstats", code=3, account=self.account,
                     says="the system's statistics is for administrators (ADMIN3)")
        self.refused("showstats", "-u", "-g", code=2, says="one of -u, -g, -a, -c, -q, -n, -s, -S, -d and -f")
        self.refused("showstats", "extra", code=2, says="'extra' is too much")
        self.assertEqual(self.nui(layout.OPERATOR, "showstats", "--site", "alpha").returncode, 0)

    def test_1_showstats_by_credential(self):
        user = self.account
        head = """statistics initialized DATE

         |------ Active ------|--------------------------------- Completed -----------------------------------|
%-8s  Jobs Procs ProcHours Jobs    %%    PHReq    %%    PHDed    %%   FSTgt  AvgXF  MaxXF  AvgQH  Effic  WCAcc
"""
        row = "%-8s     0     0 N    3 N   12.3 N # N%s N N N N N\n"
        self.assertEqual(masked(self.here("showstats", "-u").stdout),
                         head % "user" + row % (user, " N") + "\n\n")
        self.assertEqual(masked(self.here("showstats", "-a").stdout),
                         head % "acct" + row % ("phys", " -----") + "\n\n")
        self.assertEqual(masked(self.here("showstats", "-q", "--noheader").stdout),
                         row % ("DEFAULT", " -----"))
        self.assertEqual(masked(self.here("showstats", "-c").stdout), head % "class" + "\n\n")
        shape = {"name": str, "active_jobs": int, "active_procs": int, "active_proc_hours": float,
                 "fs_target": (float, None), "fs_target_type": (str, None), **SUMS}
        for option in ("-u", "-g", "-a", "-q"):
            rows = self.data("showstats", option)
            self.assertEqual(len(rows), 1, option)
            self.schema(rows[0], shape)
            self.assertEqual((rows[0]["jobs"], rows[0]["successful"]), (3, 1))
            self.assertAlmostEqual(rows[0]["ph_requested"], (2 * 600 + 4 * 3600 + 8 * 3600) / 3600, 5)
        self.same_csv("showstats", "-u")
        self.assertEqual(self.data("showstats", "-u", user)[0]["fs_target"], 25)
        self.refused("showstats", "-u", "nobody", code=5, says="has no statistics of user nobody")
        self.refused("showstats", "-u", user, code=3, account=self.other,
                     says="other people's statistics is for administrators")
        self.refused("showstats", "-g", code=3, account=user, says="other than one's own is for")

    def test_5_showstats_of_what_runs(self):
        user = self.account
        running = self.submit("runs", "-n", 2, "-t", "2:00:00")[1]
        self.wait_local(running, "Running")
        active = self.data("showstats", "-u")[0]
        self.assertEqual((active["active_jobs"], active["active_procs"]), (1, 2))
        self.assertAlmostEqual(active["active_proc_hours"], 4, 1)
        # Plain users see their own line, and are told of others.
        self.assertEqual(self.data("showstats", "-u", account=user)[0]["name"], user)
        theirs = self.here("showstats", "-u", account=self.other).stdout
        self.assertIn("1 others are not shown: that is for administrators\n", theirs)
        counted = self.data("showstats", "-u")[0]["jobs"]
        self.here("canceljob", running)
        self.wait_local(running, "Cancelled")
        self.assertEqual(self.data("showstats", "-u")[0]["jobs"], counted + 1)

    def test_1_showstats_nodes(self):
        self.assertEqual(re.sub(r" +\d+(?= N(?!o))", " #", masked(self.here("showstats", "-n").stdout)), """

Node Memory Breakdown:

  Memory  Proc Percent  UpNHours Percent BusyNHours Percent
    2048 # N # N # N
   TOTAL # N # N # N


Node Statistics

2048MB Nodes
            NodeName Available      Busy NodeState
             alpha01 N% N%      Idle
             alpha02 N% N%      Idle
             alpha03 N% N%      Idle
             alpha04 N% N%      Idle
Summary:    4 2048MB Nodes N% Avail N% Busy  (Current: N% Avail N% Busy)

System Summary:    4 Nodes N% Avail N% Busy  (Current: N% Avail N% Busy)


""")
        rows = self.data("showstats", "-n")
        self.assertEqual([r["node"] for r in rows], ["alpha01", "alpha02", "alpha03", "alpha04"])
        self.schema(rows[0], {"node": str, "state": str, "memory": int, "procs": int,
                              "procs_dedicated": int, "total_time": str, "up_time": str,
                              "busy_time": str, "available_percent": float, "busy_percent": float})
        self.assertEqual([r["available_percent"] for r in rows], [100] * 4)
        self.assertTrue(all(0 < r["busy_percent"] < 100 for r in rows), rows)
        self.same_csv("showstats", "-n")
        self.refused("showstats", "-n", code=3, account=self.account, says="the nodes' statistics is for")

    # ---- showgrid

    def test_1_showgrid(self):
        body = grid_table({(2, 3): 1, (4, 5): 1, (8, 5): 1})
        self.assertEqual(plain(self.here("showgrid", "JOBCOUNT").stdout).splitlines()[:3],
                         ["", "", "statistics since DATE"])
        text = self.here("showgrid", "jobcount").stdout
        self.assertEqual(text[text.index("Job Count"):], "Job Count (jobs)\n\n" + body +
                         "Total Jobs:                       3\nTotal Samples:                    3\n\n\n\n")
        self.assertEqual(self.here("showstats", "-f", "JOBCOUNT").stdout, text)
        self.assertIn(body, self.here("profiler", "-m", "JOBCOUNT").stdout)
        titles = {"AVGXFACTOR": "Average XFactor Grid", "MAXXFACTOR": "Maximum XFactor",
                  "AVGQTIME": "Average QueueTime (hours)", "MAXQTIME": "Maximum QueueTime (hours)",
                  "AVGBYPASS": "Average Bypass Count", "MAXBYPASS": "Maximum Bypass Count",
                  "PHREQUEST": "ProcHour Request (percent of total)",
                  "PHRUN": "ProcHour Run (percent of total)",
                  "WCACCURACY": "WallClock Accuracy (percent)",
                  "BFCOUNT": "BackFill Jobs (percent of jobs run)",
                  "BFPHRUN": "BackFill ProcHour Run (percent of ProcHours run)",
                  "JOBEFFICIENCY": "Job Efficiency (percent)",
                  "QOSDELIVERED": "Quality of Service Delivered (percent)"}
        for name, title in titles.items():
            table = self.here("showgrid", name).stdout
            self.assertIn(f"\n{title}\n", table)
            self.assertEqual(len([line for line in table.splitlines() if line.startswith("[")]), 12)
            self.assertRegex(table, r"Total Samples: +3\n")
        share = {(r["procs"], r["walltime"]): r["value"] for r in self.data("showgrid", "PHREQUEST")}
        self.assertAlmostEqual(share[(2, "00:16:00")], 100 / 37, 4)
        self.assertAlmostEqual(share[(8, "1:04:00")], 100 * 24 / 37, 4)
        self.assertAlmostEqual(share[(None, None)], 100, 4)
        self.schema(self.data("showgrid", "WCACCURACY")[0],
                    {"statistic": str, "procs": (int, None), "walltime": (str, None), "jobs": int,
                     "value": (float, None)})
        self.assertEqual(self.data("showgrid", "QOSDELIVERED")[-1]["value"], 100)
        self.same_csv("showgrid", "JOBCOUNT")
        self.refused("showgrid", "NOSUCH", code=2, says="'NOSUCH' is no statistic: wanted AVGXFACTOR")
        self.refused("showgrid", code=2, says="name one statistic")
        self.refused("showgrid", "JOBCOUNT", code=3, account=self.account, says="(ADMIN3)")

    # ---- profiler

    def test_1_profiler(self):
        jobs = 3
        head = f"profile of {jobs} jobs that ended from DATE to DATE\n\n%-16s    Jobs      %%      PHReq" \
               "      %%      PHDed      %%  AvgXF  MaxXF  AvgQH  MaxQH  Effic  WCAcc\n"
        numbers = f" {jobs:>7}" + " N" * 11
        self.assertEqual(masked(self.here("profiler", "-p", "user").stdout),
                         head % "user" + f"{self.account:<16}{numbers}\n\n")
        self.assertEqual(masked(self.here("profiler").stdout),
                         head % "all" + f"{'ALL':<16}{numbers}\n\n")
        by_day = self.here("profiler", "-p", "day", "--noheader").stdout
        self.assertRegex(by_day, r"^\w\w\w \w\w\w [ \d]\d       ")
        self.schema(self.data("profiler", "-p", "account")[0],
                    {"name": (str, None), "time": (str, None), **SUMS})
        self.assertRegex(self.data("profiler", "-p", "hour")[0]["time"], r"T\d\d:00:00")
        self.same_csv("profiler", "-p", "group")
        self.assertEqual(self.data("profiler", "-b", "-1:00:00")[0]["jobs"], jobs)
        self.assertEqual(self.data("profiler", "-e", "-1:00:00"), [])
        self.assertEqual(self.data("profiler", "-u", "nobody"), [])
        self.assertEqual(self.data("profiler", "-A", "phys", "-Q", "DEFAULT")[0]["successful"], 1)
        self.assertEqual(self.data("profiler", "-u", self.account, account=self.account)[0]["jobs"], jobs)
        self.refused("profiler", code=3, account=self.account, says=f"-u {self.account} shows yours")
        self.refused("profiler", "-p", "colour", code=1, says="by 'colour': wanted user, group,")
        self.refused("profiler", "-p", "user", "-m", "PHRUN", code=2, says="one of -p and -m")
        self.refused("profiler", "-b", "-1", "-e", "-2:00", code=1, says="ends before it begins")
        self.refused("profiler", "-m", "NOSUCH", code=2, says="is no statistic")

    # ---- showaudit

    def test_5_showaudit(self):
        table = plain(self.here("showaudit", "-m", self.never).stdout)
        self.assertRegex(table, r"^No +When \(UTC\) +Who +What\n *\d+  DATE  root  canceljob " + self.never + "\n$")
        rows = self.data("showaudit")
        self.schema(rows[0], {"sequence": int, "time": str, "who": str, "what": str})
        self.assertEqual([r["sequence"] for r in rows],
                         sorted((r["sequence"] for r in rows), reverse=True))
        self.assertEqual(len(self.data("showaudit", "-n", 1)), 1)
        self.assertEqual(self.data("showaudit", "-u", "nobody"), [])
        self.assertEqual(self.data("showaudit", "-e", "-1:00:00"), [])
        self.same_csv("showaudit", "-n", 1)
        mine = self.submit("audited", "-n", 1, "-t", "60")[1]
        self.here("canceljob", mine, account=self.account)
        self.assertEqual([r["what"] for r in self.data("showaudit", "-u", self.account,
                                                       account=self.account)], [f"canceljob {mine}"])
        self.refused("showaudit", code=3, account=self.account, says="the audit log of others is for")
        self.refused("showaudit", "-n", 0, code=2, says="limit")
        self.wait_local(mine, "Cancelled")

    # ---- diagnose

    def test_1_diagnose(self):
        text = plain(self.here("diagnose", "-S").stdout)
        self.assertRegex(text, r"^Scheduler: mode NORMAL  active for SPAN \(since DATE\)\n"
                               r"Iterations: \d+  last DATE  Live Jobs: 0\nTrace: \S+/trace \(\d+ jobs\)\n\n$")
        self.schema(self.data("diagnose", "-S"),
                    {"time": str, "mode": str, "started_time": str, "iteration": int,
                     "last_iteration_time": (str, None), "jobs": int, "statdir": str,
                     "trace_jobs": int})
        self.assertRegex(self.here("diagnose", "-R").stdout,
                         r"^RM\[EMBEDDED\]  type: 'EMBEDDED'  state: 'Active'\n  Event Management:  \(events come at once\)\n"
                         r"BANK\[bank\]  server: '[\d.:]+'  state: 'Active'\n  Waiting Messages: 0\n"
                         r"META\[meta\]  server: '[\d.:]+'  state: 'Active'\n  Waiting Messages: 0\n\n$")
        self.assertEqual([r["kind"] for r in self.data("diagnose", "-R")], ["RM", "BANK", "META"])
        self.schema(self.data("diagnose", "-R")[1],
                    {"kind": str, "name": str, "state": str, "server": (str, None), "waiting": int,
                     "oldest_time": (str, None), "clock": (str, None)})
        self.assertEqual(self.here("diagnose", "-m").stdout, """diagnosing memory table

    Memory Nodes    Up Procs  Free  Dedicated(MB)   Disk(MB)   Swap(MB)

      2048     4     4     8     8              0          0          0

""")
        self.assertEqual(self.data("diagnose", "-m"), [
            {"memory": 2048, "nodes": 4, "nodes_up": 4, "procs": 8, "procs_free": 8,
             "memory_dedicated": 0, "disk": 0, "swap": 0}])
        parts = self.here("diagnose", "-t").stdout
        self.assertTrue(parts.startswith("Displaying Partition Status\n\nSystem Partition Settings:  "
                                         "PList: DEFAULT PDef: DEFAULT\n"), parts)
        self.assertIn("PROC" + "-" * 76 + "\nDEFAULT               8          8 100.00%          0   0.00%          0   0.00%\n",
                      parts)
        self.assertEqual(self.data("diagnose", "-t")[1],
                         {"partition": "DEFAULT", "resource": "PROC", "configured": 8, "up": 8,
                          "dedicated": 0, "in_use": 0})
        for option in ("-S", "-R", "-m", "-t"):
            self.same_csv("diagnose", option)
            self.refused("diagnose", option, code=3, account=self.account, says="is for administrators")

    # ---- history

    def trace(self):
        folder = self.grid.layout.config("alpha").parent / "trace"
        return sorted(folder.iterdir()) if folder.exists() else []

    def lines(self):
        return [line.split() for path in self.trace() for line in path.read_text().splitlines()
                if not line.startswith("VERSION")]

    def test_1_trace_and_back(self):
        """STATDIR has every ended job once, in Maui's 44 fields, and the simulator reads it."""
        wait_for("the trace", lambda: len(self.lines()) >= 4, 30)
        by_name = {line[0]: line for line in self.lines()}
        self.assertEqual(len(by_name), len(self.lines()))
        self.assertEqual({len(line) for line in self.lines()}, {44})
        first, never = by_name[self.first], by_name[self.never]
        self.assertEqual(first[:7], [self.first, "0", "2", self.account, first[4], "600", "Completed"])
        self.assertEqual((first[25], first[26], first[31], first[-1]), ("phys", "my-job", "1", "0"))
        self.assertEqual((by_name[self.second][6], by_name[self.second][-1]), ("Completed", "3"))
        self.assertEqual((by_name[self.big][6], never[6], never[9:12]), ("Removed", "Removed", ["0"] * 3))
        self.assertRegex(self.trace()[0].name, r"^\w\w\w_\w\w\w_\d\d_\d\d\d\d$")
        out = self.grid.layout.work / "jobs.csv"
        done = self.nui("alice", "sim", "--workload", self.trace()[0], "--nodes", 4,
                        "--procs-per-node", 2, "--jobs-out", out, "--config", self.write("sim.cfg", ""))
        self.assertEqual(done.returncode, 0)
        again = list(csv.DictReader(out.read_text().splitlines()))
        ran = [line for line in self.lines() if int(line[10]) > 0]
        self.assertEqual([int(r["procs"]) for r in again], [int(line[2]) * int(line[31]) for line in ran])
        self.assertEqual([int(r["end"]) - int(r["start"]) for r in again],
                         [int(line[11]) - int(line[10]) for line in ran])

    def test_5_kill_loses_nothing(self):
        wait_for("the trace", lambda: len(self.lines()) >= 4, 30)
        before, lines = self.data("showstats", "-u"), self.lines()
        since = self.data("showstats")["since_time"]
        self.grid.daemons["alpha"].kill()
        # A line that was being written when it died must not be there twice.
        with self.trace()[0].open("a") as torn:
            torn.write("alpha.99 0 2 half a li")
        self.grid.daemons["alpha"].start()
        wait_for("alpha to answer", lambda: self.grid.nui(layout.OPERATOR, "showq", "--site", "alpha")
                 .returncode == 0, 30)
        self.assertEqual(self.data("showstats", "-u"), before)
        self.assertEqual(self.data("showstats")["since_time"], since)
        job = self.end("after", "-n", 1, "-t", "60")
        wait_for("its line", lambda: any(line[0] == job for line in self.lines()), 30)
        self.assertEqual([line for line in self.lines() if line[0] != job], lines)

    # ---- resetstats

    def test_9_resetstats(self):
        history = self.data("profiler")
        self.refused("resetstats", code=3, account=self.account, says="resetting the statistics is for")
        done = self.nui("bob", "resetstats", "--site", "alpha", code=3)  # ADMIN2
        self.assertIn("is for ADMIN1", done.stderr)
        self.assertEqual(plain(self.here("resetstats").stdout), "statistics reset on DATE\n\n")
        self.assertEqual(self.data("showstats")["completed_jobs"], 0)
        self.assertEqual(self.data("showstats", "-u"), [])
        self.assertEqual(self.data("profiler"), history)
        self.assertEqual(self.data("showaudit", "-n", 1)[0]["what"], "resetstats")
        self.schema(self.data("resetstats"), {"reset_time": str})
        self.refused("resetstats", "now", code=2, says="'now' is too much")


if __name__ == "__main__":
    main()
