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
