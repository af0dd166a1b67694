"""Every parameter of a policy, drawn from the table that the daemon reads it by (policy_table). Scenes of random_site.py
from seed RICH on have some of these on top of their own; what may not be drawn says here why."""
import os
import random
import subprocess

RICH = 1000
WHATS = ("JOB", "PROC", "NODE", "PS", "PE", "MEM", "WC")
KINDS = ("USER", "GROUP", "ACCOUNT", "CLASS", "QOS")
TOPS = {"JOB": 4, "PROC": 10, "NODE": 5, "PS": 20000, "PE": 10, "MEM": 8192, "WC": 14400}

# Not drawn: in a simulation there is nothing that it could act on, or another test has it with what it needs.
EXEMPT = {
    "NODELOADPOLICY": "nodes of a trace have no load: policy book, node-load-*",
    "NODEMAXLOAD": "the same",
    "NODEDOWNSTATEDELAYTIME": "nodes of a trace do not fail: policy book, node-down*",
    "SYSTEMDEFAULTJOBWALLTIME": "each job of a trace has a limit",
    "CLASSCFG.DEFAULT.WCLIMIT": "the same",
    "JOBAGGREGATIONTIME": "when a daemon's pass comes, by its own clock: e2e_book, site/iteration",
    "DEFERSTARTCOUNT": "no start fails in a simulation: policy book, defer*",
    "RESERVATIONRETRYTIME": "the same: policy book, reservation-retry",
    "STAGEINGRACE": "jobs of a trace have no files: e2e_staging",
    "JOBMAXOVERRUN": "a simulated job ends at its limit: policy book, wcviolation-*",
    "WCVIOLATIONACTION": "the same",
    "RESOURCELIMITPOLICY": "what a simulated job uses is not measured: e2e_local, e2e_book",
    "RESLIMITPOLICY": "another name of it",
    "SRCFG.CHARGEACCOUNT": "there is no bank in a simulation: e2e_payment",
    "SRCFG.CHARGEUSER": "the same",
    "SRCFG.JOBATTRLIST": "jobs of a trace have no attributes: policy book, reservation-acl",
    "USEMACHINESPEED": "the checker takes all nodes as equally fast: policy book, machine-speed",
    "NODESETTOLERANCE": "the same: policy book, nodeset-speed",
    "NODESETPRIORITYTYPE": "another name of NODESETPRIORITY",
}
EXEMPT |= {f"{kind}CFG.MAX{what}PER{kind}": "refused: of no other kind" for kind in KINDS for what in WHATS}
EXEMPT |= {f"{kind}CFG.MAX{what}S": "another name of the same without S" for kind in KINDS for what in ("JOB", "NODE", "PROC")}
EXEMPT |= {f"{kind}CFG.MAXWCLIMITPERJOB": "another name of MAXWCPERJOB" for kind in (*KINDS, "SYS")}
EXEMPT |= {f"{kind}CFG.JOBFLAGS": "another name of FLAGS" for kind in KINDS}
EXEMPT_WORDS = {
    "BACKFILLPOLICY": {"ON", "OFF", "BESTTIMEFIT", "LAZY"},  # other names
    "BACKFILLMETRIC": {"PROCESSORS"},
    "NODEALLOCATIONPOLICY": {"MACHINEPRIO", "CPULOAD", "LOCAL"},  # a name; no load; a program of the site's
    "NODEACCESSPOLICY": {"DEDICATED"},
    "PREEMPTPOLICY": {"CHECKPOINT"},  # no checkpoint in a simulation
}

# Nothing that keeps a job from an empty machine.
HARMLESS = {"ENABLENEGJOBPRIORITY", "XFMINWCLIMIT", "FSINTERVAL", "FSDEPTH", "FSDECAY", "BACKFILLMETRIC", "BACKFILLWINDOWORDER",
            "BFPRIORITYPOLICY", "BACKFILLMAXSCHEDULES", "RESERVATIONBINDING", "JOBPRIOACCRUALPOLICY", "PREEMPTPOLICY",
            "TASKDISTRIBUTIONPOLICY"}


def table():
    """{name: [words]} of every parameter that there is."""
    program = os.path.join(os.environ["NUI_BUILD"], "tests/unit/local_conf/policy_table")
    done = subprocess.run([program], capture_output=True, text=True, timeout=600, check=True)
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


