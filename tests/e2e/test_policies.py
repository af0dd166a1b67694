"""The policy book's pages (tests/unit/local/scenarios/*.txt) on a live nui-local: each page's configuration
is taken by a reload, its jobs are submitted with msub and run as processes; who runs where, who is
promised what and why the others wait is asked of showq and showres.

A page's moments are walked through in order, but no time goes by: a job that has ended by then is let
go, an event happens. What hangs on time itself (deferrals, queue times, reservations by day) is
looked at for as long as the page says the same without it: UNTIL."""
import os
import re
import signal
import time
import unittest
from datetime import datetime, timezone

from fixture import ROOT, main
from onesite import SiteCase, wait_for

BOOK = ROOT / "tests" / "unit" / "local" / "scenarios"
USERS = ("daemon", "bin", "games", "man", "lp", "mail", "news", "uucp", "proxy", "www-data", "backup", "list",
         "irc", "sys")
GROUP, MEMBERS = "nogroup", ("nobody", "sync", "_apt")  # of the page's one group
OPTION = {"class": "-q", "qos": "--qos", "account": "-A", "walltime": "-t", "tasks": "--tasks", "tpn": "--tpn",
          "procs": "--procs-per-task", "memory": "--mem", "features": "--features", "gres": "--gres",
          "swap": "--swap", "disk": "--disk", "prefer": "--like",
          "licence": "--licence", "hosts": "-w", "nodeset": "--nodeset", "access": "--node-access",
          "partition": "--partition", "reservation": "--reservation"}
# {page: the last moment that can be walked to without time going by; None: not even the first}
UNTIL = {
    # queue time, fairshare windows, deferrals and thresholds take their time
    "accrual": "0", "accrual-always": "0", "accrual-full": "0", "backfill-chunk": "10:00", "deadline": "0",
    "defer-noresources": "0", "fairshare-utilized": None, "limits-idle": "0", "priority-fairshare": "0",
    "priority-service": "0", "priority-setspri": "0", "priority-target": "0", "priority-use": "30:00",
    "reservation-threshold-queuetime": "0", "reservation-threshold-xfactor": "0", "iteration": None,
    # the time of day counts; the pool and a weekly downtime are in e2e_resv, others in e2e_book, in a simulation
    "qos-usereserved": None, "reservation-development": None, "reservation-idle": None,
    "reservation-shortpool": None, "reservation-week": None,
    # launches that fail and jobs past their limit: below; measured loads: e2e_placement; arrays: e2e_local
    "defer": None, "reservation-retry": None, "wcviolation-cancel": "0", "wcviolation-preempt": "0",
    "node-availability-combined": None, "node-availability-dedicated": None,
    "node-availability-utilized": None, "node-cpuload": None, "node-load-procs": None,
    "node-load-state": None, "node-priorityf": "0", "arrays": None, "preempt-suspend": "20:00",
    "preempt-firm": None,  # parts of co-allocations need a grid
    "preempt-checkpoint": None,  # below, with what its hook did
    "limits-active": "0", "machine-speed": "1:00:00",  # several ends at one moment
    "reservation-acl": "0",  # its next one is of a job of the grid
}
# Who may use what, when and where; NUI_BOOK=all walks the pages about the queue as well.
PLACES = ("access", "class", "deadline", "defer", "dependencies", "holds", "licences", "limits-qos", "machine",
          "match", "node", "partitions", "preempt", "qos", "reqs", "reservation-acl", "reservation-affinity",
          "reservation-both", "reservation-flags", "reservation-float", "reservation-owner",
          "reservation-preemptee", "task")
DEFERRED = ("NoResources", "SystemLimitsExceeded")


def seconds(text):
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    parts = [int(p) for p in text.split(":")]
    return sign * sum(n * unit for n, unit in zip(reversed(parts), (1, 60, 3600, 86400)))


def hosts(text):
    """["n1", "n2"] of n[1-2]; with :TASKS {"n1": 3}."""
    found = {}
    for part in re.findall(r"(?:\[[^\]]*\]|[^,\[])+", text):
        part, _, tasks = part.partition(":")
        inside = re.fullmatch(r"(.*?)\[(.*)\]", part)
        names = [part]
        if inside:
            names = []
            for piece in inside.group(2).split(","):
                low, _, high = piece.partition("-")
                names += [f"{inside.group(1)}{n:0{len(low)}}" for n in range(int(low), int(high or low) + 1)]
        found.update({name: int(tasks or 0) for name in names})
    return found


