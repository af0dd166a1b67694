"""Who may do what, cell by cell: the owner of a job, another user, and the three levels of
administrators, against each of Maui's commands. A refusal is one sentence with exit code 3, prints
nothing else and changes nothing."""
import json
import os
import pwd
import unittest

from fixture import main
from test_commands import Simulated, commands

# owner, another plain user, ADMIN3, ADMIN2, ADMIN1
WHO = ("owner", "other", "admin3", "admin2", "admin1")
ALL, OWNER2, LEVEL1, LEVEL2, LEVEL3, OWNER3 = "+++++", "+--++", "----+", "---++", "--+++", "+-+++"
# Of a job J of the owner's (waiting; R: running; each cell has its own), or of none.
CELLS = (
    ("showq", ALL), ("showbf", ALL), ("showbf -v", LEVEL3), ("showstart 1@1:00", ALL), ("showres", ALL),
    ("checkjob J", OWNER3), ("checkjob -v J", OWNER3), ("showstart J", OWNER3), ("mjobctl -q state J", OWNER3),
    ("showres R", OWNER3), ("diagnose -p J", LEVEL3), ("msub -h -t 1:00 SCRIPT", ALL),
    ("canceljob J", OWNER2), ("canceljob R", OWNER2), ("mjobctl -c J", OWNER2),
    ("sethold -u J", OWNER2), ("releasehold -u J", OWNER2), ("mjobctl -h user J", OWNER2), ("mjobctl -u user J", OWNER2),
    ("sethold J", LEVEL2), ("sethold -s J", LEVEL2), ("mjobctl -h batch J", LEVEL2), ("mjobctl -h all J", LEVEL2),
    ("setspri 5 J", LEVEL2), ("setspri -r 5 J", LEVEL2), ("mjobctl -p 5 J", LEVEL2),
    ("runjob J", LEVEL2), ("runjob -f J", LEVEL2), ("mjobctl -x J", LEVEL2),
    ("setqos hi J", OWNER2), ("mjobctl -m qos=hi J", OWNER2), ("mjobctl -m class=batch J", OWNER2),
    ("mjobctl -m account=chem J", OWNER2), ("mjobctl -m wclimit=0:30 J", OWNER2), ("mjobctl -m wclimit=2:00 J", LEVEL2),
    ("mjobctl -m starttime=+1:00 J", OWNER2),
    ("mjobctl -R R", LEVEL2), ("mjobctl -s R", LEVEL2), ("mjobctl -r S", LEVEL2),
    ("setres -s +1:00 -d 1:00 TASKS==1", LEVEL2), ("releaseres RSV", LEVEL2),
    ("mnodectl -m priority=3 node01", LEVEL1), ("changeparam RESERVATIONDEPTH[0] 3", LEVEL1),
    ("schedctl", LEVEL3), ("schedctl -n", LEVEL3), ("schedctl -s", LEVEL1), ("schedctl -S", LEVEL1),
    ("schedctl -r +1:00", LEVEL1), ("schedctl -s +1:00", LEVEL1), ("schedctl -k", "----."), ("schedctl -R", "----."),
    ("checknode node01", LEVEL3), ("showstate", LEVEL3), ("showconfig", LEVEL3),
    *((f"diagnose -{o}", LEVEL3) for o in "pfnsugacQmRSt"), ("diagnose -e", ALL), ("diagnose -q", ALL), ("diagnose -b", ALL),
    ("diagnose -j", ALL), ("diagnose -r", ALL),
    *((f"showstats -{o}", LEVEL3) for o in "svgacqn"), ("showstats", LEVEL3), ("showstats -u", ALL),
    ("showstats -f JOBCOUNT", LEVEL3), ("showgrid JOBCOUNT", LEVEL3),
    ("profiler", LEVEL3), ("profiler -u ME", ALL), ("profiler -u alice", LEVEL3), ("profiler -u ME -p group", ALL),
    ("showaudit", LEVEL3), ("showaudit -u ME", ALL), ("showaudit -u alice", LEVEL3),
    ("resetstats", LEVEL1),
    ("showhold", ALL), ("showq -p DEFAULT", ALL), ("checkjob -A J", OWNER3), ("checkjob -l SOFT J", OWNER3), ("showbf -A", ALL),
    ("showbf -S", LEVEL3), ("showres -s", ALL), ("setdeadline +9:00:00 J", OWNER2), ("mjobctl -m wclimit-=0:01 J", OWNER2),
    ("mjobctl -m wclimit+=0:01 J", LEVEL2), ("mjobctl -m priority+=1 J", LEVEL2), ("mjobctl -m hold+=user J", OWNER2),
    ("mjobctl -q diag J", OWNER3), ("runjob -x J", LEVEL2), ("runjob -s R", LEVEL2), ("checknode ALL", LEVEL3),
    ("checknode GLOBAL", LEVEL3), ("schedctl -l", LEVEL3), ("schedctl -m RESERVATIONDEPTH[0] 3", LEVEL1),
    ("showstats -S", LEVEL3), ("showstats -d", LEVEL3), ("showstats -f", LEVEL3), ("diagnose -G", LEVEL3),
    ("mdiag -n", LEVEL3), ("mrsvctl -l", ALL), ("mrsvctl -q ALL", ALL), ("mrsvctl -r RSV", LEVEL2),
    ("mrsvctl -c -t 1 -s +1:00 -d 1:00", LEVEL2),
)


