"""setres, releaseres and what shows them: made durable before it is acknowledged, for whom they are,
and what runs beside them."""
import os
import signal

from fixture import main
from onesite import ROOT, SiteCase, layout, wait_for
from test_simulation import BEGIN, TRACE_NODES, trace_job

NODES = "NODECFG[node[01-04]] PROCS=4 MEM=4096 FEATURES=fast\nNODECFG[node[05-06]] PROCS=2 MEM=1024\n"


class Reservations(SiteCase):
    def plain(self, name, more=""):
        site = self.site(name)
        site.write(NODES + more)
        site.start()
        return site

    def rows(self, site, *args):
        return {r["reservation_id"]: r for r in self.data(site, "showres", *args)}

    def test_made_and_released(self):
        site = self.plain("made")
        self.assertEqual(self.ok(site, "setres", "-u", "alice", "-s", "+0:30:00", "-d", "1:00:00",
                                 "node0[1-2]"), """reservation created


reservation 'alice.0' created on 2 nodes (8 tasks)
node01:4
node02:4


""")
        made = self.ok(site, "setres", "-u", "bob:carol-", "-g", "!guests", "-f", "fast",
                       "-s", "17:00_04/14", "TASKS==5")
        self.assertIn("reservation 'bob.0' created on 2 nodes (5 tasks)", made)
        self.assertIn("reservation 'downtime.0' created on 6 nodes (20 tasks)",
                      self.ok(site, "setres", "-s", "+20:00:00", "-d", "2:00:00", "-n", "downtime",
                              "ALL"))
        self.ok(site, "setres", "-n", "small", "node05|node06", "--job-duration", "1:00:00",
                "--job-procs", "<=2", "-x", "BYNAME,SINGLEUSE", "-o", "USER:dave")
        rows = self.rows(site)
        self.assertEqual(sorted(rows), ["alice.0", "bob.0", "downtime.0", "small.0"])
        self.assertEqual(rows["bob.0"]["acl"], "USER==bob+,USER==carol-,!GROUP==guests")
        self.assertIsNone(rows["small.0"]["end_time"])
        self.assertEqual(rows["small.0"]["acl"], "DURATION<=1:00:00+,PROC<=2+")
        self.assertEqual(rows["small.0"]["flags"], "SINGLEUSE,BYNAME")
        self.assertEqual(rows["small.0"]["owner"], "USER==dave")
        listed = self.ok(site, "diagnose", "-r")
        self.assertIn("= DURATION<=1:00:00+ PROC<=2+ \n", listed)
        self.assertIn("= (empty: nobody)\n", listed)
        self.assertEqual([r["reservation_id"] for r in self.data(site, "showres", "-n", "bob.0")],
                         ["bob.0", "bob.0"])
        self.assertIn("Reservations", self.ok(site, "checknode", "node01"))
        self.assertEqual(self.ok(site, "releaseres", "alice.0"),
                         "\n\nreleased User reservation 'alice.0'\n\n")
        self.refused(site, "releaseres", "alice.0", code=5,
                     says="cannot locate reservation 'alice.0'")
        # a task of a processor and 1024 MB: four on each large node; the small ones are reserved
        self.assertIn("'eve.0' created on 4 nodes (16 tasks)",
                      self.ok(site, "setres", "-u", "eve", "-d", "1:00", "-r", "PROCS:1,MEM:1024",
                              "TASKS>=3"))

    def test_bad_wishes(self):
        site = self.plain("bad")
        for args, code, says in (
                (("nosuch",), 5, "no node is named nosuch"),
                (("node[01-99]",), 5, "no node is named node07"),
                (("node0(",), 1, "neither a host list nor a regular expression"),
                (("TASKS==0",), 1, "tasks"),
                (("TASKS=4",), 1, "say TASKS==n or TASKS>=n"),
                (("TASKS==400",), 1, "there is room for 20 tasks"),
                (("-f", "slow", "TASKS==1"), 5, "has the feature slow"),
                (("-x", "STICKY", "ALL"), 1, "'STICKY' is no flag"),
                (("-o", "bob", "ALL"), 1, "say USER:name"),
                (("-u", "a/b", "ALL"), 1, "a/b"),
                (("--job-attribute", "RED", "ALL"), 1, "'RED' is no job attribute"),
                (("--job-duration", "soon", "ALL"), 1, "soon"),
                (("-r", "GPU:1", "TASKS==1"), 1, "is no resource of a task"),
                (("-s", "+2:00:00", "-e", "+1:00:00", "ALL"), 1, "end before it starts"),
                (("-d", "1:00", "-e", "+1:00", "ALL"), 2, "not both"),
                (("-p", "west", "ALL"), 5, "no partition west"),
                ((), 2, "say nui setres EXPRESSION")):
            self.refused(site, "setres", *args, code=code, says=says)
        self.assertEqual(self.rows(site), {})

    def test_deferred(self):
        """A job's own reason is told by checkjob and showq -b, whatever it is, and outlives the daemon."""
        site = self.plain("deferred", "SYSTEMMAXPROCPERJOB 4\nDEFERTIME 1:00:00\n")
        over = self.ok(site, "msub", "-t", "1:00", "-l", "procs=5", "/etc/hostname", account=layout.account_of("alice")).strip()
        wait_for("the reason", lambda: self.data(site, "checkjob", over)["job"]["reason_code"]
                 == "SystemLimitsExceeded", 30)
        self.assertIn("Waits: is over a limit per job (SystemLimitsExceeded)\n",
                      self.ok(site, "checkjob", over))
        self.assertIn("is over a limit per job", self.ok(site, "showq", "-b"))
        os.kill(site.process.pid(), signal.SIGKILL)
        wait_for("the daemon to be gone", site.process.died, 30)
        site.start()
        self.assertEqual(self.data(site, "checkjob", over)["job"]["reason_code"],
                         "SystemLimitsExceeded")
        self.ok(site, "sethold", "-s", over)
        self.assertEqual(self.data(site, "checkjob", over)["job"]["reason_code"], "Admin")
        self.ok(site, "canceljob", over)

    def test_kill(self):
        """Acknowledged is durable: killed at once, every one is there again, on the same nodes."""
        site = self.plain("kill")
        for n in range(5):
            self.ok(site, "setres", "-u", "bob", "-s", f"+{n + 1}:00:00", "-d", "30:00", "TASKS==6")
        self.ok(site, "releaseres", "bob.2")
        before = {(r["reservation_id"], r["node"], r["tasks"], r["start_time"], r["acl"])
                  for r in self.data(site, "showres", "-n")}
        os.kill(site.process.pid(), signal.SIGKILL)
        wait_for("the daemon to be gone", site.process.died, 30)
        site.start()
        after = {(r["reservation_id"], r["node"], r["tasks"], r["start_time"], r["acl"])
                 for r in self.data(site, "showres", "-n")}
        self.assertEqual(after, before)
        self.assertEqual(len({r[0] for r in after}), 4)
        self.assertIn("'bob.2' created", self.ok(site, "setres", "-u", "bob", "-d", "1:00", "node05"))

    def nodes_of(self, site):
        return sorted((r["reservation_id"], r["node"], r["tasks"])
                      for r in self.data(site, "showres", "-n") if r["type"] == "User")

    def test_standing_restart(self):
        """SRCFG's reservations are on the same nodes after a restart, floating ones with a job inside too."""
        alice = layout.account_of("alice")
        site = self.plain("standing", "SRCFG[fixed] HOSTLIST=node0[12] PERIOD=INFINITY USERLIST=carl\n"
                          f"SRCFG[float] TASKCOUNT=2 PERIOD=INFINITY USERLIST={alice}\n"
                          "SRCFG[late] TASKCOUNT=1 PERIOD=DAY STARTTIME=23:59:00 ENDTIME=23:59:59\n")
        wait_for("the reservations", lambda: len(self.nodes_of(site)) >= 6, 30)
        waiter = self.state / "standing.sh"
        waiter.write_text("#!/bin/sh\nwhile :; do sleep 1; done\n")
        waiter.chmod(0o755)
        inside = self.ok(site, "msub", "-t", "1:00:00", "--reservation", "float", str(waiter),
                         account=alice).strip()
        wait_for("it to run", lambda: self.data(site, "checkjob", inside)["job"]["state"] == "Running",
                 30, site.log)
        before = self.nodes_of(site)
        os.kill(site.process.pid(), signal.SIGKILL)
        wait_for("the daemon to be gone", site.process.died, 30)
        site.start()
        wait_for("the reservations again", lambda: len(self.nodes_of(site)) == len(before), 30)
        self.assertEqual(self.nodes_of(site), before)
        self.assertEqual(self.data(site, "checkjob", inside)["job"]["state"], "Running")
        self.ok(site, "canceljob", inside)
        wait_for("it to be gone", lambda: not self.data(site, "showq")["active"], 60)

    def test_samples(self):
        """deploy/samples/shortpool.cfg: short jobs by day, and nobody on Tuesday night."""
        jobs = [("101", "bob", 1, 30 * 3600, 0, 30 * 3600),       # until Monday at eight
                ("102", "alice", 8, 7200, 31 * 3600, 1800),       # Monday at nine: all nodes, two hours
                ("103", "alice", 8, 7201, 32 * 3600, 1800),       # at ten: a second too long for the pool
                ("104", "bob", 1, 17 * 3600, 41 * 3600, 3600)]    # seven in the evening: into the downtime
        (self.state / "samples.jobs").write_text(
            "VERSION 230\n" + "".join(trace_job(*j[:4], BEGIN + j[4], j[5]) for j in jobs))
        site = self.site("samples")
        site.write((ROOT / "deploy" / "samples" / "shortpool.cfg").read_text() + f"""SERVERMODE SIMULATION
SIMWORKLOADTRACEFILE {self.state}/samples.jobs
NODECFG[n[1-4]] PROCS=2
SIMJOBSUBMISSIONPOLICY NORMAL
SIMINITIALQUEUEDEPTH 1
SIMSTOPITERATION 1
SIMAUTOSHUTDOWN FALSE
RMPOLLINTERVAL 3600
""", gridmap=False)
        site.start()
        self.data(site, "schedctl", "--wait")
        rows = self.rows(site)
        self.assertEqual({name: r["start_time"][:16] for name, r in rows.items() if r["type"] == "User"},
                         {"shortpool.0.0": "2001-09-10T08:00", "shortpool.1.0": "2001-09-11T08:00",
                          "downtime.0.0": "2001-09-11T02:00", "downtime.1.0": "2001-09-18T02:00"})
        self.assertEqual((rows["shortpool.0.0"]["nodes"], rows["downtime.0.0"]["nodes"]), (2, 4))
        self.ok(site, "schedctl", "-S", "60", "--wait")
        starts = {n: self.data(site, "checkjob", f"alpha.{n}")["job"]["start_time"][:13]
                  for n in (101, 102, 103, 104)}
        self.assertEqual(starts, {101: "2001-09-09T02", 102: "2001-09-10T09", 103: "2001-09-10T18",
                                  104: "2001-09-11T06"})

    def test_who_may_use_it(self):
        """In a simulation, jobs of two people and a reservation for one of them."""
        jobs = [("1001", "alice", 4, 3600, 0, 60), ("1002", "bob", 32, 600, 120, 60),
                ("1003", "alice", 4, 600, 180, 60)]
        (self.state / "who.jobs").write_text(
            "VERSION 230\n" + "".join(trace_job(*j[:4], BEGIN + j[4], j[5]) for j in jobs))
        (self.state / "who.nodes").write_text(TRACE_NODES)
        site = self.site("who")
        site.write(f"""SERVERMODE SIMULATION
SIMWORKLOADTRACEFILE {self.state}/who.jobs
SIMRESOURCETRACEFILE {self.state}/who.nodes
SIMJOBSUBMISSIONPOLICY NORMAL
SIMINITIALQUEUEDEPTH 1
SIMSTOPITERATION 1
SIMAUTOSHUTDOWN FALSE
RMPOLLINTERVAL 60
NODEALLOCATIONPOLICY FIRSTAVAILABLE
""", gridmap=False)
        site.start()
        self.data(site, "schedctl", "--wait")
        self.ok(site, "setres", "-u", "alice", "-d", "1:00:00", "node08")
        self.ok(site, "schedctl", "-S", "6", "--wait")
        states = {j["job_id"]: j for part in ("active", "idle", "blocked")
                  for j in self.data(site, "showq")[part]}
        self.assertEqual(states["alpha.1002"]["state"], "Idle")  # wants all eight nodes
        self.assertEqual(states["alpha.1002"]["reserved_start"][11:16], "03:00")
        free = {"alice": 32, "bob": 28}
        for user, procs in free.items():
            windows = self.data(site, "showbf", "-u", user)
            self.assertLessEqual(max(w["procs"] for w in windows), procs)
        self.assertGreater(max(w["procs"] for w in self.data(site, "showbf", "-u", "alice")),
                           max(w["procs"] for w in self.data(site, "showbf", "-u", "bob")))


if __name__ == "__main__":
    main()
