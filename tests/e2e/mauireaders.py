"""Programs that read Maui's output, written here in the manner of those that grid sites run: by columns, by words, by
regular expressions. They know nothing of Nui."""
import calendar
import re
import time

ROW = re.compile(r"^(\S+)\s+(\S+)\s+([A-Z][A-Za-z]+)\s+(\d+)\s+(-?[\d:]+)\s+"
                 r"((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d)\s*$")
BUSY = re.compile(r"^\s*(\d+) Active Jobs\s+(\d+) of\s+(\d+) Processors Active \(([\d.]+)%\)")


def seconds(span):
    """"1:02:03:04" as an awk script adds it up."""
    sign, total = (-1 if span.startswith("-") else 1), 0
    for part, unit in zip(reversed(span.lstrip("-").split(":")), (1, 60, 3600, 86400)):
        total += int(part) * unit
    return sign * total


def information_provider(showq, diagnose_g):
    """What a site tells its grid: processors, jobs by state and user, and each group's limit on jobs."""
    told = {"jobs": [], "running": {}, "waiting": {}, "limit": {}}
    section = None
    for line in showq.splitlines():
        if re.match(r"^(ACTIVE|IDLE|BLOCKED) JOBS-+$", line):
            section = line.split()[0]
        busy = BUSY.match(line)
        if busy:
            told["active"], told["used"], told["procs"] = (int(busy[i]) for i in (1, 2, 3))
            assert float(busy[4]) <= 100
        row = ROW.match(line)
        if row:
            name, user, state, procs, left, moment = row.groups()
            told["jobs"].append((name, section, state, int(procs), seconds(left),
                                 calendar.timegm(time.strptime("2001 " + moment, "%Y %a %b %d %H:%M:%S"))))
            kind = "running" if section == "ACTIVE" else "waiting"
            told[kind][user] = told[kind].get(user, 0) + 1
        total = re.match(r"^Total Jobs: (\d+)   Active Jobs: (\d+)   Idle Jobs: (\d+)   Blocked Jobs: (\d+)", line)
        if total:
            told["total"] = int(total[1])
    name = limits = None
    for line in diagnose_g.splitlines():
        words = line.split()
        if name is None:
            if "Name" in words and "Limits" in words and "Priority" in words:
                name, limits = words.index("Name"), words.index("Limits")
        elif len(words) > limits:
            found = re.search(r"MAXJOB=([0-9,]+)", " ".join(words[limits:]))
            told["limit"][words[name]] = int(found[1].split(",")[-1]) if found else None
    return told


class JobWatcher:
    """A gateway that asks about one job until it is done, out of the page that people read."""

    def __init__(self, checkjob):
        self.state = re.search(r"^State: +(\w+)", checkjob, re.M)[1]
        self.creds = dict(part.split(":") for part in re.search(r"^Creds: +(.*)$", checkjob, re.M)[1].split())
        used, limit = re.search(r"^WallTime: +(\S+) of +(\S+)", checkjob, re.M).groups()
        self.used, self.limit = seconds(used), seconds(limit)
        self.tasks = int(re.search(r"^Total Tasks: (\d+)", checkjob, re.M)[1])
        nodes = re.search(r"^Allocated Nodes:\n(.*)$", checkjob, re.M)
        self.nodes = {n: int(t) for n, t in re.findall(r"\[([^:\]]+):(\d+)\]", nodes[1])} if nodes else {}
        start = re.search(r"^StartTime: (.*)$", checkjob, re.M)
        self.start = start and start[1]
        holds = re.search(r"^Holds: +(.*)$", checkjob, re.M)
        self.holds = holds[1].split() if holds else []
        why = re.search(r"^(?:cannot select job|job cannot run)[^(]*\((.*)$", checkjob, re.M)
        self.why = why and why[1]
        self.priority = int(re.search(r"StartPriority: +(-?\d+)", checkjob)[1])


def attributes(line):
    """checkjob -A, as scripts take it apart."""
    return dict(part.split("=") for part in line.rstrip().rstrip(";").split(";"))


def nodes_of(diagnose_n):
    """name: (state, free and configured processors, free and configured memory), by awk's columns."""
    found = {}
    for line in diagnose_n.splitlines():
        words = line.split()
        if len(words) > 6 and re.match(r"^\d+:\d+$", words[2]) and words[0] != "-----":
            found[words[0]] = (words[1], *map(int, words[2].split(":")), *map(int, words[3].split(":")))
    return found