def accounts(count):
    """Accounts that this machine has, nobody's and unprivileged."""
    known = {p.pw_name: p.pw_uid for p in pwd.getpwall()}
    names = [n for n in ("games", "nobody", "daemon", "bin", "sys", "man", "lp", "mail", "news") if known.get(n)]
    if len(names) < count:
        raise unittest.SkipTest(f"needs {count} system accounts, found {names}")
    return names[:count]


@unittest.skipIf(os.geteuid() != 0, "needs to be root: other accounts use the socket")
class Refusals(Simulated):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.who = dict(zip(WHO, accounts(5)))

    def queue(self):
        """What must be as it was after a refusal."""
        rows = self.data(self.alpha, "showq")
        return [r for s in ("active", "idle", "blocked") for r in rows[s]], self.data(self.alpha, "showres")

    def submit(self, *options):
        return self.ok(self.alpha, "msub", "-t", "1:00", *options, self.script, account=self.who["owner"]).strip()

    def running(self):
        job = self.submit()
        self.ok(self.alpha, "runjob", job)
        self.assertEqual(self.data(self.alpha, "checkjob", job)["job"]["state"], "Running")
        return job

    def suspended(self):
        job = self.running()
        self.ok(self.alpha, "mjobctl", "-s", job)
        return job

    def reserved(self):
        return self.data(self.alpha, "setres", "-s", "+2:00:00", "-d", "1:00", "TASKS==1")[0]["reservation"]

    def line(self, text, account):
        made = {"J": lambda: self.submit("-h"), "R": self.running, "S": self.suspended, "RSV": self.reserved,
                "SCRIPT": lambda: self.script, "ME": lambda: account}
        if text.startswith(("runjob", "mjobctl -x")):
            made["J"] = self.submit
        return [made[w]() if w in made else w for w in text.split()]

    def undo(self, words):
        """What the next cell would stumble over."""
        for word in words:
            if isinstance(word, str) and word.startswith("alpha."):
                self.alpha.nui("canceljob", word)
        if words[0] in ("setres", "releaseres", "mrsvctl"):
            for r in self.data(self.alpha, "showres"):
                if r["type"] == "User" and not r["standing"]:
                    self.ok(self.alpha, "releaseres", r["reservation_id"])
        if words[0] == "schedctl":
            self.ok(self.alpha, "schedctl", "-s")

    def refusals(self, text, roles):
        """One job for all of them: nothing may have become of it."""
        words = self.line(text, "ME")
        before = self.queue()
        for role in roles:
            mine = [self.who[role] if w == "ME" else w for w in words]
            with self.subTest(command=text, who=role):
                done = self.alpha.nui(*mine, account=self.who[role])
                self.assertEqual(done.returncode, 3, f"{role}$ {text}\n{done.stdout}{done.stderr}")
                self.assertEqual(done.stdout, "")
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertRegex(done.stderr,
                                 r" is for administrators \(ADMIN\d\)| is for ADMIN\d|is not yours")
        with self.subTest(command=text, who="nobody changed anything"):
            self.assertEqual(self.queue(), before)
        self.undo(words)

    def allowed(self, text, role):
        words = self.line(text, self.who[role])
        done = self.alpha.nui(*words, account=self.who[role])
        # what is refused for another reason than who asks: a simulation cannot resume at a time
        expected = 1 if text == "schedctl -r +1:00" else 0
        self.assertEqual(done.returncode, expected, f"{role}$ {text}\n{done.stdout}{done.stderr}")
        self.undo(words)

    def test_each_cell(self):
        w = self.who
        type(self).alpha, type(self).script = self.demo("levels", f"""ADMIN1 root {w['admin1']}
ADMIN2 {w['admin2']}
ADMIN3 {w['admin3']}
USERCFG[{w['owner']}] QLIST=hi
""")
        self.ok(self.alpha, "canceljob", *(j["job_id"] for j in self.queue()[0]))
        for text, cells in CELLS:
            if "-" in cells:
                self.refusals(text, [role for role, mark in zip(WHO, cells) if mark == "-"])
            for role, mark in zip(WHO, cells):
                if mark == "+":  # and '.': it would end the daemon
                    with self.subTest(command=text, who=role):
                        self.allowed(text, role)
        self.assertEqual({t.split()[0] for t, _ in CELLS}, set(commands("On a cluster")))

    def test_own_only(self):
        """What plain users see is theirs, and how much more there is, is said."""
        w = self.who
        site, script = self.demo("own", f"ADMIN3 {w['admin3']}\n")
        mine = self.ok(site, "msub", "-h", "-t", "1:00", script, account=w["owner"]).strip()
        for command, account, seen in (("showq", w["owner"], {mine}), ("showq", w["other"], set())):
            rows = self.data(site, command, account=account)
            self.assertEqual({j["job_id"] for s in ("active", "idle", "blocked") for j in rows[s]}, seen)
            self.assertGreater(rows["hidden"], 0)
        self.assertIn("jobs of other people are not shown", self.ok(site, "showq", account=w["other"]))
        self.assertEqual([r["job_id"] for r in self.data(site, "diagnose", "-j", account=w["owner"])], [mine])
        self.assertEqual([r["reservation_id"] for r in self.data(site, "showres", account=w["owner"])
                          if r["type"] == "Job"], [])
        self.ok(site, "releasehold", "-u", mine, account=w["owner"])
        self.ok(site, "canceljob", "1001", "1002")
        self.ok(site, "schedctl", "-S", "5", "--wait")
        self.assertEqual([r["name"] for r in self.data(site, "showstats", "-u", account=w["owner"])], [w["owner"]])
        done = site.nui("profiler", "--json", "-u", w["owner"], account=w["owner"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)[0]["jobs"], 1)


if __name__ == "__main__":
    main()
