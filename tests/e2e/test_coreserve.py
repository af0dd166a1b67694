"""Several clusters reserved for one moment, without a job (nui coreserve), through the real client: all or none, who may come
in, who pays, how it is given back."""
import json
import os
import re
import subprocess
import unittest
from datetime import datetime, timedelta

from fixture import GridCase, layout, main, wait_for


@unittest.skipIf(os.geteuid() != 0, "needs to be root: it is the sites' administrator")
class Coreserve(GridCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.admin_config = cls.grid.layout.work / "admin.cfg"
        sockets = {s: re.search(r"(?m)^SOCKET (.*)$", cls.grid.layout.config(s).read_text()).group(1)
                   for s in ("alpha", "beta")}
        cls.admin_config.write_text(f"GRID {layout.GRID}\n" +
                                    "".join(f"SITECFG[{s}] SOCKET={p}\n" for s, p in sockets.items()))

    def here(self, *args):
        """On the cluster itself, as root."""
        done = subprocess.run([str(self.grid.programs["nui"]), *args], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=600, cwd="/",
                              env={"PATH": os.environ["PATH"], "TZ": "UTC", "HOME": "/nonexistent",
                                   "NUI_CONFIG": str(self.admin_config)})
        self.assertEqual(done.returncode, 0, f"nui {' '.join(args)}\n{done.stdout}{done.stderr}")
        return done

    def coreserve(self, *options, who="alice", code=0):
        return self.nui(who, "coreserve", "-A", "phys", *options, code=code)

    def at_site(self, site):
        """The groups' reservations of that site, by name."""
        rows = json.loads(self.here("showres", "-g", "--json", "--site", site).stdout)
        return {r["reservation_id"]: r for r in rows}

    def wait_firm(self, ident):
        return self.wait_state(ident, ("Reserved",))

    def gone(self, site):
        wait_for(f"{site} to have no group's reservation", lambda: not self.at_site(site), 30)

    def restart(self, *names):
        for name in names:
            self.grid.daemons[name].kill()
            self.grid.daemons[name].start()
        self.grid.wait_serving()

    def test_1_all_or_none_and_back(self):
        both = ["--component", "left:site=alpha,tasks=2", "--component", "right:site=beta,tasks=2"]
        ident = self.coreserve(*both, "-d", "10:00", "--at", "+1:00:00").stdout.strip()
        job = self.wait_firm(ident)
        self.assertEqual({c["site"] for c in job["components"]}, {"alpha", "beta"})
        for site, name in (("alpha", "left"), ("beta", "right")):
            rows = wait_for("its reservation", lambda: self.at_site(site), 30)
            self.assertEqual(list(rows), [f"{ident}.{name}.0"])
            self.assertEqual(rows[f"{ident}.{name}.0"]["group"], ident)
            self.assertEqual(rows[f"{ident}.{name}.0"]["procs"], 2)
        # As much as there is at alpha, for the same moment: no site gets anything.
        procs = json.loads(self.nui("alice", "sites", "--json").stdout)
        most = next(s["procs_total"] for s in procs if s["site"] == "alpha")
        self.coreserve("--component", f"left:site=alpha,tasks={most}", "--component",
                       "right:site=beta,tasks=1", "-d", "10:00", "--at", "+1:00:00", code=1)
        self.assertEqual(len(self.at_site("beta")), 1)
        self.nui("alice", "cancel", ident)
        self.wait_state(ident, ("Cancelled",))
        self.gone("alpha")
        self.gone("beta")
        self.settled()

    def test_2_jobs_come_in(self):
        ident = self.coreserve("--component", "left:site=alpha,tasks=2", "--component",
                               "right:site=beta,tasks=2", "-d", "5:00", "--at", "+15",
                               "--window", "1:00").stdout.strip()
        script = self.write("in.sh", "#!/bin/sh\necho inside\n")
        self.wait_firm(ident)
        for site in ("alpha", "beta"):
            inside = self.grid.submit("alice", "-A", "phys", "-n", 2, "-t", "1:00", "--site", site,
                                      "--reservation", ident, script)
            job = self.wait_state(inside, ("Completed",))
            rsv = next(iter(self.at_site(site).values()))
            self.assertGreaterEqual(job["components"][0]["start_time"], rsv["start_time"])
        # One site takes its part away: the other gives its own back, and the user is told who it was.
        self.here("releaseres", "--site", "alpha", ident)
        job = self.wait_state(ident, ("Failed", "Cancelled"))
        self.assertIn("alpha", job["reason"])
        self.gone("alpha")
        self.gone("beta")
        self.settled()

    def test_3_bad_ones(self):
        two = ["--component", "left:site=alpha,tasks=1", "--component", "right:site=beta,tasks=1"]
        self.assertIn("two components", self.coreserve("-d", "1:00", code=2).stderr)
        self.assertIn("two components", self.coreserve(*two[:2], "-d", "1:00", code=2).stderr)
        self.assertIn("--duration", self.coreserve(*two, code=2).stderr)
        said = self.coreserve(*two, "-d", "1:00", "--users", "a b", code=1).stderr
        self.assertIn("user", said)
        said = self.coreserve("--component", "left:site=alpha,tasks=1,licence=x:1", *two[2:], "-d", "1:00", code=1)
        self.assertIn("licences", said.stderr)

    def test_4_kills(self):
        """The sites and the metascheduler die while it is firm: it stands, and ends when its time is over."""
        ident = self.coreserve("--component", "left:site=alpha,tasks=2", "--component",
                               "right:site=beta,tasks=2", "-d", "20", "--at", "+20", "--window", "1:00").stdout.strip()
        self.wait_firm(ident)
        self.restart("alpha", "beta", "meta")
        self.assertEqual(len(wait_for("its reservation", lambda: self.at_site("alpha"), 30)), 1)
        self.wait_state(ident, ("Completed",), seconds=150)
        self.gone("alpha")
        self.gone("beta")
        self.settled()

    def test_5_standing(self):
        """Each day at that hour, at both sites or not at all: the next two are reserved, whoever dies; one name lets jobs in; a
        site that breaks its part is named, and the days after it stand."""
        both = ["--component", "left:site=alpha,tasks=1", "--component", "right:site=beta,tasks=1"]
        ident = self.coreserve(*both, "-d", "10", "--at", "+25", "--window", "30", "--every", "day", "--until", "+4:00:00:10",
                               "--max-cost", "100000").stdout.strip()
        number = ident.split("[")[0]
        self.assertEqual(ident, f"{number}[1-4]")

        def states():
            rows = json.loads(self.nui("alice", "status", ident, "--json").stdout)["array"]
            return {r["state"]: (int(r["count"]), r["indexes"]) for r in rows}
        wait_for("two days to be reserved", lambda: states() == {"Reserved": (2, "1-2"), "Pending": (2, "3-4")}, 60)
        for site, part in (("alpha", "left"), ("beta", "right")):
            rows = wait_for("both of its days", lambda: (lambda r: len(r) == 2 and r)(self.at_site(site)), 30)
            self.assertEqual(sorted(rows), [f"{number}.{day}.{part}.0" for day in (1, 2)])
            begins = [rows[f"{number}.{day}.{part}.0"]["start_time"] for day in (1, 2)]
            self.assertEqual(begins[0][10:16], begins[1][10:16])
        self.restart("alpha", "beta", "meta")
        inside = self.grid.submit("alice", "-A", "phys", "-n", 1, "-t", "5", "--site", "alpha", "--reservation", number,
                                  self.write("today.sh", "#!/bin/sh\necho inside\n"))
        job = self.wait_state(inside, ("Completed",), seconds=90)
        self.assertLess(abs(datetime.fromisoformat(job["components"][0]["start_time"]) -
                            datetime.fromisoformat(begins[0])), timedelta(seconds=60))
        wait_for("the third day in place of the first",
                 lambda: states() == {"Completed": (1, "1"), "Reserved": (2, "2-3"), "Pending": (1, "4")}, 120)
        self.here("releaseres", "--site", "alpha", f"{number}[2]")
        broken = wait_for("the second day to be whole again", lambda: (lambda j: j and "again, after" in j["reason"] and j)(
            self.status("alice", f"{number}[2]")), 60)
        self.assertEqual(broken["state"], "Reserved")
        self.assertIn("component left at alpha: released at site alpha by", broken["reason"])
        self.restart("meta")
        self.assertIn("released at site alpha by", self.status("alice", f"{number}[2]")["reason"])
        for site, part in (("alpha", "left"), ("beta", "right")):
            wait_for("both of its days", lambda: sorted(self.at_site(site)) == [f"{number}.{day}.{part}.0" for day in (2, 3)], 30)
        self.nui("alice", "cancel", number)
        self.gone("alpha")
        self.gone("beta")
        for words, options in (("wanted days", ["--every", "moon", "--at", "8:00"]), ("needs --at", ["--every", "mon"]),
                               ("none of these days", ["--every", "day", "--at", "+2:00", "--until", "+1:00"])):
            self.assertIn(words, self.coreserve(*both, "-d", "10", *options, code=2).stderr)
        self.settled()

    def change(self, ident, *options, code=0, who="alice"):
        """Again while its sites are being told of earlier ones."""
        done = wait_for("its sites to know", lambda: (lambda d: d.returncode != 4 and d)(
            self.grid.nui(who, "coreserve", "--change", ident, *options)), 60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def ends(self, ident):
        """When it is over at each site, and with how many processors."""
        rows = {site: self.at_site(site) for site in ("alpha", "beta")}
        return {site: (datetime.fromisoformat(r["end_time"]) - datetime.fromisoformat(r["start_time"]), r["procs"])
                for site, many in rows.items() for r in many.values() if r["group"] == ident}

    def test_6_other_terms(self):
        """Longer, shorter, fewer tasks, for others: at all of its sites or at none, before and after its beginning, whoever dies."""
        minute = timedelta(minutes=1)
        self.nui(layout.OPERATOR, "project", "add-user", "physics", "bob")
        asked = self.coreserve("--component", "left:site=alpha,tasks=2", "--component", "right:site=beta,tasks=2", "-d", "2:00",
                               "--at", "+40", "--window", "1:00")
        ident = asked.stdout.strip()
        self.wait_firm(ident)
        # What it may cost is signed again with its terms, and the bank is asked before any site is.
        said = self.change(ident, "-d", "10:00", "--max-cost", "0.000001", code=1).stderr
        self.assertIn("its bound is 0.000001", said)
        self.assertIn("not above zero", self.change(ident, "--max-cost", "0", code=1).stderr)
        self.assertEqual(self.ends(ident), {"alpha": (2 * minute, 2), "beta": (2 * minute, 2)})
        longer = self.change(ident, "-d", "10:00", "--users", "bob")
        self.assertEqual(longer.stdout.strip(), ident)
        bound = [float(re.search(r"signed for at most ([0-9.]+) credits", d.stderr)[1]) for d in (asked, longer)]
        self.assertAlmostEqual(bound[1], 5 * bound[0], delta=bound[0])
        self.assertNotIn("signed for", self.change(ident, "--users", "bob").stderr)
        wait_for("both to be longer", lambda: self.ends(ident) == {"alpha": (10 * minute, 2), "beta": (10 * minute, 2)}, 30)
        self.restart("alpha", "beta", "meta")
        self.assertEqual(self.ends(ident), {"alpha": (10 * minute, 2), "beta": (10 * minute, 2)})
        # Beta has promised what comes after it to somebody else: it stays as it is at both.
        begins = datetime.fromisoformat(next(iter(self.at_site("beta").values()))["start_time"])
        after = (begins + 11 * minute).strftime("%H:%M:%S_%m/%d/%Y")
        procs = next(s["procs_total"] for s in json.loads(self.nui("alice", "sites", "--json").stdout) if s["site"] == "beta")
        self.here("setres", "--site", "beta", "-n", "blocker", "-s", after, "-d", "5:00", f"TASKS=={procs}")
        said = self.change(ident, "-d", "20:00", code=1).stderr
        self.assertIn("beta", said)
        wait_for("neither to be longer", lambda: self.ends(ident) == {"alpha": (10 * minute, 2), "beta": (10 * minute, 2)}, 30)
        self.here("releaseres", "--site", "beta", "blocker.0")
        # bob may come in; after its beginning it is made shorter, and smaller at alpha
        inside = self.grid.submit("bob", "-A", "phys", "-n", 1, "-t", "5", "--site", "beta", "--reservation", ident,
                                  self.write("bob.sh", "#!/bin/sh\necho inside\n"))
        self.wait_state(inside, ("Completed",), who="bob", seconds=90)
        self.change(ident, "-d", "8:00", "--component", "left:tasks=1", "--users", "")
        wait_for("both to be shorter", lambda: self.ends(ident) == {"alpha": (8 * minute, 1), "beta": (8 * minute, 2)}, 30)
        self.restart("beta", "meta")
        self.change(ident, "-d", "12:00")
        wait_for("both to be longer", lambda: self.ends(ident) == {"alpha": (12 * minute, 1), "beta": (12 * minute, 2)}, 30)
        self.assertIn("more of them", self.change(ident, "--component", "left:tasks=2", code=1).stderr)
        self.assertIn("would have ended", self.change(ident, "-d", "1", code=1).stderr)
        self.change(ident, "-d", "5:00", code=5, who="bob")
        self.assertIn("tasks=N only", self.change(ident, "--component", "left:site=beta", code=1).stderr)
        self.nui("alice", "cancel", ident)
        self.gone("alpha")
        self.gone("beta")
        self.settled()


if __name__ == "__main__":
    main()
