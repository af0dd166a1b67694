"""Random machines, logs and configurations of all parameters that both `nui sim` and the daemon's SIMULATION
take. One seed, one scene. Values stay small, so that everything meets everything. From seed RICH on a scene has parameters
of the whole table on top (random_more.py)."""
import random

from random_more import RICH, More

DAY = 86400
BEGIN = 1_000_000_800 // DAY * DAY + DAY  # midnight, UTC
ACCOUNTS = ("a1", "a2")
USERS, GROUPS, CLASSES, QOSES = ("u1", "u2", "u3", "u4"), ("g1", "g2"), ("batch", "short"), ("hi", "lo")
FEATURES = ("red", "blue")
POLL = 60


class Scene:
    """nodes: {name: {procs, memory, features, classes}}, jobs: [{…}], config: lines, by part."""

    def __init__(self, seed, params=None):
        self.draw = random.Random(seed)
        self.seed = seed
        self.more = None
        self.nodes = self._nodes()
        self.standing = []
        self.limits = []  # (kind of credential, name, limit, soft, hard)
        self.config = self._config()
        self.jobs = self._jobs()
        if seed >= RICH:
            self._enrich(params)

    def one(self, *choices):
        return self.draw.choice(choices)

    def maybe(self, share):
        return self.draw.random() < share

    def _nodes(self):
        nodes = {}
        most = self.one(1, 2, 4)
        for n in range(1, self.draw.randint(2, 7) + 1):
            nodes[f"n{n:02}"] = {
                "procs": self.draw.randint(1, most), "memory": self.one(1024, 2048, 4096),
                "features": [f for f in FEATURES if self.maybe(.5)],
                "classes": [c for c in CLASSES if self.maybe(.8)] or ["batch"]}
        return nodes

    # ---- configuration

    def _config(self):
        lines = [f"RMPOLLINTERVAL {POLL}", f"BACKFILLPOLICY {self.one('FIRSTFIT', 'FIRSTFIT', 'BESTFIT', 'GREEDY', 'NONE')}",
                 f"RESERVATIONPOLICY {self.one('CURRENTHIGHEST', 'CURRENTHIGHEST', 'HIGHEST', 'NEVER')}"]
        some = lines.append
        if self.maybe(.5):
            some(f"RESERVATIONDEPTH {self.one(0, 1, 2, 4, 100)}")
        if self.maybe(.3):
            some(f"BACKFILLMETRIC {self.one('PROCS', 'PROCSECONDS', 'SECONDS', 'NODES')}")
        if self.maybe(.2):
            some(f"BACKFILLDEPTH {self.draw.randint(1, 6)}")
        if self.maybe(.15):
            some("RESERVATIONBINDING LATE")
        if self.maybe(.25):
            some(f"BFCHUNKSIZE {self.draw.randint(2, 6)}")
            some(f"BFCHUNKDURATION {self.one('5:00', '30:00', '2:00:00')}")
        if self.maybe(.2):
            kind, values = self.one(("BYPASS", (1, 3)), ("QUEUETIME", (120, 3600)), ("XFACTOR", (2, 4)))
            some(f"RESERVATIONTHRESHOLDTYPE {kind}")
            some(f"RESERVATIONTHRESHOLDVALUE {self.one(*values)}")
        if self.maybe(.8):
            some("NODEALLOCATIONPOLICY " + self.one("FIRSTAVAILABLE", "LASTAVAILABLE", "MINRESOURCE", "CONTIGUOUS",
                                                    "FASTEST", "MAXBALANCE"))
        if self.maybe(.25):
            some(f"NODEACCESSPOLICY {self.one('SHARED', 'SINGLEJOB', 'SINGLEUSER', 'SINGLETASK')}")
        for weight in ("QUEUETIMEWEIGHT", "XFACTORWEIGHT", "RESWEIGHT", "PROCWEIGHT", "WALLTIMEWEIGHT", "CREDWEIGHT",
                       "USERWEIGHT", "QOSWEIGHT", "CLASSWEIGHT", "BYPASSWEIGHT"):
            if self.maybe(.25):
                some(f"{weight} {self.draw.randint(0, 100)}")
        if self.maybe(.3):
            some(f"JOBPRIOACCRUALPOLICY {self.one('QUEUEPOLICY', 'FULLPOLICY', 'ALWAYS')}")
        self._credentials(some)
        self._fairshare(some)
        self._standing(some)
        if self.maybe(.2):
            some(f"SYSTEMMAXPROCPERJOB {self.draw.randint(2, 8)}")
        if self.maybe(.2):
            some(f"DEFERTIME {self.one('0', '10:00', '1:00:00')}")
        if self.maybe(.1):
            some(f"DEFERCOUNT {self.draw.randint(1, 3)}")
        return lines

    def _limit(self):
        name = self.one("MAXJOB", "MAXPROC", "MAXPS", "MAXWC", "MAXNODE", "MAXPE", "MAXMEM")
        top = {"MAXJOB": 4, "MAXPROC": 10, "MAXPS": 20000, "MAXWC": 14400, "MAXNODE": 5, "MAXPE": 10, "MAXMEM": 8192}[name]
        hard = self.draw.randint(max(1, top // 6), top)
        soft = self.draw.randint(1, hard) if self.maybe(.3) else hard
        return name, soft, hard

    def _credentials(self, some):
        some("QOSCFG[hi] PRIORITY=100" + self._flags())
        some("QOSCFG[lo] PRIORITY=1" + self._flags())
        some("USERCFG[DEFAULT] QLIST=hi,lo,DEFAULT")
        for kind, names in (("USER", USERS), ("GROUP", GROUPS), ("CLASS", CLASSES), ("QOS", QOSES)):
            for name in names:
                if self.maybe(.25):
                    limit, soft, hard = self._limit()
                    self.limits.append((kind.lower(), name, limit, soft, hard))
                    some(f"{kind}CFG[{name}] {limit}={soft},{hard}")
                if self.maybe(.1):
                    some(f"{kind}CFG[{name}] MAXIJOB={self.draw.randint(1, 5)}")
                if kind == "USER" and self.maybe(.2):
                    some(f"USERCFG[{name}] PRIORITY={self.draw.randint(1, 500)}")
        if self.maybe(.15):
            limit, soft, hard = self._limit()
            self.limits.append(("system", "", limit, soft, hard))
            some(f"SYSCFG[all] {limit}={soft},{hard}")

    def _flags(self):
        flags = [f for f in ("NOBF", "NTR", "RESERVEALWAYS", "NORESERVATION", "DEDICATED", "IGNUSER")
                 if self.maybe(.05)]
        self.ignores = getattr(self, "ignores", False) or "IGNUSER" in flags
        return f" QFLAGS={','.join(flags)}" if flags else ""

    def _fairshare(self, some):
        self.capped = False
        if not self.maybe(.2):
            return
        some(f"FSPOLICY {self.one('DEDICATEDPS', 'DEDICATEDPES')}")
        some(f"FSINTERVAL {self.one('1:00:00', '6:00:00')}")
        some(f"FSDEPTH {self.draw.randint(2, 6)}")
        some("FSWEIGHT 10")
        some("FSUSERWEIGHT 10")
        for user in USERS:
            if self.maybe(.4):
                suffix = self.one("", "+", "-", "%")
                self.capped |= suffix == "%"
                some(f"USERCFG[{user}] FSTARGET={self.draw.randint(10, 60)}{suffix}")

    def _standing(self, some):
        for name in ("one", "two"):
            if not self.maybe(.2):
                continue
            hosts = [n for n in self.nodes if self.maybe(.5)] or [next(iter(self.nodes))]
            users = [u for u in USERS if self.maybe(.3)]
            period = self.one("INFINITY", "DAY")
            begin, end = sorted(self.draw.sample(range(0, 24), 2))
            window = "" if period == "INFINITY" else f" STARTTIME={begin}:00:00 ENDTIME={end}:00:00"
            some(f"SRCFG[{name}] HOSTLIST={','.join(hosts)} PERIOD={period}{window}"
                 + (f" USERLIST={','.join(users)}" if users else ""))
            self.standing.append({"hosts": hosts, "users": users,
                                  "hours": None if period == "INFINITY" else (begin, end)})

    # ---- jobs

    def _jobs(self):
        jobs, at, self.hurry = [], BEGIN, self.one(0, 0, .3)
        classes = sorted({c for n in self.nodes.values() for c in n["classes"]})
        for number in range(1, self.draw.randint(6, 30) + 1):
            at += self.one(0, 0, 30, 60, 600, self.draw.randint(1, 3600))
            limit = self.one(60, 300, 600, 1800, 3600, 7200, self.draw.randint(1, 20000))
            wish = {"class": self.one(*classes), "feature": self.one(*FEATURES) if self.maybe(.15) else None,
                    "memory": self.one(0, 0, 0, 512, 1024, 2048)}
            room = sum(n["procs"] for n in self.nodes.values() if suits(wish, n))
            if not room:
                continue
            jobs.append({"number": 100 + number, "submit": at, "limit": limit, "user": self.one(*USERS),
                         "run": limit if self.maybe(.3) else self.draw.randint(1, limit),
                         "tasks": min(room, self.one(1, 1, 2, 3, 4, 8)), "group": self.one(*GROUPS),
                         "qos": self.one("DEFAULT", "DEFAULT", *QOSES), **wish,
                         "deadline": at + limit + self.draw.randint(0, 7200) if self.maybe(self.hurry) else None})
        return jobs

    # ---- everything else

    def _enrich(self, params):
        names = {"USER": USERS, "GROUP": GROUPS, "ACCOUNT": ACCOUNTS, "CLASS": CLASSES, "QOS": QOSES}
        next(iter(self.nodes.values()))["features"] = list(FEATURES)  # node sets want one that has it
        self.more = More(self.seed, self.nodes, names, self.limits, params)
        self.config += self.more.all()
        for j in self.jobs:
            j["account"] = self.more.one("[NONE]", *ACCOUNTS)
            j["dedicated"] = self.more.one(0, 0, 256, 512)
            room = sum(min(n["procs"], n["memory"] // j["dedicated"] if j["dedicated"] else n["procs"])
                       for n in self.nodes.values() if suits(j, n))
            j["tasks"] = max(1, min(j["tasks"], room))

    # ---- as files

    def nodes_text(self):
        lines = []
        for name, n in self.nodes.items():
            features = "][".join(n["features"]) or "NONE"
            classes = "".join(f"[{c}:{n['procs']}]" for c in n["classes"])
            lines.append(f"COMPUTENODE AVAILABLE 0 {name} [DEFAULT] 2048M {n['memory']}M 20000M {n['procs']} 1 1 0 "
                         f"Linux x86_64 [{features}] {classes} [ethernet] 1.0 [NONE] [NONE] [NONE]\n")
        return "".join(lines)

    def jobs_text(self):
        lines = ["VERSION 230\n"]
        for j in self.jobs:
            qos = f"{j['qos']}:{j['qos']}" if j["qos"] != "DEFAULT" else "[NONE]:DEFAULT"
            lines.append(
                f"{j['number']} 0 {j['tasks']} {j['user']} {j['group']} {j['limit']} Completed [{j['class']}:1] {j['submit']} "
                f"{j['submit']} {j['submit']} {j['submit'] + j['run']} [NONE] [NONE] [NONE] >= {j['memory']}M >= 0M "
                f"{'[' + j['feature'] + ']' if j['feature'] else '[NONE]'} {j['submit']} {j['tasks']} -1 {qos} [NONE] {j.get('account', '[NONE]')} "
                f"[NONE] [NONE] 0 0.00 DEFAULT 1 {j.get('dedicated', 0)}M 0M 0M 0 {j['deadline'] or 2140000000} [NONE] [DEFAULT] [NONE] [NONE] "
                "[DEFAULT] [NONE] [NONE]\n")
        return "".join(lines)


def suits(job, node):
    return (job["class"] in node["classes"] and node["memory"] >= job["memory"]
            and (job["feature"] is None or job["feature"] in node["features"]))
