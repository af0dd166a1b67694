"""The Python package nui, installed by pip from the tree, against a real grid through a real gate."""
import asyncio
import importlib
import inspect
import os
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

from fixture import ROOT, GridCase, main, wait_for


class Installed(GridCase):
    """With the package, installed, and alice's client."""
    gate = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="nui-python-")
        cls.addClassCleanup(folder.cleanup)
        done = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-index", "--no-deps",
                               "--target", folder.name + "/site", cls.source(folder.name)], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(done.stderr)
        sys.path.insert(0, folder.name + "/site")
        cls.addClassCleanup(sys.path.remove, folder.name + "/site")
        for name in [name for name in sys.modules if name.split(".")[0] == "nui"]:
            del sys.modules[name]  # of the class before
        cls.nui_ = importlib.import_module("nui")
        assert cls.nui_.__file__.startswith(folder.name)
        cls.url = f"http://127.0.0.1:{cls.grid.ports['http-gate']}"
        cls.alice = cls.identity("alice")
        cls.client = cls.nui_.Client(cls.url, cls.alice.delegate(), identity=cls.alice)

    @staticmethod
    def source(folder):
        """A copy: pip builds beside its sources."""
        subprocess.run(["cp", "-rL", str(ROOT / "meta" / "gate" / "python"), folder + "/source"], check=True)
        return folder + "/source"

    @classmethod
    def identity(cls, who):
        mine = cls.grid.layout.id_dir("user", who)
        return cls.nui_.Identity.load(mine / "cert.pem", mine / "key.pem")

    def job(self, script="echo hello", **more):
        return self.nui_.Job.script(f"#!/bin/sh\n{script}\n", walltime=60, **{"account": "phys", **more})