def jobs_of(diagnose_j):
    """name: (state, processors, limit, user, group, account, class), by the columns of the title."""
    found = {}
    for line in diagnose_j.splitlines():
        words = line.split()
        if len(words) >= 18 and words[0] != "Name":
            found[words[0]] = (words[1], int(words[3]), seconds(words[5]), words[8], words[9], words[10],
                               words[-2].strip("[]").split(":")[0])
    return found


def reservations_of(showres):
    """name: (type, state, begin, length, nodes, processors)"""
    return {m[1]: (m[2], m[3], seconds(m[4]), seconds(m[6]), int(m[7]), int(m[8]))
            for m in re.finditer(r"^(\S+)\s+(Job|User)\s+(\S)\s+(-?[\d:]+)\s+(-?[\d:]+)\s+([\d:]+)\s+(\d+)/(\d+)\s",
                                 showres, re.M)}


def start_of(showstart):
    m = re.search(r"^job (\S+) requires (\d+) procs for (\S+)\nEarliest start in +(\S+) on (.*)\n"
                  r"Earliest completion in *(\S+) on (.*)\nBest Partition: (\S+)$", showstart, re.M)
    return m[1], int(m[2]), seconds(m[3]), seconds(m[4]), seconds(m[6])


def windows_of(showbf):
    """(processors, seconds or None)"""
    return [(int(n), seconds(span) if span else None) for n, span in
            re.findall(r"^ *(\d+) procs? available (?:for +([\d:]+)|with no timelimit)", showbf, re.M)]


# ---- what watches a cluster from outside: columns by their place, as awk's substr and Perl's unpack take them

def node_monitor(checknode):
    """One node's page."""
    found = re.search(r"^State: +(\w+)  \(in current state for (-?[\d:]+)\)$", checknode, re.M)
    time_line = re.search(r"^Total Time: (\S+)  Up: (\S+) \(([\d.]+)%\)  Active: (\S+) \(([\d.]+)%\)$", checknode, re.M)
    configured, dedicated = (int(re.search(rf"^{word} +Resources: PROCS: (\d+)", checknode, re.M)[1])
                             for word in ("Configured", "Dedicated"))
    jobs = re.search(r"^JobList:  (.*)$", checknode, re.M)[1]
    return {"state": found[1], "since": seconds(found[2]), "procs": configured, "dedicated": dedicated,
            "load": float(re.search(r"Load: +([\d.]+)$", checknode, re.M)[1]),
            "features": re.search(r"^Features:   \[(.*)\]$", checknode, re.M)[1].split("]["),
            "classes": dict(re.findall(r"\[(\w+) (\d+:\d+)\]", re.search(r"^Classes: .*$", checknode, re.M)[0])),
            "total": seconds(time_line[1]), "active": float(time_line[5]), "jobs": jobs.split(",")}


def nodes_by_place(diagnose_n):
    """name: (state, procs, memory, speed, partition, load, reservations), each where Maui's title has it."""
    title = next(line for line in diagnose_n.splitlines() if line.startswith("Name "))
    edge = {word: title.index(word) + len(word) for word in ("State", "Speed", "Par", "Load", "Res")}
    found = {}
    for line in diagnose_n.splitlines()[3:]:
        if not line.startswith(("node", "n")):
            continue
        assert all(line[at] == " " for at in (20, 29, *edge.values())), line
        cell = {word: line[:at].split()[-1] for word, at in edge.items()}
        found[line[:20].strip()] = (line[21:29].strip(), line[30:37].strip(), line[38:51].strip(), float(cell["Speed"]),
                                    cell["Par"], float(cell["Load"]), int(cell["Res"]))
    return found


def running(showq_r):
    """name: (mark, state, partition, efficiency, xfactor, user, group, master host, processors, seconds left)"""
    rows = re.findall(r"^ *([\w.]+)([+*_ -]) ([A-Z]) +(\w+) +([\d.]+|-+) +([\d.]+) +\S+ +(\S+) +(\S+) +(\S+) +(\d+) +(-?[\d:]+)  \w{3} \w{3} ",
                      showq_r, re.M)
    return {r[0]: (r[1], *r[2:4], r[4], float(r[5]), r[6], r[7], r[8], int(r[9]), seconds(r[10])) for r in rows}


