"""The systemd units: how much each service is exposed, by systemd's own measure, and what nui-local's must have."""
import re
import shutil
import subprocess
import unittest

from fixture import BUILD, main

# The highest that each may reach (10: nothing is taken away). nui-local runs other people's jobs, which inherit all
# that its unit takes away.
BOUNDS = {"nui-bank": 2.5, "nui-meta": 2.5, "nui-local": 8.0}


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class Units(unittest.TestCase):
    def test_exposure(self):
        for unit, most in BOUNDS.items():
            with self.subTest(unit=unit):
                done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager",
                                       str(BUILD / "deploy" / f"{unit}.service")], text=True, capture_output=True)
                found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
                self.assertTrue(found, done.stdout + done.stderr)
                print(f"{unit}: {found[1]} (at most {most})")
                self.assertLessEqual(float(found[1]), most, done.stdout)

    def test_local(self):
        text = (BUILD / "deploy" / "nui-local.service").read_text().splitlines()
        for line in ("Delegate=yes", "DelegateSubgroup=nui-daemon", "OOMPolicy=continue", "KillMode=process",
                     "NoNewPrivileges=yes"):
            self.assertIn(line, text)


if __name__ == "__main__":
    main()
