"""Where jobs run: what msub and nui submit can say of it, against a live nui-local; what a node's
jobs really use; nodes that go down, drain and come back."""
import os
import re
import unittest

from fixture import GridCase, main
from grid.base import Failure
from onesite import SharedCase, layout, wait_for

CONFIG = """ADMIN1 root
RMPOLLINTERVAL 1
RESERVATIONPOLICY NEVER
NODEALLOCATIONPOLICY FIRSTAVAILABLE
NODESETDELAY 1:00:00
DEFERTIME 0
NODECFG[DEFAULT] MEM=4G
NODECFG[a[1-3]] PROCS=4 FEATURES=std NETWORK=ethernet CLASS=batch:4,special:2 MAXJOB=3
NODECFG[b[1-3]] PROCS=4 FEATURES=fast NETWORK=ethernet,myrinet SPEED=2 GRES=tape:2 CLASS=batch,special,onlyb
NODECFG[c[1-2]] PROCS=8 FEATURES=fast,big PARTITION=east MEM=16G
NODECFG[GLOBAL] GRES=matlab:2
CLASSCFG[batch] PRIORITY=1
CLASSCFG[onlyb] HOSTLIST=b[2-3]
"""
TOPOLOGY = """SwitchName=s1 Nodes=a[1-3]
SwitchName=s2 Nodes=b[1-3]
SwitchName=s3 Nodes=c[1-2]
SwitchName=core Switches=s[1-3]
"""