def waiting(showq_i):
    """name: (reserved, priority, xfactor, user, processors, limit, class); and the backlog in processor hours"""
    rows = re.findall(r"^ *([\w.]+)([* ]) +(-?\d+) +([\d.]+) +\S+ +(\S+) +\S+ +(\d+) +([\d:]+) +(\S+)  \w{3} \w{3} ", showq_i, re.M)
    jobs, backlog = re.search(r"^Jobs: (\d+)  Total Backlog: +([\d.]+) ProcHours  \([\d.]+ Hours\)$", showq_i, re.M).groups()
    assert int(jobs) == len(rows)
    return {r[0]: (r[1] == "*", int(r[2]), float(r[3]), r[4], int(r[5]), seconds(r[6]), r[7]) for r in rows}, float(backlog)


def blocked(showq_b):
    return {m[1]: (m[2], m[3].strip()) for m in re.finditer(r"^ {4,}([\w.]+) +(\S+) (.*)$", showq_b, re.M) if m[1] != "JobName"}


def held_nodes(showres_n):
    """(node, type, reservation, state, tasks, begin, length)"""
    return [(r[0], r[1], r[2], r[3], int(r[4]), seconds(r[5]), seconds(r[6])) for r in
            re.findall(r"^ *(\S+) +(Job|User) +(\S+) +(\S+) +(\d+) +(-?[\d:]+) +([\d:]+)  \w{3} \w{3} ", showres_n, re.M)]


def fairshare(diagnose_f):
    """section: {name: (percent, target, usage of the newest window)}"""
    found, section = {}, None
    for line in diagnose_f.splitlines():
        if re.match(r"^(USER|GROUP|ACCT|CLASS|QOS)$", line):
            section = found.setdefault(line, {})
        row = re.match(r"^(\S+?)\*? +([\d.]+) +([\d.]+)?([-+^%]?)(?:-{7})? +([\d.]+|-{7})", line)
        if row and section is not None:
            section[row[1]] = (float(row[2]), (row[3] or "") + row[4], row[5])
    return found


def priorities(diagnose_p):
    """name: (priority, {component: percent of it}), components as the title names them"""
    title = next(line for line in diagnose_p.splitlines() if line.startswith("Job "))
    names = re.findall(r"(\w+)\(", title)
    return {m[1]: (int(m[2]), dict(zip(names, map(float, re.findall(r"(-?[\d.]+)\(", m[3])))))
            for m in re.finditer(r"^([\w.]*\d)\*? +(-?\d+)\*? +(.*\(.*)$", diagnose_p, re.M)}


def sums(showstats):
    """name: (active jobs, processors, hours, jobs that ended, their percent, hours asked for, target, accuracy)"""
    found = {}
    for line in showstats.splitlines():
        words = line.split()
        if len(words) == 16 and words[1] != "Jobs":
            found[words[0]] = (int(words[1]), int(words[2]), float(words[3]), int(words[4]), float(words[5]), float(words[6]),
                               words[10], float(words[15]))
    return found


def partitions(diagnose_t):
    """kind: {partition: (configured, up, dedicated, active)}; and {class: (free, up)} of all partitions"""
    found, kind, classes = {}, None, {}
    for line in diagnose_t.splitlines():
        head = re.match(r"^(NODE|PROC|MEM|SWAP|DISK)-{70,}$", line)
        kind = head[1] if head else kind
        row = re.match(r"^(\S+) +(\d+) +(\d+) +[\d.]+% +(\d+) +[\d.]+% +(\d+) +[\d.]+%$", line)
        if row and kind:
            found.setdefault(kind, {})[row[1]] = tuple(map(int, row.groups()[1:]))
    for name, free, up in re.findall(r"\[(\w+) (\d+):(\d+)\]", diagnose_t.split("Class/Queue State")[1]):
        had = classes.get(name, (0, 0))
        classes[name] = (had[0] + int(free), had[1] + int(up))
    return found, classes


def summary(showstats):
    """(seconds active, eligible, idle, active, successful, completed, processors in use, in all)"""
    def pair(words):
        return map(int, re.search(rf"^{words}: +(\d+)/(\d+) ", showstats, re.M).groups())
    return (seconds(re.search(r"active for +([\d:]+)  stats initialized on ", showstats)[1]), *pair("Eligible/Idle Jobs"),
            int(re.search(r"^Active Jobs: +(\d+)$", showstats, re.M)[1]), *pair("Successful/Completed Jobs"),
            *pair("Current Active/Total Procs"))