def sections(path):
    found, section = {}, None
    for line in path.read_text().splitlines():
        line = line.split("#")[0].rstrip()
        if re.fullmatch(r"\[\w+\]", line):
            section = found.setdefault(line.strip("[]"), [])
        elif section is not None and line.strip():
            section.append(line.strip())
    return found


class Job:
    def __init__(self, line):
        first, *more = line.split(" + ")
        self.name, *words = first.split()
        self.of = dict(word.split("=", 1) for word in words)
        self.reqs = [dict(word.split("=", 1) for word in m.split()) for m in more]
        self.at = seconds(self.of.get("at", "0"))
        self.ident = self.began = self.ends = None

    def who(self):
        return self.of.get("user", "nobody-said"), self.of.get("group")


class Page:
    """One page on its way."""

    def __init__(self, case, path):
        self.case, self.site, self.path, text = case, case.alpha, path, sections(path)
        self.jobs = {job.name: job for job in map(Job, text.get("jobs", []))}
        self.config, self.nodes = text["config"], text["nodes"]
        self.events = [line.split() for line in text.get("events", [])]
        # a job of the grid cannot be made with msub
        grid = [name for name, job in self.jobs.items() if job.of.get("attrs") == "GRID"]
        for name in grid:
            del self.jobs[name]
        self.expected = [line.split(None, 1) for line in text.get("expect", [])
                         if line.split()[1] not in grid]
        self.accounts = self.people()

    def people(self):
        """{(user, group): an account of this machine}"""
        found, users, members = {}, list(USERS), list(MEMBERS)
        for who in dict.fromkeys(job.who() for job in self.jobs.values()):
            found[who] = members.pop(0) if who[1] else users.pop(0)
        return found

    def account(self, name):
        return next((a for (user, _), a in self.accounts.items() if user == name), name)

    # ---- the configuration

    def named(self, line):
        """Its users and group as this machine calls them."""
        line = re.sub(r"(USERCFG\[|USER:)(\w+)", lambda m: m.group(1) + self.account(m.group(2)), line)
        group = next((g for _, g in self.accounts if g), None)
        line = re.sub(rf"(GROUPCFG\[|GROUP:){group}\b", rf"\g<1>{GROUP}", line)
        line = re.sub(rf"(GROUPLIST=\S*?)\b{group}\b", rf"\g<1>{GROUP}", line)
        listed = re.compile(r"(USERLIST=)(\S+)|(SRUSERLIST\[\w+\])(.*)")
        return listed.sub(lambda m: (m.group(1) or m.group(3)) + re.sub(
            r"\w+", lambda n: self.account(n.group(0)), m.group(2) or m.group(4)), line)

    def configuration(self):
        """A line of NODECFG for each node, in the page's order."""
        said, rest, states = {}, [], {}
        for line in self.nodes:
            where, *words = line.split()
            for node in hosts(where):
                said[node] = {"PROCS": "1"}
                for word in words:
                    key, value = word.split("=", 1)
                    if key == "state":
                        states[node] = value
                    else:
                        said[node][{"memory": "MEM"}.get(key, key.upper())] = value
        more = []
        for line in self.config:
            at = re.match(r"NODECFG\[((?!DEFAULT|GLOBAL).*)\]\s+(.*)", line)
            more += [f"NODECFG[{node}] {at.group(2)}" for node in hosts(at.group(1))] if at else [self.named(line)]
        rest = "".join(f"NODECFG[{node}] " + " ".join(f"{k}={v}" for k, v in of.items()) + "\n"
                       for node, of in said.items())
        return rest + "\n".join(more) + "\n", states

    # ---- what happens

    def nui(self, *args, **options):
        return self.case.ok(self.site, *args, **options)

    def submit(self, job, *words):
        words = list(words)
        for key, value in job.of.items():
            if key in OPTION:
                words += [OPTION[key], value]
            elif key == "on":
                of = hosts(value)
                words += ["-w", ",".join(of)] + (["--tasks", len(of)] if "tasks" not in job.of else [])
            elif key == "depend":
                words += ["--depend", ",".join(f"{k}:{self.jobs[j].ident}" for k, j in
                                               (one.split(":") for one in value.split(",")))]
            elif key == "deadline":
                words += ["--deadline", f"+{value}"]
            elif key == "hold" and "user" in value:
                words.append("-h")
            elif key == "flags":
                words += ["--flags", value.upper()]
        for req in job.reqs:
            words += ["--req", ",".join(f"{ {'memory': 'mem', 'procs': 'procs-per-task'}.get(k, k)}={v}"
                                        for k, v in req.items())]
        if job.ident:
            return
        fifo = self.case.shared / f"{self.path.stem}.{job.name}"
        os.mkfifo(fifo)
        fifo.chmod(0o666)
        done = self.site.nui("msub", *words, self.case.script, fifo, job.of.get("exit", 0),
                             account=self.accounts[job.who()])
        if done.returncode == 0:
            job.ident = done.stdout.strip()
        else:
            job.refused = done.stderr
        for kind in ("system", "batch"):
            if kind in job.of.get("hold", ""):
                self.nui("sethold", f"-{kind[0]}", job.ident)

    def let_go(self, job):
        pipe = os.open(self.case.shared / f"{self.path.stem}.{job.name}", os.O_RDWR | os.O_NONBLOCK)
        os.write(pipe, b"\n")
        self.case.pipes.append(pipe)
        wait_for(f"{job.name} to have ended", lambda: job.ident not in self.queue(), 60, self.site.log)

    def event(self, verb, *args):
        job = self.jobs.get(args[0])
        if verb in ("down", "up", "drain"):
            self.nui("mnodectl", "-m", f"state={ {'drain': 'drained'}.get(verb, verb)}", *hosts(args[0]))
            self.case.changed.update(hosts(args[0]))
        elif verb == "hold":
            self.nui("sethold", f"-{args[1][0]}", job.ident)
        elif verb == "release":
            self.nui("releasehold", f"-{args[1][0]}", job.ident)
        elif verb == "setspri":
            self.nui("setspri", *(["-r"] if args[2:] else []), args[1], job.ident)
        elif verb == "cancel":
            self.nui("canceljob", job.ident)
        elif verb == "end":
            self.let_go(job)
        else:
            raise AssertionError(f"{self.path.name}: '{verb}' cannot be made to happen here")

    # ---- what came about

    def queue(self):
        rows = self.case.data(self.site, "showq")
        self.order = [r["job_id"] for s in ("idle", "blocked") for r in rows[s]]
        return {r["job_id"]: r for s in ("active", "idle", "blocked") for r in rows[s]}

    def where(self):
        found = {}
        for row in self.case.data(self.site, "showres", "-n"):
            found.setdefault(row["reservation_id"], {})[row["node"]] = row["tasks"]
        return found

    def nodes_are(self, job, text, places):
        want, have = hosts(text), places.get(job.ident, {})
        return want.keys() == have.keys() and all(n in (0, have[node]) for node, n in want.items())

    def holds(self, name, verb, rest, queue, places):
        """Whether the page's sentence is true now."""
        if name == "order":
            jobs = [self.jobs[n].ident for n in [verb, *rest.split()]]
            return [i for i in self.order if i in jobs] == jobs
        job, words = self.jobs[name], rest.split()
        if verb == "waits" and job.ident is None:  # refused at once
            return words[0] in ("NoResources", "NoLicences", "Deferred")
        row = queue.get(job.ident, {"state": "gone"})
        state = row["state"]
        if verb in ("starts", "runs"):
            phase = words[words.index("phase") + 1] if "phase" in words else None
            return (state == "Running" and ("on" not in words or self.nodes_are(job, words[1], places)) and
                    (phase not in ("priority", "backfill") or row["backfilled"] == (phase == "backfill")))
        if verb == "waits":
            return state == "Idle" and self.waits(job, words[0], re.search(r'"(.*)"|$', rest).group(1) or "")
        if verb == "reserved":
            when = row.get("reserved_start")
            if not when:
                return False
            when = datetime.strptime(when, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
            after = seconds(words[0])  # of the page's beginning, or what slides: of this moment
            near = abs(when - self.began - after) < 60 or abs(when - time.time() - after + self.now) < 60
            return near and ("on" not in words or self.nodes_are(job, words[2], places))
        if verb == "unreserved":
            return state != "gone" and not row["reserved_start"]
        if verb == "priority":
            return row.get("priority") == int(words[0])
        return state == {"ended": "gone", "cancelled": "gone", "timed-out": "gone", "preempted": "Idle",
                         "suspended": "Suspended"}[verb]

    def look(self, moment, lines):
        def lacking():
            queue = self.queue()
            places = self.where() if any(" on " in line for line in lines) else {}
            return [line for line in lines if not self.holds(*(line.split(None, 2) + [""])[:3], queue, places)]
        deadline = time.monotonic() + self.case.patience
        while wrong := lacking():
            if time.monotonic() > deadline:
                queue, places = self.queue(), self.where()
                told = "\n".join(f"{j.name} {queue.get(j.ident, getattr(j, 'refused', j.ident))} "
                                 f"{places.get(j.ident)} {self.told(j)}"
                                 for j in self.jobs.values() if j.ident or j.at <= moment)
                self.case.fail(f"{self.path}: at {moment}: {wrong}\n{told}")
            time.sleep(0.05)

    def waits(self, job, code, text):
        of = self.case.data(self.site, "checkjob", job.ident)
        held, why = [h.lower() for h in of["holds"]], of["job"]["reason"] or ""
        if code == "Hold":
            return why != "" and (text == "dependency" and of["job"]["reason_code"].startswith("Dependency") or
                                  held == (text.split(", ") if text else held) != [])
        for (user, group), account in self.accounts.items():
            text = text.replace(f"user {user} ", f"user {account} ").replace(f"group {group}", f"group {GROUP}")
        return (of["job"]["reason_code"] in DEFERRED if code == "Deferred"
                else of["job"]["reason_code"] == code) and text in why

    def told(self, job):
        done = self.site.nui("checkjob", job.ident) if job.ident else None
        return re.findall("(?:Waits|State): .*", done.stdout) if done else ""

    def walk(self):
        last = UNTIL.get(self.path.stem) or "9999:00:00"
        text, states = self.configuration()
        self.case.reload(text)
        for node, state in states.items():
            self.event({"drained": "drain"}.get(state, state), node)
        moments = sorted({0, *(j.at for j in self.jobs.values()), *(seconds(e[0]) for e in self.events),
                          *(seconds(e[0]) for e in self.expected)})
        for moment in moments:
            if moment > seconds(last):
                break
            self.moment(moment)

    def moment(self, moment):
        lines = [line for at, line in self.expected if seconds(at) == moment]
        before = [j for j in self.jobs.values() if j.at == moment == 0 and "on" in j.of]
        for job in before:
            self.submit(job)
        if before:
            wait_for("them to run", lambda: all(self.queue()[j.ident]["state"] == "Running" for j in before), 30,
                     self.site.log)
        self.nui("schedctl", "-s")
        self.now = moment
        if moment == 0:
            self.began = time.time()
        # by the page's time they have ended
        for job in list(self.jobs.values()):
            if job.ends is not None and job.ends <= moment and job.ident:
                self.let_go(job)
                job.ends = None
        for at, verb, *args in self.events:
            if seconds(at) == moment:
                self.event(verb, *args)
        coming = [job for job in self.jobs.values() if job.at == moment and job not in before]
        for job in coming:
            for other in re.findall(r":(\w+)", job.of.get("depend", "")):
                if self.jobs[other].at > moment:
                    self.submit(self.jobs[other], "-h")  # its name is needed already
        for job in coming:
            if job.ident:
                self.nui("releasehold", "-u", job.ident)
            else:
                self.submit(job)
        self.nui("schedctl", "-r")
        self.look(moment, lines)
        queue = self.queue()
        for job in self.jobs.values():
            runs = job.ident and queue.get(job.ident, {}).get("state") == "Running"
            if runs and job.ends is None:
                # its limit here may be another, by the speed of its nodes
                asked = seconds(job.of.get("walltime", "10:00:00:00"))
                factor = round(2 * asked / max(1, seconds(queue[job.ident]["remaining"]))) / 2
                job.ends = moment + seconds(job.of.get("run", job.of.get("walltime", "10:00:00:00"))) / factor
            elif not runs:
                job.ends = None


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Book(SiteCase):
    patience = 60

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = cls.state / "shared"
        cls.shared.mkdir(mode=0o711)
        cls.script = cls.shared / "job.sh"
        cls.script.write_text("#!/bin/sh\nread x < \"$1\"\nexit $2\n")
        cls.script.chmod(0o755)
        cls.pipes, cls.changed = [], set()
        (cls.state / "etc" / "topology.conf").write_text((BOOK / "topology.conf").read_text())
        cls.alpha = cls.site()
        cls.refusals = 0
        hook = cls.shared / "hook.sh"
        hook.write_text(f"#!/bin/sh\necho $1 >> {cls.shared}/checkpoints\n")
        hook.chmod(0o755)
        cls.alpha.write(f"JOBDIR {cls.state}/jobs\nADMIN1 root\nRMPOLLINTERVAL 2\nCHECKPOINTHOOK {hook}\n")
        cls.own = cls.alpha.config.read_text()
        cls.alpha.config.write_text(cls.own + "NODECFG[first] PROCS=1\n")
        cls.alpha.start()

    def reload(self, text):
        count = len(self.alpha.logged("configuration_taken"))
        self.alpha.config.write_text(self.own + text)
        os.kill(self.alpha.process.pid(), signal.SIGHUP)

        def taken():
            refused = self.alpha.logged("configuration_refused")
            if len(refused) > self.refusals:
                type(self).refusals = len(refused)
                raise AssertionError(f"{refused[-1]}\n{text}")
            return len(self.alpha.logged("configuration_taken")) > count
        wait_for("the configuration", taken, 30, self.alpha.log)

    def tearDown(self):
        def gone():
            rows = self.data(self.alpha, "showq")
            ids = [r["job_id"] for s in ("active", "idle", "blocked") for r in rows[s]]
            if ids:
                self.alpha.nui("canceljob", *ids)
            return not ids
        wait_for("the queue to be empty", gone, 60, self.alpha.log)
        if self.changed:
            self.ok(self.alpha, "mnodectl", "-m", "state=up", *self.changed)
            self.changed.clear()
        for pipe in self.pipes:
            os.close(pipe)
        self.pipes.clear()


    # ---- what no page can say

    def msub(self, *args, account="games"):
        return self.ok(self.alpha, "msub", *args, account=account).strip()

    def job(self, ident):
        return self.data(self.alpha, "checkjob", ident)["job"]

    def wait_job(self, ident, state):
        wait_for(f"{ident} to be {state}", lambda: self.job(ident)["state"] == state, 60, self.alpha.log)

    def waiter(self, *args, **options):
        return self.msub("-t", "1:00:00", *args, "/usr/bin/sleep", "3600", **options)

    def where(self, ident):
        self.wait_job(ident, "Running")
        return "".join(r["node"] for r in self.data(self.alpha, "showres", "-n", ident))

    def test_checkpoint_hook(self):
        Page(self, BOOK / "preempt-checkpoint.txt").walk()
        made = (self.shared / "checkpoints").read_text().split()
        self.assertEqual(len(made), 1, made)  # of B, and of nobody else
        self.assertEqual(self.job(made[0])["state"], "Idle")

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
        self.reload("NODECFG[n1] PROCS=1\nSRCFG[kept] PERIOD=INFINITY HOSTLIST=n1 USERLIST=man IDLETIME=0:00:05\n"
                    "RMPOLLINTERVAL 1\n")
        job = self.waiter()
        self.assertEqual(self.job(job)["state"], "Idle")
        self.wait_job(job, "Running")

    def test_reserved_only(self):
        """QFLAGS USERESERVED: inside reservations that admit them and nowhere else, though others are idle."""
        self.reload("NODECFG[n[1-2]] PROCS=1\nQOSCFG[inside] QFLAGS=USERESERVED\nUSERCFG[games] QLIST=inside QDEF=inside\n"
                    "SRCFG[day] PERIOD=INFINITY HOSTLIST=n1 USERLIST=games,man\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\n")
        self.assertEqual(self.where(self.waiter()), "n1")
        second = self.waiter()
        self.assertEqual(self.where(self.waiter(account="mail")), "n2")
        self.assertEqual((self.job(second)["state"], self.job(second)["reason_code"]), ("Idle", "Resources"))

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
        wait_for("it to say why", lambda: self.job(barred)["reason_code"] == "ReservationAccess", 60)
        self.ok(self.alpha, "releaseres", "closed.0")
        self.wait_job(barred, "Running")


def page_test(path):
    return lambda self: Page(self, path).walk()


for found in sorted(BOOK.glob("*.txt")):
    if UNTIL.get(found.stem, "") is not None and "refused \"" not in found.read_text() and (
            found.stem.startswith(PLACES) or os.environ.get("NUI_BOOK") == "all"):
        setattr(Book, "test_" + found.stem.replace("-", "_"), page_test(found))

if __name__ == "__main__":
    main()