class Package(Installed):
    def test_a_job_that_i_signed(self):
        grid = self.client
        before = grid.balance("phys")[0]
        job = grid.submit(self.job("echo \"$1 $GREETING\"; echo kept > result.txt; echo bad >&2; exit 3", args=["it's"], name="py",
                                   env={"GREETING": "kia ora"}, tasks=2, sites=["beta"]))
        status = grid.wait(job, timeout=600)
        self.assertEqual(("failed", "py", "phys", "beta", 3),
                         (status.state, status.name, status.account, status.components[0].site, status.components[0].exit_code))
        self.assertLess(status.submitted, status.end)
        self.assertEqual(b"it's kia ora\n", grid.output(job))
        self.assertEqual(b"bad\n", grid.output(job, stream="stderr"))
        self.assertEqual(5, grid.files(job)["result.txt"])
        self.assertEqual(b"kept\n", grid.fetch(job, "result.txt"))
        with self.assertRaises(self.nui_.NotFound):
            grid.fetch(job, "other.txt")
        self.settled()
        after = grid.balance("phys")[0]
        self.assertEqual(Decimal(100000), before.granted)
        self.assertGreater(after.settled, before.settled)
        self.assertEqual(after.granted - after.settled - after.held, after.available)
        # The metascheduler has it as hers, signed by her key, with a bound of twice the estimate
        self.assertEqual("nui://demo/user/alice", self.status("alice", job)["submitter"])
        self.assertFalse(grid.cancel(job))

    def test_co_allocation(self):
        part = self.nui_.Component
        pair = self.nui_.Job([part("#!/bin/sh\necho \"$NUI_COMPONENT\"\n", 30, name="left", sites=["alpha"]),
                              part("#!/bin/sh\necho \"$NUI_COMPONENT\"\n", 30, name="right", sites=["beta"])], account="phys", max_cost=200)
        best = self.client.estimate(pair)[0]
        self.assertEqual((["alpha", "beta"], True, Decimal(60), "phys"), (best.sites, best.feasible, best.price, best.account))
        job = self.client.submit(pair)
        status = self.client.wait(job, timeout=600)
        self.assertEqual("completed", status.state, status)
        self.assertEqual({"left": "alpha", "right": "beta"}, {c.name: c.site for c in status.components})
        self.assertEqual(b"right\n", self.client.output(job, component="right"))

    def test_the_gate_signs(self):
        grid = self.nui_.Client(self.url, self.alice.delegate(jobs=3, max_cost="60.5", accounts=["phys"], sites=["gamma", "alpha"]))
        self.assertEqual((3, "60500000", ["phys"]), tuple(grid.whoami()[k] for k in ("jobs_max", "cost_max_micro", "accounts")))
        first = grid.submit(self.job(key="a"))
        self.assertEqual(first, grid.submit(self.job(key="a")))
        self.assertEqual("completed", grid.wait(first, timeout=600).state)
        with self.assertRaises(self.nui_.Denied):
            grid.submit(self.job(max_cost="60.6"))
        with self.assertRaises(self.nui_.Denied):
            grid.submit(self.job(sites=["beta"]))
        with self.assertRaises(self.nui_.Invalid):  # a bound below the price
            grid.submit(self.job(tasks=2, sites=["alpha"]))
        look = self.nui_.Client(self.url, self.alice.delegate(change=False), identity=self.alice)
        with self.assertRaises(self.nui_.Denied):
            look.submit(self.job())
        self.assertIn(first, [one.id for one in look.jobs(ended=True, page=1)])
        with self.assertRaises(self.nui_.Denied):
            self.nui_.Client(self.url, self.alice.delegate("other")).balance()

    def test_errors(self):
        errors = self.nui_
        with self.assertRaises(errors.NotFound):
            self.client.status("grid.99999")
        with self.assertRaises(errors.Unavailable):
            errors.Client("http://127.0.0.1:1", "x").request("POST", "/api/v1/nui/jobs", {"job": {}})
        with self.assertRaises(errors.Invalid):
            self.client.submit(self.job(tasks=1000))
        with self.assertRaises(ValueError):
            errors.Client("ftp://x", "x")
        mine = self.grid.layout.id_dir("user", "alice")
        with tempfile.NamedTemporaryFile() as other:
            subprocess.run(["openssl", "genrsa", "-out", other.name, "2048"], check=True, capture_output=True)
            with self.assertRaises(ValueError):
                errors.Identity.load(mine / "cert.pem", other.name)
        bob = self.identity("bob")
        poor = errors.Client(self.url, bob.delegate(), identity=bob)
        with self.assertRaises(errors.NuiError):
            poor.submit(self.job(max_cost=100))
        self.assertEqual([], poor.balance())

    def test_keys_and_holds(self):
        place, script = self.job_dir(), self.gated_script("python")
        text = script.read_text().split("\n", 1)[1]
        one = self.client.submit(self.job(text, key="mine"))
        self.assertEqual(one, self.client.submit(self.job(text, key="mine", max_cost=120)))
        wait_for("the job to begin", lambda: self.began("python"), 60, self.grid.layout.log)
        with self.assertRaises(TimeoutError):
            self.client.wait(one, timeout=0.5)
        held = self.client.submit(self.nui_.Job([self.nui_.Component("#!/bin/sh\n", 60, tasks=2, sites=["gamma"])], account="phys",
                                                not_before=time.time() + 10**6, max_cost=200))
        wait_for("the job to have its place", lambda: self.client.status(held).state == "queued", 60, self.grid.layout.log)
        self.client.hold(held)
        self.assertIn("Hold", wait_for("the hold", lambda: "Hold" in self.client.status(held).reason and self.client.status(held).reason, 60))
        self.assertTrue(self.client.cancel(held))
        self.assertEqual("cancelled", self.client.wait(held, timeout=600).state)

        async def look():
            return [status.state async for status in self.client.events(one, timeout=600)]

        async def both():
            states = asyncio.create_task(look())
            (place / "python.gate").touch()
            return await states
        states = asyncio.run(both())
        self.assertEqual("completed", states[-1])

    def test_a_gate_that_dies(self):
        place, script = self.job_dir(), self.gated_script("dies")
        job = self.client.submit(self.job(script.read_text().split("\n", 1)[1]))
        states = self.client.watch(job, timeout=600)
        next(states)
        self.grid.daemons["gate"].kill()
        self.grid.daemons["gate"].start()
        (place / "dies.gate").touch()
        self.assertEqual("completed", list(states)[-1].state)

    def test_typed(self):
        """As strictly as mypy can; and every public function says what it is."""
        here = Path(self.nui_.__file__).parent
        done = subprocess.run(["/usr/bin/mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull, "-p", "nui"], cwd=here.parent,
                              capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        for module in ("client", "job", "signing", "status", "errors", "wire"):
            loaded = importlib.import_module(f"nui.{module}")
            for name, thing in inspect.getmembers(loaded, lambda t: inspect.isfunction(t) or inspect.isclass(t)):
                if thing.__module__ == loaded.__name__ and not name.startswith("_"):
                    functions = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else []
                    for public, one in [(name, thing), *(f for f in functions if not f[0].startswith("_"))]:
                        self.assertTrue(one.__doc__, public)


class Group(Installed):
    """The gate of a grid with three metaschedulers, of which it loses the one that it asks."""
    metas = 3
    sites = {"alpha": (1, 2)}

    def test_another_answers(self):
        place, script = self.job_dir(), self.gated_script("group")
        job = self.client.submit(self.job(script.read_text().split("\n", 1)[1], max_cost=100))
        wait_for("the job to begin", lambda: self.began("group"), 60, self.grid.layout.log)
        states = self.client.watch(job, timeout=600)
        self.assertIn(next(states).state, ("queued", "running"))
        self.grid.daemons["meta"].kill()
        self.assertEqual(job, self.client.status(job).id)  # by another, at once
        (place / "group.gate").touch()
        self.assertEqual("completed", list(states)[-1].state)
        again = self.client.submit(self.job(max_cost=100))
        self.assertEqual("completed", self.client.wait(again, timeout=600).state)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