class More:
    """Draws; `said` are the names that were."""

    def __init__(self, seed, nodes, names, said_limits, params):
        self.draw = random.Random(seed * 7919 + 1)
        self.nodes, self.names, self.limits = nodes, names, said_limits
        self.params = params
        self.said, self.lines = set(), []
        self.record = {}  # "USERCFG[u1]": {attribute: value}
        self.qos_flags = set()
        self.share = self.draw.choice((.02, .06, .15))

    def one(self, *choices):
        return self.draw.choice(choices)

    def some(self, names):
        return ",".join(self.draw.sample(list(names), self.draw.randint(1, len(names))))

    def maybe(self):
        return self.draw.random() < self.share

    # ---- values by name; words, weights and caps need none

    def values(self):
        d = self.draw
        return {
            "XFMINWCLIMIT": lambda: self.one("-1", "10:00", "1:00:00"),
            "FSINTERVAL": lambda: self.one("1:00:00", "12:00:00"), "FSDEPTH": lambda: d.randint(1, 6),
            "FSDECAY": lambda: self.one("0.5", "0.9", "1"),
            "FSPOLICY": lambda: self.one("NONE", "DEDICATEDPS", "DEDICATEDPES", "UTILIZEDPS", "DEDICATEDPS%"),
            "NODESETDELAY": lambda: self.one("0", "5:00", "1:00:00"),
            "SYSTEMMAXPROCPERJOB": lambda: d.randint(2, 8), "SYSTEMMAXJOBWALLTIME": lambda: self.one("1:00:00", "4:00:00"),
            "SYSTEMMAXPROCSECONDPERJOB": lambda: d.randint(3600, 40000),
            "RMPOLLINTERVAL": lambda: 60, "DEFERTIME": lambda: self.one("0", "10:00", "1:00:00"),
            "DEFERCOUNT": lambda: d.randint(0, 3), "BACKFILLDEPTH": lambda: d.randint(1, 6),
            "BACKFILLMAXSCHEDULES": lambda: self.one(1, 10, 10000), "BFCHUNKSIZE": lambda: d.randint(2, 6),
            "BFCHUNKDURATION": lambda: self.one("5:00", "2:00:00"),
            "RESERVATIONTHRESHOLDVALUE": lambda: d.randint(1, 4), "RESERVATIONDEPTH": lambda: d.randint(0, 5),
            "RESERVATIONQOSLIST": lambda: self.some(("hi", "lo", "DEFAULT")),
            "NODEAVAILABILITYPOLICY": lambda: self.one("DEDICATED", "COMBINED", "DEDICATED:PROCS COMBINED:MEM"),
            "NODESETPOLICY": lambda: self.one("ONEOF", "FIRSTOF", "ANYOF"), "NODESETATTRIBUTE": lambda: "FEATURE",
            "NODESETLIST": lambda: self.one("red blue", "red", "blue red"),
            "NODESETPRIORITY": lambda: self.one("BESTFIT", "WORSTFIT", "MINLOSS", "BESTRESOURCE"),
        }

    def limit(self, what):
        top = TOPS[what]
        return self.draw.randint(max(1, top // 4), top)

    def attribute(self, kind, attr):
        """Its value for that record, or None."""
        d = self.draw
        for what in WHATS:
            if attr in (f"MAX{what}", f"OMAX{what}"):
                return self.limit(what)
            if attr in (f"MAXI{what}", f"OMAXI{what}") or attr.startswith(f"MAX{what}PER"):
                return self.limit(what)
        hours = sorted(d.sample(range(0, 24), 2))
        values = {
            "PRIORITY": lambda: d.randint(-300, 500), "FSTARGET": lambda: f"{d.randint(10, 60)}{self.one('', '+', '-', '^', '%')}",
            "QLIST": lambda: self.some(("hi", "lo", "DEFAULT")) + (self.one("", "&", "^") if kind != "SYSCFG" else ""), "QDEF": lambda: self.one("hi", "lo"),
            "PLIST": lambda: self.one("DEFAULT", "left", "DEFAULT:left"), "PDEF": lambda: self.one("DEFAULT", "left"),
            "MINPROC": lambda: d.randint(1, 2),
            "HOSTLIST": lambda: self.some(self.nodes), "MAX.PROC": lambda: d.randint(2, 8), "MIN.PROC": lambda: d.randint(1, 2),
            "MAX.NODE": lambda: d.randint(1, 5), "MIN.NODE": lambda: 1, "MAX.PS": lambda: d.randint(2000, 60000),
            "MAX.WCLIMIT": lambda: self.one("1:00:00", "3:00:00"), "MIN.WCLIMIT": lambda: self.one("1:00", "5:00"),
            "DEFAULT.FEATURES": lambda: self.one("red", "blue"), "DEFAULT.NODESET": lambda: self.one("ONEOF:FEATURE:red:blue", "ANYOF:FEATURE:red"),
            "EXCLUDEFEATURES": lambda: self.one("red", "blue"), "FEATURES": lambda: self.one("red", "blue", "red,blue", "ANY"),
            "REQUIREDUSERLIST": lambda: self.some(self.names["USER"]), "REQUIREDGROUPLIST": lambda: self.some(self.names["GROUP"]),
            "REQUIREDACCOUNTLIST": lambda: self.some(self.names["ACCOUNT"]), "REQUIREDQOSLIST": lambda: self.some(("hi", "lo", "DEFAULT")),
            "EXCLUDEUSERLIST": lambda: self.one(*self.names["USER"]), "EXCLUDEGROUPLIST": lambda: self.one(*self.names["GROUP"]),
            "EXCLUDEACCOUNTLIST": lambda: self.one(*self.names["ACCOUNT"]),
            "NODEACCESSPOLICY": lambda: self.one("SHARED", "SINGLEJOB", "SINGLEUSER", "SINGLETASK"),
            "QTWEIGHT": lambda: d.randint(0, 20), "XFWEIGHT": lambda: d.randint(0, 20), "QTTARGET": lambda: self.one("10:00", "2:00:00"),
            "XFTARGET": lambda: self.one("2.0", "10.0"), "OMAXJPROC": lambda: d.randint(1, 8), "OMAXJPS": lambda: d.randint(2000, 60000),
            "OMAXJWC": lambda: self.one("1:00:00", "6:00:00"), "QFLAGS": self.flags,
            # of SRCFG
            "ACCESS": lambda: self.one("DEDICATED", "SHARED"), "ACCOUNTLIST": lambda: self.some(self.names["ACCOUNT"]),
            "CLASSLIST": lambda: self.some(self.names["CLASS"]) + self.one("", "+", "-", "="), "DAYS": lambda: self.one("ALL", "MON,TUE", "SAT,SUN,WED"),
            "DEPTH": lambda: d.randint(1, 4), "STARTTIME": lambda: f"{hours[0]}:00:00", "ENDTIME": lambda: f"{hours[1]}:00:00",
            "FLAGS": lambda: self.one("SPACEFLEX", "DEDICATEDNODE", "TIMEFLEX", "OWNERPREEMPT", "PREEMPTEE"),
            "GROUPLIST": lambda: self.some(self.names["GROUP"]), "IDLETIME": lambda: self.one("30:00", "2:00:00"),
            "NODEFEATURES": lambda: self.one("red", "blue"), "OWNER": lambda: "USER:" + self.one(*self.names["USER"]),
            "PARTITION": lambda: self.one("DEFAULT", "left"), "PERIOD": lambda: self.one("DAY", "WEEK", "INFINITY"),
            "PROCLIMIT": lambda: self.one("<=2", ">=4"), "QOSLIST": lambda: self.some(("hi", "lo")), "RESOURCES": lambda: self.one("PROCS:1", "PROCS:1;MEM:256", "PROCS:-1"),
            "TASKCOUNT": lambda: d.randint(1, 3), "TIMELIMIT": lambda: self.one("1:00:00", "1:00:00*", "3:00:00"), "MAXTIME": lambda: self.one("1:00:00", "3:00:00"),
            "TIMELOGIC": lambda: self.one("AND", "OR"), "TPN": lambda: 1, "USERLIST": lambda: self.some(self.names["USER"]) + self.one("", "!", "="),
            "WSTARTTIME": lambda: f"{d.randint(0, 3)}:08:00:00", "WENDTIME": lambda: f"{d.randint(4, 6)}:18:00:00",
            "BUSYTIME": lambda: self.one("10:00", "1:00:00"),
        }
        if attr in ("FLAGS",) and kind != "SRCFG":
            return self.flags()
        return values[attr]() if attr in values else None

    def flags(self):
        singles = ["IGNJOBPERUSER", "IGNPROCPERCLASS", "IGNJOBQUEUEDPERUSER", "IGNMAXPPJ", "IGNMAXTPJ", "IGNMAXPSPJ"]
        flags = self.draw.sample(["RESERVEALWAYS", "NORESERVATION", "NOBF", "IGNSYSTEM", "IGNUSER", "IGNALL", "PREEMPTOR", "PREEMPTEE",
                                  "PREEMPTSPV", "RESTARTPREEMPT", "NTR", "RUNNOW", "DEDICATED", "USERESERVED", "IGNSRMAXTIME",
                                  "IGNHOSTLIST", *singles], self.draw.randint(1, 2))
        self.qos_flags |= set(flags)
        return ",".join(flags)

    # ---- the whole

    def plain(self):
        values = self.values()
        for name, words in self.params.items():
            if "." in name or name in EXEMPT or not self.maybe():
                continue
            words = [w for w in words if w not in EXEMPT_WORDS.get(name, ())]
            if words:
                value = self.one(*words)
            elif name.endswith("WEIGHT"):
                value = self.draw.randint(0, 100)
            elif name.endswith("CAP"):
                value = self.draw.randint(1, 1000)
            elif name in values:
                value = values[name]()
            else:
                continue
            self.said.add(name)
            self.say(name, value)

    def say(self, name, value):
        if name.startswith("RESERVATIONDEPTH") or name == "RESERVATIONQOSLIST":
            self.said |= {"RESERVATIONDEPTH", "RESERVATIONQOSLIST"}
            for bucket in (0, 1):
                self.lines.append(f"RESERVATIONDEPTH[{bucket}] {self.draw.randint(0, 3)}")
                self.lines.append(f"RESERVATIONQOSLIST[{bucket}] {self.some(('hi', 'lo', 'DEFAULT'))}")
        elif name.startswith("NODESET") and name != "NODESETDELAY":
            if not any(line.startswith("NODESETPOLICY") for line in self.lines):
                for own in ("NODESETPOLICY", "NODESETATTRIBUTE", "NODESETLIST", "NODESETPRIORITY"):
                    self.said.add(own)
                    self.lines.append(f"{own} {self.values()[own]()}")
        else:
            self.lines.append(f"{name} {value}")

    def records(self):
        for name in self.params:
            record, _, attr = name.partition(".")
            if not attr or name in EXEMPT or record == "SRCFG" or self.draw.random() > self.share / 4:
                continue
            kind = record[:-3]
            index = {"SYS": ["all"], "PAR": ["DEFAULT", "left"]}.get(kind) or [*self.names[kind], "DEFAULT"]
            index = self.one(*index)
            if (kind.lower(), index if kind != "SYS" else "", attr) in {(k, n, w) for k, n, w, *_ in self.limits}:
                continue
            value = self.attribute(record, attr)
            if value is None:
                continue
            self.said.add(name)
            self.lines.append(f"{record}[{index}] {attr}={value}")

    def standing(self):
        """Reservations of which the checker knows nothing: any attribute with any."""
        for index in ("three", "four"):
            if self.draw.random() > 2 * self.share:
                continue
            attrs = {}
            for name in self.params:
                if name.startswith("SRCFG.") and name not in EXEMPT and self.draw.random() < .2:
                    attrs[name[6:]] = self.attribute("SRCFG", name[6:])
                    assert attrs[name[6:]] is not None, f"{name} has no values to draw from"
            week = attrs.get("PERIOD") == "WEEK"
            for attr in ("WSTARTTIME", "WENDTIME") if not week else ("STARTTIME", "ENDTIME"):
                attrs.pop(attr, None)
            if attrs.get("PERIOD") == "INFINITY":
                for attr in ("STARTTIME", "ENDTIME", "DAYS"):
                    attrs.pop(attr, None)
            if "HOSTLIST" not in attrs and "TASKCOUNT" not in attrs:
                attrs["HOSTLIST"] = self.some(self.nodes)
            self.said |= {f"SRCFG.{attr}" for attr in attrs}
            self.lines.append(f"SRCFG[{index}] " + " ".join(f"{a}={v}" for a, v in attrs.items()))

    def all(self):
        self.plain()
        self.records()
        self.standing()
        return self.lines

    # ---- for the checker

    def lifts_limits(self):
        """Does a QoS keep other limits than those that stand for its jobs' own credentials? Or are jobs on others' time?"""
        return any(f.startswith("IGN") or f == "RUNNOW" for f in self.qos_flags) or any(".OMAX" in name for name in self.said)

    def hinders(self):
        """Is there anything that may keep a job from an empty machine, of which the checker knows nothing?"""
        return any(name not in HARMLESS and not name.endswith(("WEIGHT", "CAP", "PRIORITY", "XFTARGET", "QTTARGET")) for name in self.said
                   ) or "REJECTNEGPRIOJOBS" in self.said
