"""Maui's commands on a cluster: whole tables, JSON, refusals, over the socket and from anywhere."""
import json
import re
import sqlite3
import subprocess

from admin_case import AdminCase, plain
from fixture import layout, main, wait_for


class Admin(AdminCase):
    # ---- showq

    def three_jobs(self):
        """Two run (4 and 2 of 8 processors), the third is over alice's MAXJOB."""
        made = []
        for name, tasks in (("one", 4), ("two", 2)):
            made.append(self.submit(name, "-n", tasks, "-t", "1:00:00")[1])
            self.wait_local(made[-1], "Running")
        made.append(self.submit("three", "-n", 1, "-t", "0:30:00")[1])
        wait_for("the third to be blocked", lambda: self.data("showq")["blocked"], 30)
        return made

    def test_showq(self):
        one, two, three = self.three_jobs()
        user = self.account
        table = plain(self.here("showq").stdout)
        self.assertEqual(table, f"""ACTIVE JOBS--------------------
JOBNAME            USERNAME      STATE  PROC   REMAINING            STARTTIME

{one:<18} {user:>8}    Running     4 SPAN  DATE
{two:<18} {user:>8}    Running     2 SPAN  DATE

     2 Active Jobs       6 of    8 Processors Active (75.00%)
                         3 of    4 Nodes Active      (75.00%)

IDLE JOBS----------------------
JOBNAME            USERNAME      STATE  PROC     WCLIMIT            QUEUETIME


0 Idle Jobs

BLOCKED JOBS----------------
JOBNAME            USERNAME      STATE  PROC     WCLIMIT            QUEUETIME

{three:<18} {user:>8}       Idle     1 SPAN  DATE

Total Jobs: 3   Active Jobs: 2   Idle Jobs: 0   Blocked Jobs: 1
""")
        reasons = self.here("showq", "-b").stdout
        self.assertEqual(reasons, f"""           JobName      User               Reason

{three:>18} {user:>9} violates active HARD MAXJOB limit of 2 for user {user}  (R: 1, U: 2)
""")
        running = plain(self.here("showq", "-r", "--noheader").stdout).splitlines()
        self.assertEqual(len(running), 2)
        self.assertRegex(running[0], rf"^ +{re.escape(one)}  R DEF ------ +1\.0 DE +{user} +\w+ +alpha01 "
                                     r" +4 SPAN  DATE$")
        both = self.here("--json", "showq").stdout
        self.assertEqual(set(json.loads(both)), {"site", "time", "active", "idle", "blocked", "procs",
                                                 "procs_active", "nodes", "nodes_active", "hidden"})
        row = json.loads(both)["blocked"][0]
        self.assertEqual((row["job_id"], row["user"], row["account"], row["procs"], row["walltime"]),
                         (three, user, "phys", 1, "00:30:00"))
        csv = self.here("showq", "--csv").stdout.splitlines()
        self.assertTrue(csv[0].startswith("section,job_id,grid_job_id,user,"))
        self.assertEqual([line.split(",")[0] for line in csv[1:]], ["active", "active", "blocked"])

    def test_showq_is_ones_own(self):
        one, *_ = self.three_jobs()
        mine = self.data("showq", account=self.account)
        self.assertEqual((len(mine["active"]), mine["hidden"]), (2, 0))
        none = self.here("showq", account=self.other).stdout
        self.assertIn("Total Jobs: 0 ", none)
        self.assertIn("3 jobs of other people are not shown", none)
        self.refused("showq", "-u", self.account, code=3, account=self.other,
                     says="you may see your own jobs only")
        self.refused("showq", "-r", "-i", code=2, says="one of -r, -i, -b, -c and -a")
        self.assertEqual(len(self.data("showq", "-u", self.other)["active"]), 0)
        # With a certificate: bob is ADMIN2 by his identity, the operator sees everything.
        for who in ("bob", layout.OPERATOR, "alice"):
            done = self.nui(who, "showq", "--site", "alpha", "--json")
            self.assertEqual(len(json.loads(done.stdout)["active"]), 2, who)
        done = self.nui("bob", "showq", "--site", "beta")
        self.assertIn("Total Jobs: 0 ", done.stdout)

    # ---- checkjob

    def test_checkjob(self):
        one, two, three = self.three_jobs()
        user, group = self.account, "games" if self.account == "games" else None
        text = self.here("checkjob", "-v", three).stdout
        shape = plain(text)
        self.assertTrue(shape.startswith(f"\n\nchecking job {three}\n\nState: Idle\n"
                                         f"Creds:  user:{user}  group:{group or ''}"), shape)
        self.assertIn(f"cannot select job {three} for partition DEFAULT (job {three} violates active "
                      f"HARD MAXJOB limit of 2 for user {user}  (R: 1, U: 2))\n", shape)
        self.assertIn(f"Limit: HARD MAXJOB 2 for user {user}  used: 2  this job: 1\n", shape)
        self.assertIn("\nRejection Reasons: [State        :    3]\n", shape)
        self.assertIn("alpha04                  accepted : 2 tasks supported\n", shape)
        self.assertIn("Clears: in SPAN on DATE\n", shape)
        data = self.data("checkjob", three)
        self.assertEqual(data["job"]["limit_usage"], 2)
        self.assertEqual(data["rejections"], {"State": 3})
        clears, started = data["job"]["clears_time"], self.data("checkjob", one)["job"]["end_time"]
        self.assertEqual(clears, started, "when the first of the two reaches its limit")
        running = plain(self.here("checkjob", one.split(".")[1]).stdout)
        self.assertIn("NodeCount: 2\nAllocated Nodes:\n[alpha01:2][alpha02:2]\n", running)
        self.assertIn(f"Reservation '{one}' ( SPAN -> SPAN  Duration: SPAN)", running)
        # five processors are not there for one that is within the limit
        self.here("canceljob", two)
        wait_for("its end", lambda: self.data("checkjob", two)["job"]["state"] == "Cancelled", 20)
        self.wait_local(three, "Running")

    def test_checkjob_refusals(self):
        one = self.submit("mine", "-n", 1, "-t", "60")[1]
        self.refused("checkjob", "99999", code=5, says="job alpha.99999 is not known at site alpha")
        self.refused("checkjob", "nonsense", code=1, says="nonsense")
        self.refused("checkjob", code=2, says="name one job")
        self.refused("checkjob", one, code=3, account=self.other, says=f"job {one} is not yours")
        self.assertEqual(self.data("checkjob", one, account=self.account)["job"]["job_id"], one)

    # ---- canceljob

    def test_canceljob(self):
        one = self.submit("end", "-n", 1, "-t", "60")[1]
        self.refused("canceljob", one, code=3, account=self.other, says="is not yours")
        self.assertNotIn("Cancelled", self.data("checkjob", one)["job"]["state"])
        self.assertEqual(self.here("canceljob", one, account=self.account).stdout,
                         f"\n\njob '{one}' cancelled\n\n")
        wait_for("its end", lambda: self.data("checkjob", one)["job"]["state"] == "Cancelled", 20)
        self.assertIn((self.account, f"canceljob {one}"), self.audit())
        self.refused("canceljob", one, code=1, says="has ended already")
        self.refused("canceljob", "77777", code=5, says="not known")
        two = self.submit("end2", "-n", 1, "-t", "60")[1]
        done = self.nui("bob", "canceljob", "--site", "alpha", "--json", two)  # ADMIN2
        self.assertEqual(json.loads(done.stdout), [{"job_id": two, "cancelled": True}])
        self.assertIn((f"nui://{layout.GRID}/user/bob", f"canceljob {two}"), self.audit())
        three = self.submit("end3", "-n", 1, "-t", "60")[1]
        done = self.nui(layout.OPERATOR, "canceljob", "--site", "alpha", three, code=3)  # ADMIN3
        self.assertIn("is for ADMIN2", done.stderr)

    # ---- showbf, showstart, showres, checknode, showstate

    def test_when(self):
        one, two, three = self.three_jobs()
        user = self.account
        shape = plain(self.here("showbf").stdout)
        self.assertTrue(shape.startswith("backfill window (user: 'root' group: '[ALL]' partition: ALL) "
                                         "DATE\n\n  2 procs available with no timelimit\n"), shape)
        nothing = self.here("showbf", account=user).stdout  # at his limit of two jobs
        self.assertIn("no procs available\n", nothing)
        self.assertIn("MAXJOB limit of 2", nothing)
        self.assertEqual(self.data("showbf", "-u", user), [])
        self.assertEqual([w["procs"] for w in self.data("showbf", "-d", "1:00:00")], [2])
        self.refused("showbf", "-v", code=3, account=self.other, says="seeing the nodes is for")
        self.refused("showbf", "-u", "nobodyknows", code=5, says="knows no user nobodyknows")
        self.refused("showbf", "-d", "soon", code=2, says="soon")

        start = plain(self.here("showstart", "8@1:00:00").stdout)
        self.assertEqual(start, "job 8@ SPAN requires 8 procs for SPAN\n"
                                "Earliest start in SPAN on DATE\n"
                                "Earliest completion in SPAN on DATE\nBest Partition: DEFAULT\n\n")
        told = self.data("showstart", "8@1:00:00")
        self.assertEqual(told["start_time"], self.data("checkjob", two)["job"]["end_time"])
        self.assertEqual(self.data("showstart", one)["start_time"],
                         self.data("checkjob", one)["job"]["start_time"])
        self.refused("showstart", "64@1:00:00", code=1,
                     says="cannot determine earliest start time for job '64@1:00:00'")
        self.refused("showstart", "x@1:00", code=2, says="processors")
        self.refused("showstart", three, code=3, account=self.other, says="is not yours")

    def test_reservations_and_nodes(self):
        one, two, three = self.three_jobs()
        table = plain(self.here("showres").stdout)
        self.assertEqual(table, f"""Reservations

ReservationID       Type S       Start         End    Duration    N/P    StartTime

{one:<18}   Job R SPAN SPAN SPAN    2/4    DATE
{two:<18}   Job R SPAN SPAN SPAN    1/2    DATE

2 reservations located

""")
        by_node = self.here("showres", "-n").stdout
        self.assertIn("3 nodes reserved\n", by_node)
        self.assertRegex(by_node, rf"\n +alpha01 +Job +{re.escape(one)} +Running +2 ")
        rows = self.data("showres", "-n")
        self.assertEqual([(r["node"], r["tasks"]) for r in rows if r["reservation_id"] == one],
                         [("alpha01", 2), ("alpha02", 2)])
        theirs = self.here("showres", account=self.other).stdout
        self.assertIn("0 reservations located", theirs)
        self.assertIn("2 reservations of other people are not shown", theirs)
        self.refused("showres", three, code=5, says="has no reservation")

        node = plain(self.here("checknode", "-v", "alpha01").stdout)
        # what is measured, and of what machine
        node = re.sub(r"Utilized   Resources: .*\n", "", node)
        node = re.sub(r"Opsys: .*\n", "", re.sub(r"Load:       \d\.\d{3}", "Load:       0.000", node))
        node = re.sub(r"\(\d+\.\d\d%\)", "(SHARE)", node)
        self.assertEqual(node, f"""

checking node alpha01

State:      Busy  (in current state for SPAN)
Configured Resources: PROCS: 2  MEM: 2048M
Dedicated  Resources: PROCS: 2
Speed:      1.00  Load:       0.000
Location:   Partition: DEFAULT  Address: 127.0.0.1  Priority: 0
Network:    [NONE]
Features:   [NONE]
Attributes: [Batch]
Classes:    [NONE]

Total Time: SPAN  Up: SPAN (SHARE)  Active: SPAN (SHARE)

Reservations:
  Job '{one}'(x2) SPAN -> SPAN ( SPAN)
JobList:  {one}

""")
        data = self.data("checknode", "alpha04")
        self.assertEqual((data["node"]["state"], data["reservations"]), ("Idle", []))
        self.refused("checknode", "alpha99", code=5, says="has no node alpha99")
        self.refused("checknode", "alpha01", code=3, account=self.account, says="is for administrators")
        self.refused("showstate", code=3, account=self.account, says="seeing the nodes is for")

        state = plain(self.here("showstate").stdout)
        self.assertIn("usage summary:  2 active jobs  3 active nodes\n", state)
        self.assertIn("Frame       1: [A][A][B][ ]  alpha01 to alpha04\n", state)
        self.assertEqual([n["state"] for n in self.data("showstate")], ["Busy", "Busy", "Busy", "Idle"])

    # ---- sethold, releasehold, setspri, runjob, mjobctl

    def blocked(self, site_id):
        return site_id in [r["job_id"] for r in self.data("showq", "-b")["blocked"]]

    def restart(self):
        self.grid.daemons["alpha"].kill()
        self.grid.daemons["alpha"].start()
        wait_for("alpha to answer", lambda: self.grid.nui(layout.OPERATOR, "showq", "--site", "alpha")
                 .returncode == 0, 30)

    def filled(self):
        """One job has all processors, another waits."""
        big = self.submit("big", "-n", 8, "-t", "1:00:00")[1]
        self.wait_local(big, "Running")
        return big, self.submit("waits", "-n", 2, "-t", "0:10:00")[1]

    def test_holds(self):
        big, waits = self.filled()
        self.refused("sethold", waits, code=3, account=self.account,
                     says="a system or batch hold is for administrators (ADMIN2)")
        self.refused("sethold", "-u", waits, code=3, account=self.other, says="is not yours")
        self.refused("sethold", "-b", big, code=1, says="has started")
        self.refused("sethold", code=2, says="name at least one job")
        self.assertEqual(self.data("checkjob", waits)["holds"], [])
        self.assertEqual(self.here("sethold", "-u", waits, account=self.account).stdout,
                         "\njob holds adjusted\n")
        self.here("mjobctl", "-h", "batch", waits)
        self.assertEqual(self.data("checkjob", waits)["holds"], ["User", "Batch"])
        self.assertIn(("root", f"holds of {waits}: set batch released none"), self.audit())
        wait_for("it to be blocked", lambda: self.blocked(waits), 20)
        self.restart()  # killed: what was acknowledged is still there
        self.assertEqual(self.data("checkjob", waits)["holds"], ["User", "Batch"])
        text = self.here("checkjob", waits).stdout
        self.assertIn(f"Holds:    User  Batch\n", text)
        self.assertIn(f"cannot select job {waits} for partition DEFAULT (job hold active)\n", text)
        self.refused("releasehold", "-a", waits, code=3, account=self.account, says="(ADMIN2)")
        self.here("releasehold", "-b", waits)
        self.here("mjobctl", "-u", "all", waits, account=self.account)
        self.assertEqual(self.data("checkjob", waits)["holds"], [])
        self.refused("mjobctl", "-h", "wrong", waits, code=1, says="wanted User, System or Batch")

    def test_priority(self):
        big, first = self.filled()
        second = self.submit("second", "-n", 2, "-t", "0:10:00")[1]

        def order():
            rows = self.data("showq")
            return [r["job_id"] for r in rows["idle"] + rows["blocked"]]
        wait_for("both to wait", lambda: order() == [first, second], 20)
        self.refused("setspri", "10", second, code=3, account=self.account, says="(ADMIN2)")
        self.refused("setspri", "5000", second, code=1, says="from 1 to 1000")
        self.refused("setspri", "much", second, code=2, says="much")
        self.assertEqual(self.here("setspri", "10", second).stdout, "\njob system priority adjusted\n")
        wait_for("the second to be first", lambda: order() == [second, first], 20)
        self.assertGreater(self.data("checkjob", second)["job"]["priority"], 1000000000)
        self.restart()
        wait_for("the second to be first again", lambda: order() == [second, first], 20)
        self.here("setspri", "0", second)
        self.here("mjobctl", "-p", "-5", second)
        wait_for("the first to be first", lambda: order() == [first, second], 20)
        self.assertEqual(self.data("checkjob", second)["job"]["system_priority"], -5)
        self.assertIn(("root", f"setspri -r -5 {second}"), self.audit())

    def test_runjob(self):
        one, two, three = self.three_jobs()
        self.refused("runjob", three, code=1, says="job cannot run (job "
                     f"{three} violates active HARD MAXJOB limit of 2")
        self.refused("runjob", three, code=3, account=self.account, says="(ADMIN2)")
        self.refused("runjob", one, code=1, says="has started")
        self.here("sethold", three)
        self.refused("runjob", "-f", three, code=1, says="is held: releasehold first")
        self.here("releasehold", three)
        self.assertEqual(self.here("runjob", "-f", three).stdout,
                         f"\n\njob {three} successfully started\n\n")
        self.wait_local(three, "Running")
        self.assertIn(("root", f"runjob -f {three}"), self.audit())
        big = self.submit("toobig", "-n", 8, "-t", "60")[1]
        self.refused("mjobctl", "-x", big, code=1, says="job cannot run (")
        self.refused("mjobctl", "-x", "-c", big, code=2, says="say one of")
        self.assertEqual(self.here("mjobctl", "-c", big).stdout, f"\n\njob '{big}' cancelled\n\n")

    # ---- diagnose

    def test_diagnose(self):
        big, waits = self.filled()
        wait_for("a priority", lambda: self.data("showq")["idle"], 20)
        table = self.here("diagnose", "-p").stdout
        lines = table.splitlines()
        self.assertEqual(lines[:4], ["diagnosing job priority information (partition: ALL)", "",
                                     "Job                    PRIORITY*   Cred( User)  Serv(QTime:XFctr)",
                                     "             Weights   --------       1(    1)     1(    1:   10)"])
        self.assertRegex(lines[5], rf"^{re.escape(waits):<20} +\d+    \d\d\.\d\( 10\.0\)  \d\d\.\d"
                                   r"\(  \d\.\d: 10\.\d\)$")
        self.assertTrue(lines[7].startswith("Percent Contribution   --------    "), lines)
        row = self.data("diagnose", "-p", waits)[0]
        self.assertEqual((row["job_id"], row["USER"]["value"], row["system"]), (waits, 10, False))
        self.assertAlmostEqual(sum(row[k]["percent"] for k in ("USER", "QUEUETIME", "XFACTOR")), 100, 3)
        self.assertAlmostEqual(row["priority"], sum(row[k]["value"] for k in ("USER", "QUEUETIME",
                                                                              "XFACTOR")), delta=1)
        csv = self.here("diagnose", "-p", "--csv").stdout.splitlines()
        self.assertEqual(csv[0], "job_id,priority,system,USER,USER_percent,QUEUETIME,QUEUETIME_percent,"
                                 "XFACTOR,XFACTOR_percent")
        self.refused("diagnose", "-p", code=3, account=self.account, says="diagnosis is for")
        self.refused("diagnose", code=2, says="say one of -p, -f, -q, -b, -j, -n,")

        jobs = self.here("diagnose", "-j").stdout
        self.assertIn("Total Jobs: 2  Active Jobs: 1\n", jobs)
        self.assertRegex(jobs, rf"\n{re.escape(waits)} +Idle ALL    2 DEF    00:10:00 1    2 ")
        nodes = self.here("diagnose", "-n").stdout
        self.assertIn("Total Nodes: 4  (Active: 4  Idle: 0  Down: 0)\n", nodes)
        self.assertRegex(nodes, r"\nalpha01 +Busy +0:2 +2048:2048 +0:0 +0:0 +1\.00 +Linux +\S+ DEF +\d\.\d\d 00[12] "
                                r"\[NONE\] +\[NONE\] +\[NONE\] +\[NONE\]\n")
        self.here("sethold", waits)
        wait_for("it to be blocked", lambda: self.blocked(waits), 20)
        self.assertEqual(self.here("diagnose", "-q").stdout,
                         "Diagnosing blocked jobs (policylevel SOFT  partition ALL)\n\n"
                         f"job {waits} held (batch) by root\n\n")
        fair = self.here("diagnose", "-f").stdout
        self.assertTrue(fair.startswith("FairShare Information\n\nDepth: "), fair)
        self.assertIn("FS Policy: NONE\n", fair)

        users = self.data("diagnose", "-u")
        alice = next(r for r in users if r["name"] == self.account)
        self.assertEqual((alice["limits"], alice["priority"]), ("MAXJOB=2", 10))
        self.assertIn(f"\n{self.account:<12}       10 ", self.here("diagnose", "-u").stdout)
        self.assertIn("phys", [r["name"] for r in self.data("diagnose", "-a")])
        self.assertTrue(self.here("diagnose", "-Q").stdout.startswith("QOS Status\n\nSystem QOS Settings:  QList: "))
        self.refused("diagnose", "-g", code=3, account=self.account, says="diagnosis is for")

    def test_showconfig(self):
        """What it prints is a configuration that the daemon takes, and says the same again."""
        text = self.here("showconfig").stdout
        values = dict(line.split(None, 1) for line in text.splitlines())
        self.assertEqual((values["QUEUETIMEWEIGHT"], values["XFACTORWEIGHT"], values["BACKFILLPOLICY"],
                          values["RESERVATIONDEPTH[0]"]), ("1", "10", "FIRSTFIT", "1"))
        self.assertEqual({r["parameter"]: r["value"] for r in self.data("showconfig")}, values)
        config = self.grid.layout.config("alpha")
        whole = config.with_name("whole.cfg")
        words = {line.split()[0] for line in text.splitlines()}
        whole.write_text("".join(line + "\n" for line in config.read_text().splitlines()
                                 if not line or line.split()[0] not in words) + text)
        whole.chmod(0o600)
        done = subprocess.run([str(self.grid.programs["nui-local"]), "--config", str(whole), "--check"],
                              text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.refused("showconfig", code=3, account=self.account, says="is for administrators")

    # ---- who pays for what a reservation keeps idle

    def idle_charges(self, name):
        return [line for line in self.statement()["lines"]
                if line["kind"] == "charge" and line["job"] == f"alpha.{name}"]

    def test_reservation_charge(self):
        """Idle processors are charged, those of a job inside are not; nothing is lost with the daemon."""
        self.nui(layout.OPERATOR, "site", "modify", "alpha", "--claims", "yes")
        self.refused("setres", "-A", "phys:stranger", "alpha01", code=5,
                     says="user stranger, whom the grid map does not have")
        self.refused("setres", "-A", "phys", "alpha01", code=5, says="say ACCOUNT:USER")  # root
        self.here("setres", "-A", f"phys:{self.account}", "-u", self.account, "-n", "keep", "alpha01")
        self.assertIn(f"    Charge: phys:{self.account}\n", self.here("diagnose", "-r").stdout)
        self.assertEqual([r["charge"] for r in self.data("diagnose", "-r") if r["type"] == "User"],
                         [f"phys:{self.account}"])
        alpha = self.grid.daemons["alpha"]

        def idle():
            db = sqlite3.connect(f"file:{self.grid.layout.state}/alpha/local.db?mode=ro", uri=True)
            try:
                return [row[0] for row in db.execute("SELECT procs FROM rsv_idle")]
            finally:
                db.close()
        wait_for("two processors to be idle", lambda: idle() == [2], 30)
        _, inside = self.submit("keeps", "-n", 1, "-t", "1:00:00", "--reservation", "keep.0")
        self.wait_local(inside, "Running")
        wait_for("one to be idle", lambda: idle() == [1], 30)
        wait_for("the first charge", lambda: self.idle_charges("keep.0"), 60)
        alpha.kill()
        alpha.start()
        self.grid.wait_serving()
        self.assertEqual(idle(), [1])
        self.here("releaseres", "keep.0")
        wait_for("nothing to be kept", lambda: idle() == [], 30)
        lines = wait_for("the second charge",
                         lambda: self.idle_charges("keep.0")[1:] and self.idle_charges("keep.0"), 60)
        self.assertEqual(len(lines), 2)
        logged = re.findall(r" idle name=keep\.0 .*procs=(\d+) us=(\d+) charged=1",
                            alpha.log.read_text())
        self.assertEqual([n for n, _ in logged], ["2", "1"])
        for line, (procs, us) in zip(lines, logged):
            exact = int(procs) * int(us)
            self.assertLessEqual(abs(-line["posted"] * 1000000 - exact), 1, line)


if __name__ == "__main__":
    main()
