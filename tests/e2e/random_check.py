"""Is a schedule right? Looks at what `nui sim --events-out` printed and at the scene (random_site.py), and knows
nothing of the scheduler's code. Each check yields sentences; none: all is well."""
import csv
from collections import defaultdict

from random_site import DAY, suits

FOREVER = float("inf")


class Schedule:
    def __init__(self, scene, text):
        self.scene = scene
        self.jobs = {j["number"]: j for j in scene.jobs}
        self.events = [(float(r["time"]), r["event"], int(r["job"]), float(r["at"]) if r["at"] else None,
                        dict(self.host(h) for h in r["hosts"].split())) for r in csv.DictReader(text.splitlines())]
        self.start, self.end, self.on = {}, {}, {}  # of its last run, where it was sent back
        self.runs = []  # (job, from, to, hosts)
        self.sent_back = [job for _, event, job, _, _ in self.events if event == "preempt"]
        runs = {}
        for time, event, job, _, hosts in self.events:
            if event in ("start", "resume"):
                runs[job] = time, hosts
            if event == "start":
                self.start[job], self.on[job] = time, hosts
            elif event in ("end", "preempt") and job in runs:
                begun, on = runs.pop(job)
                self.runs.append((job, begun, time, on))
            if event == "end":
                self.end[job] = time

    @staticmethod
    def host(text):
        name, tasks = text.rsplit(":", 1)
        return name, int(tasks)

    def windows(self, rsv, start, end):
        """When the reservation stands, within [start, end)."""
        if rsv["hours"] is None:
            yield max(start, self.scene_begin), end
            return
        day = start // DAY * DAY
        while day < end:
            begin, stop = day + rsv["hours"][0] * 3600, day + rsv["hours"][1] * 3600
            if begin < end and stop > start:
                yield max(begin, start), min(stop, end)
            day += DAY

    @property
    def scene_begin(self):
        return self.scene.jobs[0]["submit"] if self.scene.jobs else 0


def jobs_right(s):
    """Each started once, not before it came, on nodes that suit it, with as many tasks as it asks; it ran its time."""
    starts = [job for _, event, job, _, _ in s.events if event == "start"]
    for job in set(starts):
        if starts.count(job) > 1 + s.sent_back.count(job):
            yield f"job {job} started {starts.count(job)} times"
    for job, at in s.start.items():
        j = s.jobs[job]
        if at < j["submit"]:
            yield f"job {job} started {j['submit'] - at} s before it came"
        if j["deadline"] and at + j["limit"] > j["deadline"]:
            yield f"job {job} may run past its deadline"
        if sum(s.on[job].values()) != j["tasks"]:
            yield f"job {job} has {sum(s.on[job].values())} tasks, not {j['tasks']}"
        for node in s.on[job]:
            if not suits(j, s.scene.nodes[node]):
                yield f"job {job} is on {node}, which does not suit it"
        if job not in s.sent_back and s.end.get(job) != at + min(j["run"], j["limit"]):
            yield f"job {job} ended at {s.end.get(job)}, not at {at + min(j['run'], j['limit'])}"


def nodes_right(s):
    """No node has more than it has: tasks, memory."""
    changes = sorted([(t, 1, j, on) for j, t, _, on in s.runs] + [(t, 0, j, on) for j, _, t, on in s.runs],
                     key=lambda c: c[:3])
    used, memory = defaultdict(int), defaultdict(int)
    for _, begins, job, on in changes:
        for node, tasks in on.items():
            sign = tasks if begins else -tasks
            used[node] += sign
            memory[node] += sign * s.jobs[job].get("dedicated", 0)
            if used[node] > s.scene.nodes[node]["procs"]:
                yield f"node {node} has {used[node]} tasks at the start of job {job}"
            if memory[node] > s.scene.nodes[node]["memory"]:
                yield f"node {node} has {memory[node]} MB in use at the start of job {job}"


def reservations_right(s):
    """Nobody whom it does not admit is on a reservation's nodes until its limit."""
    if s.scene.more and "IGNSRMAXTIME" in s.scene.more.qos_flags:
        return
    for rsv in s.scene.standing:
        for job, at in s.start.items():
            j = s.jobs[job]
            if j["user"] in rsv["users"] or not set(s.on[job]) & set(rsv["hosts"]):
                continue
            for begin, _ in s.windows(rsv, at, at + j["limit"]):
                yield f"job {job} of {j['user']}, from {at} on, is in a reservation from {begin} on"