# ---- what information providers and monitors of grid sites ask for

def standing_slots(diagnose_r):
    """Of each standing reservation, its lines taken in Maui's order as providers do: classes, processors of a task, hosts,
    and how many processors its jobs have, out of the warning that tells of them."""
    wanted = (("flags", r"^\s+Flags:\s*STANDINGR(?:ES|SV)"), ("classes", r"^\s+ACL:.*CLASS==([\w\-+.:=]+)"),
              ("cl", r"^\s+CL:\s+(?:RES|RSV)=="), ("procs", r"^\s+Task Resources:\s*PROCS:\s*(\d+)"),
              ("hosts", r"^\s+Attributes\s+\(Host(?:List|Exp)='(.*?)'"))
    found, name, got = {}, None, {}
    for line in diagnose_r.splitlines():
        begins = re.match(r"^([\w.\-]+)\s+(?:Job|User)\s.*\d+\s+\d+\s+\d+$", line)
        if begins:
            name, got = begins[1], {}
            continue
        if name and len(got) < len(wanted):
            key, pattern = wanted[len(got)]
            line_has = re.match(pattern, line)
            if line_has:
                got[key] = line_has[1] if line_has.groups() else True
            if len(got) == len(wanted):
                found[name] = (re.findall(r"([\w\-.]+)\+", got["classes"]), int(got["procs"]),
                               [h for h in got["hosts"].split(",") if h], 0)
        used = re.match(r"^WARNING:\s+reservation\s+'(.*)'.*?(\d+)\s+proc.*allocated.*?(\d+)\s+detected$", line)
        if used and used[1] in found:
            found[used[1]] = found[used[1]][:3] + (int(used[2]) - int(used[3]),)
    return found


def credentials_of(diagnose_r):
    """name: what its CL line says, of jobs."""
    return {m[1]: dict(word.split("==") for word in m[2].split())
            for m in re.finditer(r"^    CL:  JOB==(\S+) (.*)$", diagnose_r, re.M)}


def slots_of(showres):
    """(jobs, their processors, all reserved processors), by words."""
    jobs = of_jobs = total = 0
    for line in showres.splitlines():
        words = line.split()
        size = re.fullmatch(r"(\d+)/(\d+)", words[6]) if len(words) > 6 else None
        if not size:
            continue
        total += int(size[2])
        if words[1] == "Job":
            jobs, of_jobs = jobs + 1, of_jobs + int(size[2])
    return jobs, of_jobs, total


def complaints(diagnose_j):
    """What a monitor turns into a warning: lines that begin with a word of capitals and a colon."""
    return re.findall(r"^[A-Z]+:.*$", diagnose_j, re.M)


def qos_of(diagnose_Q):
    """name: (priority, flags, groups), and the system's list and default."""
    system = re.search(r"^System QOS Settings:  QList: (\S+) \(Def: (\S+)\)  Flags: \d+$", diagnose_Q, re.M).groups()
    found, name = {}, None
    for line in diagnose_Q[diagnose_Q.index("\nName "):].splitlines()[2:]:
        words = line.split()
        if line.startswith("  Groups:    ") and name:
            found[name] = (*found[name][:2], words[1:])
        elif len(words) >= 9:
            name = words[0]
            found[name] = (int(words[1]), words[6], [])
    return found, system


def managers_of(diagnose_R):
    """name: (type, state) of the resource managers."""
    return {m[1]: (m[2], m[3]) for m in re.finditer(
        r"^RM\[(.*)\]  type: '(\w+)'  state: '(.*)'\n  Event Management:  \(.*\)$", diagnose_R, re.M)}


def active_for(showstats):
    return seconds(re.search(r"^maui active for +([\d:]+)  stats initialized on ", showstats, re.M)[1])


def soft_limits(diagnose_q):
    """(job, limit, of whom) of those that a soft limit keeps."""
    assert "Diagnosing blocked jobs (policylevel SOFT  partition ALL)\n\n" in diagnose_q
    return re.findall(r"^job (\S+) violates active SOFT (\w+) limit of \d+ for \w+ (\w+)  \(R: \d+, U: \d+\)$", diagnose_q, re.M)