class PlacementCase(SharedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.waiter = cls.script("waiter", "#!/bin/sh\nwhile :; do sleep 1; done\n")

    @classmethod
    def started(cls, name, config):
        made = cls.site(name)
        (made.state / "etc" / "topology.conf").write_text(TOPOLOGY)
        made.write(f"JOBDIR {made.state}/{name}-jobs\n{config}")
        made.start()
        return made

    @classmethod
    def script(cls, name, text):
        path = cls.shared / f"{name}.sh"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def msub(self, *args, account=None, script=None):
        return self.ok(self.alpha, "msub", "-t", "1:00:00", *args, script or self.waiter,
                       account=account or self.account).strip()

    def job(self, ident):
        return self.data(self.alpha, "checkjob", ident)["job"]

    def node(self, name):
        return self.data(self.alpha, "checknode", name)["node"]

    def queue(self):
        rows = self.data(self.alpha, "showq")
        return [r["job_id"] for s in ("active", "idle", "blocked") for r in rows[s]]

    def cancel(self, *idents):
        if idents:
            self.ok(self.alpha, "canceljob", *idents)
        wait_for("them to be gone", lambda: not set(self.queue()) & set(idents), 60)

    def tearDown(self):
        self.clear(self.alpha)

    def never(self, *args, says):
        """What can never run is refused at once."""
        self.refused(self.alpha, "msub", "-t", "60", *args, self.waiter, code=1, says=says,
                     account=self.account)

    def wait_job(self, ident, state):
        wait_for(f"{ident} to be {state}", lambda: self.job(ident)["state"] == state, 60,
                 self.alpha.log)

    def where(self, ident):
        """"a1:4,b2:1": its nodes and tasks, once it runs."""
        self.wait_job(ident, "Running")
        rows = [r for r in self.data(self.alpha, "showres", "-n", ident)]
        return ",".join(sorted(f"{r['node']}:{r['tasks']}" for r in rows))

    def runs_on(self, expected, *args, **options):
        ident = self.msub(*args, **options)
        self.assertEqual(self.where(ident), expected, args)
        return ident

    def waits(self, reason, *args, says="", **options):
        """It stays in the queue, and checkjob says why."""
        ident = self.msub(*args, **options)
        wait_for(f"the reason of {ident}", lambda: self.job(ident)["reason_code"], 30)
        job = self.job(ident)
        self.assertEqual((job["state"], job["reason_code"]), ("Idle", reason), job)
        self.assertIn(says, job["reason"])
        return ident


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Placement(PlacementCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.alpha = cls.started("alpha", CONFIG + "TOPOLOGYFILE topology.conf\n")

    def test_hosts(self):
        self.runs_on("b2:2", "-w", "b2", "--tasks", "2")
        self.runs_on("a2:4,a3:2", "-w", "a[1-3]", "-x", "a1", "--tasks", "6")
        self.runs_on("b1:4,b2:1", "-x", "a[1-3],c[1-2]", "--tasks", "5")
        self.never("-w", "a1", "--tasks", "5", says="5 tasks")
        self.never("-w", "nowhere", says="nowhere")
        self.never("-w", "a1", "-x", "a1", says="no node of this site has the hosts")

    def test_what_nodes_have(self):
        self.runs_on("b1:1", "--features", "fast")
        self.runs_on("c1:1", "--features", "fast,big")
        self.never("--features", "std,big", says="")
        self.runs_on("b1:1", "--gres", "tape:2")
        self.runs_on("b2:2,b3:1", "--gres", "tape", "--tasks", "3")
        self.waits("Resources", "--gres", "tape:2")
        self.assertEqual(self.node("b1")["gres"], "tape 0:2")
        self.runs_on("c1:1", "--mem", "10G")

    def test_layout(self):
        self.runs_on("a1:2,a2:2,a3:2", "--nodes", "3", "--tpn", "2")
        self.runs_on("c1:1", "--procs-per-task", "8")
        self.runs_on("c2:1", "--procs-per-task", "6")
        self.refused(self.alpha, "msub", "-t", "60", "--nodes", "2", "--tasks", "3", self.waiter,
                     code=1, says="cannot be spread evenly over 2 nodes", account=self.account)

    def test_licences_float(self):
        first = self.runs_on("a1:1", "--licence", "matlab:2")
        second = self.waits("Licences", "--licence", "matlab", says="matlab")
        self.cancel(first)
        self.where(second)
        self.never("--licence", "matlab:3", says="matlab")

    def test_several_reqs(self):
        """One task with much memory, and four of two processors elsewhere: together."""
        ident = self.msub("--tasks", "1", "--mem", "3G", "--features", "fast",
                          "--req", "tasks=4,procs-per-task=2,features=std")
        self.assertEqual(self.where(ident), "a1:2,a2:2,b1:1")
        shown = self.ok(self.alpha, "checkjob", ident)
        self.assertIn("Req[1]", shown)
        self.cancel(ident)
        head = "#NUI --tasks 1 --mem 3G --req tasks=2,gres=tape --exclude b1,a1\n"
        self.runs_on("a2:1,b2:2", script=self.script("two", f"#!/bin/sh\n{head}sleep 1000\n"))

    def test_node_access(self):
        alone = self.runs_on("a1:1", "--node-access", "SINGLEJOB")
        self.runs_on("a2:1", "--node-access", "SINGLEUSER")
        self.runs_on("a2:1")
        self.runs_on("a3:1", account=self.other)
        self.waits("Resources", "-w", "a1")
        self.assertEqual(self.node("a1")["state"], "Busy")
        self.cancel(alone)
        self.refused(self.alpha, "msub", "-t", "60", "--node-access", "MINE", self.waiter, code=1,
                     says="'MINE' is not SHARED", account=self.account)

    def test_node_sets(self):
        self.runs_on("a1:1", "-w", "a1")
        # eight together, of one feature: not in a, any more; of one network; below one switch
        self.runs_on("b1:4,b2:4", "--nodeset", "ONEOF:FEATURE:std:fast", "--tasks", "8",
                     "--partition", "DEFAULT", "-x", "a3")
        self.waits("NodeSet", "--nodeset", "ONEOF:NETWORK:myrinet", "--tasks", "5")
        self.runs_on("b3:3", "--nodeset", "FIRSTOF:NETWORK:myrinet:ethernet", "--tasks", "3")
        self.runs_on("a1:3,a2:4,a3:1", "--nodeset", "ONEOF:TOPOLOGY", "--tasks", "8")
        self.runs_on("c1:8,c2:8", "--nodeset", "ONEOF:PROCSPEED", "--tasks", "16")
        self.ok(self.alpha, "changeparam", "NODESETDELAY", "0")  # best effort: mixed rather than waiting
        self.runs_on("a3:3,b3:1", "--nodeset", "ONEOF:NETWORK:myrinet", "--tasks", "4")
        self.ok(self.alpha, "changeparam", "NODESETDELAY", "1:00:00")
        self.assertEqual(self.node("b1")["switches"], "s2,core")
        self.assertEqual(self.node("b1")["networks"], "ethernet,myrinet")
        self.refused(self.alpha, "msub", "-t", "60", "--nodeset", "SOME:COLOUR", self.waiter, code=1,
                     says="'SOME' is no policy of a node set", account=self.account)

    def test_partitions(self):
        self.runs_on("c1:1", "--partition", "east")
        self.never("--partition", "east", "--tasks", "17", says="17 tasks")
        self.never("--tasks", "25", says="25 tasks")  # the larger one has 24
        self.never("--partition", "west", says="west")
        self.assertEqual(self.node("c1")["partition"], "east")

    def test_classes_and_jobs_of_a_node(self):
        """a1: four initiators of batch, two of special, three jobs."""
        self.runs_on("a1:2", "-q", "special", "-w", "a1", "--tasks", "2")
        self.waits("Resources", "-q", "special", "-w", "a1")
        self.runs_on("a1:1", "-q", "batch", "-w", "a1")
        self.assertEqual(self.node("a1")["classes"], "batch,special 0:2")
        self.runs_on("a2:1", "-w", "a2")
        self.runs_on("a2:1", "-w", "a2")
        self.runs_on("a2:1", "-w", "a2")
        self.waits("Resources", "-w", "a2")  # a processor is free: MAXJOB=3
        self.runs_on("b2:1", "-q", "onlyb")
        self.runs_on("a3:2,b1:3", "-q", "special", "-x", "a[1-2]", "--tasks", "5")

    def test_shown(self):
        self.runs_on("a1:2", "-q", "special", "--tasks", "2")
        table = self.ok(self.alpha, "diagnose", "-n")
        self.assertRegex(table, r"\na1 +Running +2:4 .* DEF +\d+\.\d\d 001 \[batch_2:4\]\[special_0:2\] +"
                                r"\[ethernet\] +\[std\] +\[NONE\]\n")
        self.assertRegex(table, r"\nb1 .* 2\.00 .*\[ethernet\]\[myrinet\] +\[fast\] +\[tape_2:2\]\n")
        self.assertRegex(table, r"\nc1 .* eas .*\[NONE\]")
        text = self.ok(self.alpha, "checknode", "b1")
        self.assertIn("Network:    [ethernet][myrinet]\nFeatures:   [fast]\nAttributes: [Batch]\n"
                      "Classes:    [batch 4:4][special 4:4][onlyb 4:4]\nSwitches:   [s2][core]\n"
                      "Gres:       [tape 2:2]\n", text)

    def test_a_node_is_drained_lost_and_back(self):
        ident = self.runs_on("a1:1", "-w", "a[1-2]")
        self.ok(self.alpha, "mnodectl", "-m", "state=drained", "a1")
        self.assertEqual(self.node("a1")["state"], "Draining")
        self.runs_on("a2:1", "-w", "a[1-2]")
        self.assertEqual(self.job(ident)["state"], "Running")
        self.cancel(ident)
        self.assertEqual(self.node("a1")["state"], "Drained")
        waits = self.waits("NoResources", "-w", "a1", says="needs 1 task (req 0)")
        self.ok(self.alpha, "mnodectl", "-m", "state=up", "a1")
        self.assertEqual(self.where(waits), "a1:1")


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Measured(PlacementCase):
    """The embedded runner sees what jobs really use."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hog = cls.script("hog", "#!/usr/bin/python3\nimport time\nkept = bytearray(b'x') * (600 << 20)\n"
                                    "while True: time.sleep(1)\n")
        cls.alpha = cls.started("measured", "ADMIN1 root\nRMPOLLINTERVAL 1\nRESERVATIONPOLICY NEVER\n"
                                "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nNODECFG[m1] PROCS=4 MEM=1000\nNODECFG[m2] PROCS=4 MEM=1000\n"
                                "NODECFG[DEFAULT] PRIORITYF='-LOAD'\nCGROUPS FALSE\n"
                                "NODEAVAILABILITYPOLICY COMBINED:PROC COMBINED:MEM\nDEFERTIME 0\n")

    def test_memory(self):
        """More than it asked for: the rest is not there (COMBINED), or what it asked for and does not use
        is (UTILIZED)."""
        hog = self.msub("-w", "m1", script=self.hog)
        wait_for("its memory to be seen", lambda: (self.node("m1")["used_memory_mb"] or 0) >= 600, 60)
        self.assertLess(self.node("m2")["used_memory_mb"] or 0, 100)
        self.assertRegex(self.ok(self.alpha, "checknode", "m1"), r"Utilized   Resources: PROCS: \d+  MEM: 6\d\dM")
        wants = self.waits("Resources", "-w", "m1", "--mem", "700M")
        self.runs_on("m1:1", "-w", "m1", "--mem", "100M")
        self.cancel(hog)
        self.where(wants)
        lean = self.msub("-w", "m2", "--mem", "900M")
        self.where(lean)
        also = self.waits("Resources", "-w", "m2", "--mem", "800M")
        self.ok(self.alpha, "changeparam", "NODEAVAILABILITYPOLICY", "UTILIZED:MEM")
        self.where(also)

    def set(self, **params):
        for name, value in params.items():
            self.ok(self.alpha, "changeparam", name, value)

    def loaded(self, processes):
        """A job of one processor on m1 that would keep so many busy, and a quiet one on m2."""
        self.addCleanup(self.set, NODEAVAILABILITYPOLICY="COMBINED:PROC COMBINED:MEM", NODEMAXLOAD="0",
                        NODELOADPOLICY="ADJUSTSTATE", NODEALLOCATIONPOLICY="FIRSTAVAILABLE")
        spin = self.msub("-w", "m1", script=self.script(
            "spin", f"#!/bin/bash\nfor i in {{1..{processes}}}; do (while :; do :; done) & done\nwait\n"))
        self.runs_on("m2:1", "-w", "m2")
        wait_for("its load to be seen", lambda: self.node("m1")["load"] > .1, 60)
        self.assertEqual(self.node("m2")["load"], 0)
        return spin

    def test_load_policies(self):
        """ADJUSTSTATE: nothing starts on a node that is at NODEMAXLOAD; ADJUSTPROCS: on the rest of it; PRIORITYF's LOAD:
        rather elsewhere; DEDICATED: what jobs were given counts, whatever the load. Its end gives all back."""
        spin = self.loaded(1)
        self.set(NODEAVAILABILITYPOLICY="DEDICATED")
        self.cancel(self.runs_on("m1:1"))
        self.set(NODEALLOCATIONPOLICY="PRIORITY")
        self.cancel(self.runs_on("m2:1"))
        self.set(NODEMAXLOAD="0.1")
        busy = self.waits("Resources", "-w", "m1", "--tasks", "3")
        self.cancel(self.runs_on("m2:3", "-w", "m2", "--tasks", "3"))
        self.set(NODELOADPOLICY="ADJUSTPROCS")
        self.where(busy)
        self.cancel(spin, busy)
        self.runs_on("m1:4", "-w", "m1", "--tasks", "4")
        wait_for("the load to be gone", lambda: self.node("m1")["load"] < .1, 60)

    def until(self, expected, *args):
        """Until there is so much load, which goes up and down, that this comes of a job."""
        def comes():
            ident = self.msub(*args)
            job = wait_for(f"{ident} to start or to say why not", lambda: (lambda j: (
                j["state"] == "Running" or j["reason_code"] == "Resources") and j)(self.job(ident)), 60)
            found = self.where(ident) if job["state"] == "Running" else job["reason_code"]
            self.cancel(ident)
            return found == expected
        try:
            wait_for(f"{expected} of {args}", comes, 3, self.alpha.log)
        except Failure:
            if self.node("m1")["load"] > 1.6:
                raise
            self.skipTest("others use the processors of this machine")

    def test_more_than_it_was_given(self):
        """A job of one processor that keeps two busy: CPULOAD prefers a node with a job that uses less, COMBINED leaves
        two of four to others."""
        self.loaded(6)
        self.set(NODEALLOCATIONPOLICY="CPULOAD", NODEAVAILABILITYPOLICY="DEDICATED")
        self.until("m2:1")
        self.set(NODEAVAILABILITYPOLICY="COMBINED:PROC COMBINED:MEM")
        self.until("Resources", "-w", "m1", "--tasks", "3")
        self.runs_on("m2:3", "-w", "m2", "--tasks", "3")


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class LostNodes(PlacementCase):
    """mnodectl state=down: what runs there goes as JOBACTIONONNODEFAILURE says; reservations are refilled
    or reported."""

    def lost(self, action):
        self.alpha = self.started(action.lower(), "ADMIN1 root\nNODECFG[n[1-3]] PROCS=2 MEM=2G\n"
                                  f"NODEALLOCATIONPOLICY FIRSTAVAILABLE\nJOBACTIONONNODEFAILURE {action}\n")
        ident = self.runs_on("n1:2", "--tasks", "2")
        self.ok(self.alpha, "mnodectl", "-m", "state=down", "n1")
        return ident

    def test_requeued(self):
        ident = self.lost("REQUEUE")
        wait_for("it to run elsewhere", lambda: self.job(ident)["state"] == "Running" and
                 self.where(ident) == "n2:2", 60, self.alpha.log)
        self.assertEqual(self.node("n1")["state"], "Down")

    def test_left_to_the_resource_manager(self):
        """FAIL leaves the end of the job to the resource manager, which sees it run."""
        ident = self.lost("FAIL")
        other = self.runs_on("n2:1")
        self.assertEqual(self.job(ident)["state"], "Running")
        self.cancel(ident, other)

    def test_cancelled(self):
        ident = self.lost("CANCEL")
        self.wait_job(ident, "Cancelled")
        self.assertEqual(self.job(ident)["reason_code"], "NodeFailure")

    def test_reservations(self):
        """A standing one that floats finds another node; one bound to its hosts is short, and says so."""
        self.alpha = self.started("standing", "ADMIN1 root\nNODECFG[n[1-3]] PROCS=2 MEM=2G\n"
                                  "SRCFG[float] PERIOD=INFINITY TASKCOUNT=2 USERLIST=nobody\n"
                                  "SRCFG[bound] PERIOD=INFINITY HOSTLIST=n3 USERLIST=nobody\n")
        def nodes_of(name):
            return sorted({r["node"] for r in self.data(self.alpha, "showres", "-n")
                           if r["reservation_id"].startswith(name)})
        wait_for("both to stand", lambda: nodes_of("float") and nodes_of("bound") == ["n3"], 30)
        had = nodes_of("float")[0]
        self.ok(self.alpha, "mnodectl", "-m", "state=down", had, "n3")
        wait_for("it to be refilled", lambda: nodes_of("float") not in ([], [had]), 60, self.alpha.log)
        self.assertIn("n3", self.ok(self.alpha, "diagnose", "-r"))
        self.assertRegex(self.ok(self.alpha, "diagnose", "-r"), r"WARNING: .*bound")
        self.ok(self.alpha, "mnodectl", "-m", "state=up", had, "n3")
        wait_for("no warning any more", lambda: "WARNING" not in self.ok(self.alpha, "diagnose", "-r"),
                 60, self.alpha.log)


class FromTheGrid(GridCase):
    """nui submit says the same; the signed job carries it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.grid.layout.config("alpha")
        path.write_text(path.read_text() + "USERCFG[DEFAULT] QLIST=low,high QDEF=low\nQOSCFG[low] QFLAGS=PREEMPTEE\n"
                        "QOSCFG[high] PRIORITY=1000 QFLAGS=PREEMPTOR\nQOSWEIGHT 1\nPREEMPTPOLICY REQUEUE\n")
        cls.grid.daemons["alpha"].stop()
        cls.grid.daemons["alpha"].start()
        cls.grid.wait_serving()

    def submit(self, name, *options):
        self.addCleanup(self.open_gate, name)
        return self.grid.submit("alice", "-A", "phys", *options, self.gated_script(name))

    def test_a_firm_part_is_displaced_by_nobody(self):
        """Neither while it runs nor while it waits for its moment; what else is preemptible goes."""
        sides = ["--component", "left:site=alpha,tasks=2,qos=low", "--component", "right:site=beta,tasks=2"]
        pair = self.submit("pair", "-t", "30:00", *sides)
        self.wait_state(pair, ("Running",))
        later = self.submit("later", "-t", "30:00", "--after", "+20:00", *sides)
        moment = self.wait_state(later, ("Reserved",))["start_time"]
        lone = self.submit("lone", "-n", 4, "-t", "30:00", "--site", "alpha", "-q", "low")
        self.wait_state(lone, ("Running",))
        large = self.submit("large", "-n", 8, "-t", "10:00", "--site", "alpha", "-q", "high")
        self.wait_state(large, ("Queued",))
        quick = self.submit("quick", "-n", 4, "-t", "10:00", "--site", "alpha", "-q", "high")
        self.wait_state(quick, ("Running",))
        wait_for("the lone job to be queued again", lambda: self.status("alice", lone)["state"] == "Queued", 30)
        self.assertEqual(self.status("alice", large)["state"], "Queued")
        self.assertEqual(self.status("alice", pair)["state"], "Running")
        waits = self.status("alice", later)
        self.assertEqual((waits["state"], waits["start_time"]), ("Reserved", moment))
        self.assertEqual(len(self.began("pair")), 2)
        for name in ("quick", "large", "pair", "lone"):
            self.open_gate(name)
        for ident in (quick, large, pair, lone):
            self.wait_state(ident, ("Completed",))
        self.nui("alice", "cancel", later)

    def test_submit(self):
        script = self.write("placed.sh", "#!/bin/sh\ncat $NUI_NODEFILE\n")
        ident = self.grid.submit("alice", "-A", "phys", "-t", "5:00", "--site", "alpha", "-n", 2,
                                 "-w", "alpha[02-03]", "-x", "alpha02", "--node-access", "SINGLEJOB",
                                 "--nodeset", "ANYOF:PROCSPEED", script)
        self.wait_state(ident, ("Completed",))
        self.assertEqual(self.nui("alice", "output", ident).stdout.split(), ["alpha03"] * 2)


if __name__ == "__main__":
    main()
