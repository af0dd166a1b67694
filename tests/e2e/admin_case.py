"""AdminCase: a grid whose site alpha has a socket for everybody, administrators of each level and a
limit on alice; and what the tests of Maui's commands share."""
import json
import os
import re
import sqlite3
import subprocess
import unittest

from fixture import GridCase, become, layout, wait_for

TIME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 123]\d " \
       r"\d\d:\d\d:\d\d"
SPAN = r"-?(?:\d+:)?(?:\d+:)?\d+:\d\d"


def plain(text):
    """A table with its moments and spans made alike, so that it can be compared whole."""
    text = re.sub(TIME, "DATE", text)
    return re.sub(r" *(?<![\w.])" + SPAN + r"(?!\w)", " SPAN", text)


@unittest.skipIf(os.geteuid() != 0, "needs to be root: other accounts use the socket")
class AdminCase(GridCase):
    config = ""  # more lines for alpha

    @classmethod
    def fund(cls):
        """Also: alpha has a socket for everybody, a limit on alice, and administrators."""
        super().fund()
        grid = cls.grid
        cls.account = layout.account_of("alice")
        cls.other = layout.account_of("bob")
        cls.socket = cls.job_dir() / "alpha.sock"
        config = grid.layout.config("alpha")
        grid.daemons["alpha"].stop()
        text = re.sub(r"(?m)^SOCKET .*$", f"SOCKET {cls.socket}", config.read_text())
        config.write_text(text + f"ADMIN2 helper nui://{layout.GRID}/user/bob\n"
                                 f"USERCFG[{cls.account}] MAXJOB=2\nUSERCFG[DEFAULT] PRIORITY=10\n"
                                 "CREDWEIGHT 1\nUSERWEIGHT 1\nQUEUETIMEWEIGHT 1\nXFACTORWEIGHT 10\n"
                                 + cls.config)
        grid.daemons["alpha"].start()
        cls.local_config = cls.job_dir() / "nui.cfg"
        cls.local_config.write_text(f"GRID {layout.GRID}\nSITECFG[alpha] SOCKET={cls.socket}\n")
        cls.local_config.chmod(0o644)
        grid.wait_serving()

    def here(self, *args, code=0, account=None):
        """The client on the cluster itself, as an account of the operating system (None: root)."""
        done = subprocess.run([*become(account), str(self.grid.programs["nui"]), *map(str, args)], text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=600, cwd="/",
                              env={"PATH": os.environ["PATH"], "TZ": "UTC", "HOME": "/nonexistent",
                                   "NUI_CONFIG": str(self.local_config)})
        self.assertTrue(code is None or done.returncode == code,
                         f"{account}$ nui {' '.join(map(str, args))}\n{done.stdout}{done.stderr}")
        return done

    def data(self, *args, **options):
        return json.loads(self.here(args[0], "--json", *args[1:], **options).stdout)

    def refused(self, *args, code, says, account=None):
        done = self.here(*args, code=code, account=account)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def submit(self, name, *options, who="alice"):
        """The site's id of a gated job on alpha."""
        ident = self.grid.submit(who, "-A", "phys", "--site", "alpha", *options,
                                 self.gated_script(name))

        def placed():
            job = self.status(who, ident)
            return job and job["components"][0].get("site_job_id") or None
        site_id = wait_for(f"{ident} to be at alpha", lambda: self.at_site(ident), 30)
        return ident, site_id

    def at_site(self, ident):
        rows = self.data("showq")
        return next((r["job_id"] for s in ("active", "idle", "blocked") for r in rows[s]
                     if r["grid_job_id"] == ident), None)

    def wait_local(self, site_id, state):
        return wait_for(f"{site_id} to be {state}",
                        lambda: self.data("checkjob", site_id)["job"]["state"] == state, 30)

    def clear(self):
        def gone():
            rows = self.data("showq")
            ids = [r["job_id"] for s in ("active", "idle", "blocked") for r in rows[s]]
            if ids:
                self.here("canceljob", *ids, code=None)  # one may have ended by itself since
            return not ids
        wait_for("the queue to be empty", gone, 60)

    def tearDown(self):
        self.clear()

    def audit(self):
        db = sqlite3.connect(f"file:{self.grid.layout.state}/alpha/local.db?mode=ro", uri=True)
        try:
            return db.execute("SELECT who, what FROM audit ORDER BY sequence").fetchall()
        finally:
            db.close()