def counted(scene, limit, j, left):
    """What the job counts against such a limit while so much of its own limit is left."""
    largest = max(n["procs"] for n in scene.nodes.values())
    procs, memory = (sum(n[what] for n in scene.nodes.values()) for what in ("procs", "memory"))
    own = j["tasks"] * j.get("dedicated", 0)
    return {"MAXJOB": 1, "MAXPROC": j["tasks"], "MAXNODE": -(-j["tasks"] // largest), "MAXPS": j["tasks"] * left, "MAXWC": left,
            "MAXMEM": own, "MAXPE": round(max(j["tasks"] / procs, own / memory) * procs, 6)}[limit]


def limits_right(s):
    """No hard limit is broken by a start."""
    if s.scene.ignores or (s.scene.more and s.scene.more.lifts_limits()):
        return
    for kind, name, limit, _, hard in s.scene.limits:
        for job, at in s.start.items():
            j = s.jobs[job]
            if kind != "system" and j[kind] != name:
                continue
            first = [e[2] for e in s.events if e[1] == "start" and e[0] == at]
            use = counted(s.scene, limit, j, j["limit"])
            for other, begun in s.start.items():
                o = s.jobs[other]
                if other == job or begun > at or s.end[other] <= at or (kind != "system" and o[kind] != name):
                    continue
                if other in s.sent_back or (begun == at and first.index(other) > first.index(job)):
                    continue
                use += counted(s.scene, limit, o, begun + o["limit"] - at)
            if use > hard:
                yield f"job {job} brings {kind} {name} to {use} of {limit} {hard}"


# What moves a promise by itself, though nobody came who goes first and nothing failed: each with its reason. All else (limits,
# standing reservations, windows, chunks, depths, node sets, licences) must leave the promise of the first job alone.
MOVES = {
    "WEIGHT": "priorities are no longer age: another may be first tomorrow", "CAP": "the same", "TARGET": "the same", "FSPOLICY": "the same",
    "ACCRUAL": "age does not begin when the job comes",
    "PREEMPT": "who is evicted comes back to the queue at its old place, and who evicts goes first", "RUNNOW": "the same",
    "OWNER": "the same, on the owner's nodes",
}


def promises_right(s):
    """A promise to the job that is first of all that wait does not slide back, where priority is age: no job of higher
    priority comes, no node fails and no policy is changed in a scene. See MOVES, may_move."""
    if moved_by(s.scene):
        return
    waiting, told = [], {}
    for time, event, job, at, _ in s.events:
        waiting = [j["number"] for j in s.scene.jobs if j["submit"] <= time and s.start.get(j["number"], FOREVER) > time]
        if event != "promise" or not waiting or job != waiting[0]:
            continue
        if at > told.get(job, FOREVER) and not may_move(s.scene, s.jobs[job]):
            yield f"job {job}, first of all, was promised {told[job]}, and then {at}"
        told[job] = at


def moved_by(scene):
    """What of MOVES the configuration says."""
    lines = [line for line in scene.config if not line.startswith("QUEUETIMEWEIGHT") and
             not (line.split()[0].endswith("WEIGHT") and line.endswith(" 0"))]
    return {word for word in MOVES for line in lines if word in line}


def may_move(scene, j):
    """Is this job under a limit on what is active, which others of the same credential may use up meanwhile; or kept out by a
    reservation that comes again, of which the windows after the next ones are not there yet?"""
    more = scene.more.lines if scene.more else []
    return (any(kind == "system" or j[kind] == name for kind, name, *_ in scene.limits)
            or any(rsv["hours"] and j["user"] not in rsv["users"] for rsv in scene.standing)
            or any("MAX" in line or line.startswith("SRCFG") for line in more))


def alone(s, j, at):
    """Could it start on the empty machine, whatever else waits?"""
    for kind, name, limit, soft, _ in s.scene.limits:
        if (kind == "system" or j[kind] == name) and counted(s.scene, limit, j, j["limit"]) > soft:
            return False
    room = 0
    for name, node in s.scene.nodes.items():
        barred = any(name in r["hosts"] and j["user"] not in r["users"] and list(s.windows(r, at, at + j["limit"]))
                     for r in s.scene.standing)
        room += node["procs"] if suits(j, node) and not barred else 0
    return room >= j["tasks"]


def stalls_right(s):
    """The machine is not empty while somebody who is promised nothing could run on it at once."""
    lines = s.scene.config
    if s.scene.capped or (s.scene.more and s.scene.more.hinders()) or any(word in line for line in lines for word in
                             ("MAXIJOB", "SYSTEMMAX", "BFCHUNK", "BACKFILLPOLICY NONE", "ACCESSPOLICY SINGLETASK", "CONTIGUOUS", "DEDICATED",
                              "MAXBALANCE", "NTR", "NOBF")):
        return
    moments = sorted({t for t in s.end.values()} | {j["submit"] for j in s.scene.jobs})
    for at in moments:
        if any(t <= at < s.end[j] for j, t in s.start.items()):
            continue
        for j in s.scene.jobs:
            waits = j["submit"] <= at < s.start.get(j["number"], FOREVER) and (
                not j["deadline"] or at + j["limit"] <= j["deadline"])
            promised = [e for e in s.events if e[1] == "promise" and e[0] <= at < s.start.get(e[2], FOREVER)]
            if waits and not promised and alone(s, j, at):
                yield f"at {at} nothing runs, nothing is promised, and job {j['number']} does not start"
                return


def wrongs(scene, text):
    schedule = Schedule(scene, text)
    for check in (jobs_right, nodes_right, reservations_right, limits_right, promises_right, stalls_right):
        yield from check(schedule)
