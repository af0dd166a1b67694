"""Random sites: `nui sim` and the daemon's SIMULATION decide alike, job for job, and a checker that knows nothing of
the scheduler (random_check.py) finds nothing wrong with what they decide. Bounded here; NUI_SEEDS=FROM..TO for more.
Seeds that once failed are in KEPT; those from RICH on draw from the whole table of parameters (random_more.py)."""
import csv
import os
import sqlite3
import subprocess
import unittest
from contextlib import closing

from fixture import main
from onesite import SiteCase, wait_for
from random_check import Schedule, may_move, moved_by, wrongs
from random_more import EXEMPT, EXEMPT_WORDS, RICH, table
from random_site import Scene

KEPT = (23, 58, 121, 123, 148)
HERE, RICHER = range(1, 7), range(RICH, RICH + 10)
ALL = range(RICH, RICH + 1500)  # drawn, not run
AGED = (*range(1, 300), *range(RICH, RICH + 400))  # run where priority is age


def seeds(*here):
    text = os.environ.get("NUI_SEEDS")
    if not text:
        return here
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


class RandomSites(SiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.params = table()

    def test_every_parameter_is_drawn(self):
        """One that the daemon reads is drawn, with each of its words, or it says why not."""
        drawn, words = set(), set()
        for seed in ALL:
            more = Scene(seed, self.params).more
            drawn |= more.said
            words |= {tuple(line.split()[:2]) for line in more.lines}
        self.assertEqual([], sorted(set(self.params) - drawn - set(EXEMPT)), "neither drawn nor exempt")
        self.assertEqual([], sorted(set(EXEMPT) - set(self.params)), "exempt, but there is no such parameter")
        self.assertEqual([], sorted(set(EXEMPT) & drawn), "exempt, and drawn")
        for name, own in self.params.items():
            if name not in EXEMPT:
                missing = {w for w in own if (name, w) not in words}
                self.assertEqual(EXEMPT_WORDS.get(name, set()), missing, name)

    def replayed(self, scene, where):
        """By nui sim: {number: start}, the events; it always ends."""
        rows, events = where / "rows.csv", where / "events.csv"
        done = subprocess.run([self.programs["nui"], "sim", "-c", where / "policy.cfg", "-w", where / "jobs", "-r",
                               where / "nodes", "--jobs-out", rows, "--events-out", events],
                              capture_output=True, text=True, timeout=600, env={**os.environ, "TZ": "UTC"})
        self.assertEqual(done.returncode, 0, done.stderr)
        starts = {int(r["job_id"]): float(r["start"]) if r["start"] else None
                  for r in csv.DictReader(rows.read_text().splitlines())}
        for job, start in starts.items():
            if start is None and list(starts.values()).count(None) <= 20:
                self.assertIn(f"job {job} never ran: ", done.stderr)
                if scene.more is None:  # who never runs was promised nothing to the end
                    self.assertNotRegex(done.stderr, f"job {job} never ran: .*has a reservation", f"seed {scene.seed}")
        return starts, events.read_text()

    def lived(self, scene, where):
        """By the daemon in SIMULATION: {number: start}."""
        site = self.site(f"seed{scene.seed}", "alpha")
        site.write(f"SERVERMODE SIMULATION\nSIMWORKLOADTRACEFILE {where}/jobs\nSIMRESOURCETRACEFILE {where}/nodes\n"
                   "SIMJOBSUBMISSIONPOLICY NORMAL\nSIMINITIALQUEUEDEPTH 1\nSIMAUTOSHUTDOWN TRUE\nHORIZON 60:00:00:00\n"
                   + (where / "policy.cfg").read_text(), gridmap=False)
        site.process.start([site.programs["nui-local"], "--config", site.config])
        wait_for("the simulation to end", site.process.died, 600, site.log)
        self.assertTrue(site.logged("sim over", "nothing is left"), site.words())
        with closing(sqlite3.connect(f"file:{site.dir}/simulation.db?mode=ro", uri=True)) as db:
            return {n: s / 1e6 if s else None for n, s in db.execute("SELECT number, start_us FROM job")}

    def written(self, scene):
        where = self.state / f"scene{scene.seed}"
        where.mkdir(exist_ok=True)
        (where / "policy.cfg").write_text("\n".join(scene.config) + "\n")
        (where / "nodes").write_text(scene.nodes_text())
        (where / "jobs").write_text(scene.jobs_text())
        return where

    def scene(self, seed):
        scene = Scene(seed, self.params)
        if not scene.jobs:
            return
        where = self.written(scene)
        starts, events = self.replayed(scene, where)
        self.assertEqual([], list(wrongs(scene, events)), f"seed {seed}")
        found = self.lived(scene, where)
        differ = {n: (starts[n], found.get(n)) for n in starts if starts[n] != found.get(n)}
        self.assertEqual({}, differ, f"seed {seed}: (nui sim, the daemon)")

    def test_random_sites(self):
        for seed in seeds(*KEPT, *HERE):
            with self.subTest(seed=seed):
                self.scene(seed)

    def test_promises(self):
        """Where nothing but a defect could move the promise of whoever is first: enough of them."""
        held = 0
        for seed in AGED:
            scene = Scene(seed, self.params)
            if not scene.jobs or moved_by(scene):
                continue
            with self.subTest(seed=seed):
                _, events = self.replayed(scene, self.written(scene))
                self.assertEqual([], list(wrongs(scene, events)), f"seed {seed}")
                held += sum(event == "promise" and not may_move(scene, {j["number"]: j for j in scene.jobs}[job])
                            for _, event, job, *_ in Schedule(scene, events).events)
        self.assertGreater(held, 50)

    @unittest.skipIf("NUI_SEEDS" in os.environ, "test_random_sites has them")
    def test_of_all_parameters(self):
        for seed in RICHER:
            with self.subTest(seed=seed):
                self.scene(seed)


if __name__ == "__main__":
    main()
