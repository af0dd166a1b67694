"""The policy book's pages (tests/unit/local/scenarios/*.txt) on a live nui-local: each page's configuration
is taken by a reload, its jobs are submitted with msub and run as processes; who runs where, who is
promised what and why the others wait is asked of showq and showres.

A page's moments are walked through in order, but no time goes by: a job that has ended by then is let
go, an event happens. What hangs on time itself (deferrals, queue times, reservations by day) is
looked at for as long as the page says the same without it: UNTIL."""
import os
import re
import time
import unittest
from datetime import datetime, timezone

from fixture import ROOT, main
from onesite import wait_for
from policy_case import PolicyCase

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
    # queue time, fairshare windows, deferrals, deadlines and thresholds take their time: e2e_livepolicies
    "accrual": "0", "accrual-always": "0", "accrual-full": "0", "backfill-chunk": "10:00", "deadline": "0",
    "defer-noresources": "0", "fairshare-utilized": None, "limits-idle": "0", "priority-fairshare": "0",
    "priority-service": "0", "priority-setspri": "0", "priority-target": "0", "priority-use": "30:00",
    "reservation-threshold-queuetime": "0", "reservation-threshold-xfactor": "0", "iteration": None,
    # the time of day counts: e2e_livepolicies
    "qos-usereserved": None, "reservation-development": None, "reservation-idle": None,
    "reservation-shortpool": None, "reservation-week": None,
    # launches that fail, jobs past their limit, arrays: e2e_livepolicies; measured loads: e2e_placement
    "defer": None, "reservation-retry": None, "wcviolation-cancel": "0", "wcviolation-preempt": "0",
    "node-availability-combined": None, "node-availability-dedicated": None,
    "node-availability-utilized": None, "node-cpuload": None, "node-load-procs": None,
    "node-load-state": None, "node-priorityf": "0", "arrays": None, "preempt-suspend": "20:00",
    "preempt-firm": None,  # parts of co-allocations need a grid
    "preempt-checkpoint": None,  # below, with what its hook did
    "limits-active": "0", "machine-speed": "1:00:00",  # what is left of limits is not less
    "reservation-acl": "1:00",  # one of its jobs is the grid's
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

    def nodes_as_free(self, job, text, queue, places):
        """The page's nodes, or others that what runs there leaves in the same second: which of these comes first is a matter of
        microseconds between real starts (in simulated time, tests/unit/local, they are the page's own)."""
        def free(nodes):
            ends = {node: 0.0 for node in nodes}
            for ident, row in queue.items():
                for node in nodes.keys() & places.get(ident, {}).keys() if row["state"] == "Running" else ():
                    begun = datetime.strptime(row["start_time"], "%Y-%m-%dT%H:%M:%SZ").timestamp()
                    ends[node] = max(ends[node], begun + seconds(row["walltime"]))
            return sorted(ends.values())
        want, have = hosts(text), places.get(job.ident, {})
        return self.nodes_are(job, text, places) or (
            len(want) == len(have) and all(n == 0 or n in have.values() for n in want.values()) and
            all(abs(a - b) <= 2 for a, b in zip(free(want), free(have))))

    def holds(self, name, verb, rest, queue, places):
        """Whether the page's sentence is true now."""
        if name == "order":
            jobs = [self.jobs[n].ident for n in [verb, *rest.split()]]
            return [i for i in self.order if i in jobs] == jobs
        job, words = self.jobs[name], rest.split()
        if verb == "waits" and job.ident is None:  # refused at once
            return words[0] in ("NoResources", "NoLicences", "Deferred") or (
                words[0] in ("ClassLimits", "PolicyViolation") and " ".join(words[1:]).strip('"') in job.refused)
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
            return near and ("on" not in words or self.nodes_as_free(job, words[2], queue, places))
        if verb == "unreserved":
            return state != "gone" and not row["reserved_start"]
        if verb == "priority":
            return row.get("priority") == int(words[0])
        return state == {"ended": "gone", "cancelled": "gone", "timed-out": "gone", "preempted": "Idle",
                         "suspended": "Suspended"}[verb]

    def look(self, moment, lines):
        def lacking():
            nonlocal queue
            queue = self.queue()
            places = self.where() if any(" on " in line for line in lines) else {}
            return [line for line in lines if not self.holds(*(line.split(None, 2) + [""])[:3], queue, places)]
        queue, deadline = {}, time.monotonic() + self.case.patience
        while wrong := lacking():
            if time.monotonic() > deadline:
                places = self.where()
                told = "\n".join(f"{j.name} {queue.get(j.ident, getattr(j, 'refused', j.ident))} "
                                 f"{places.get(j.ident)} {self.told(j)}"
                                 for j in self.jobs.values() if j.ident or j.at <= moment)
                self.case.fail(f"{self.path}: at {moment}: {wrong}\n{told}")
            time.sleep(0.05)
        return queue

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
        queue = self.look(moment, lines)
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
class Book(PolicyCase):
    patience = 60

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.state / "etc" / "topology.conf").write_text((BOOK / "topology.conf").read_text())
        hook = cls.shared / "hook.sh"
        hook.write_text(f"#!/bin/sh\necho $1 >> {cls.shared}/checkpoints\n")
        hook.chmod(0o755)
        cls.own += f"CHECKPOINTACCOUNT root\nCHECKPOINTHOOK {hook}\n"
        cls.alpha.start()

    def test_checkpoint_hook(self):
        Page(self, BOOK / "preempt-checkpoint.txt").walk()
        made = (self.shared / "checkpoints").read_text().split()
        self.assertEqual(len(made), 1, made)  # of B, and of nobody else
        self.assertEqual(self.job(made[0])["state"], "Idle")


def page_test(path):
    return lambda self: Page(self, path).walk()


for found in sorted(BOOK.glob("*.txt")):
    if UNTIL.get(found.stem, "") is not None and "refused \"" not in found.read_text() and (
            found.stem.startswith(PLACES) or os.environ.get("NUI_BOOK") == "all"):
        setattr(Book, "test_" + found.stem.replace("-", "_"), page_test(found))

if __name__ == "__main__":
    main()
