"""A test that hangs is ended with its name, where it stood, and the daemons' last words; nothing of it stays."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from fixture import main, wait_for
from grid.base import process_birth

HERE = Path(__file__).resolve().parent
HANGS = """
    import ctypes, subprocess, threading
    from fixture import main
    from onesite import SiteCase

    class Hangs(SiteCase):
        def test_ends(self):
            pass

        def test_hangs(self):
            (self.state / "log" / "alpha.log").write_text("the last word\\n")
            for _ in range(2):
                print("child", subprocess.Popen(["sleep", "1000"]).pid, flush=True)
            threading.Event().wait()

        def test_holds_the_lock(self):
            ctypes.PyDLL(None).sleep(1000)

    main()
"""


class Watchdog(unittest.TestCase):
    def run_hangs(self, *names):
        done = subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(HANGS), *names], capture_output=True, text=True,
                              timeout=200, cwd=HERE, env={**os.environ, "NUI_E2E_METHOD_S": "2", "TMPDIR": self.temporary.name})
        self.assertEqual(done.returncode, 1, done.stderr)
        return done

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="nui-e2e-")
        self.addCleanup(self.temporary.cleanup)

    def test_python_stands_still(self):
        done = self.run_hangs("Hangs.test_holds_the_lock")
        self.assertIn("Timeout", done.stderr)
        self.assertIn("in test_holds_the_lock\n", done.stderr)

    def test_a_test_that_hangs(self):
        done = self.run_hangs("Hangs.test_ends", "Hangs.test_hangs")
        for words in ("test_ends (__main__.Hangs.test_ends) ... ok", "Hangs.test_hangs took more than 2 s",
                      "in test_hangs\n", "the end of /", "/log/alpha.log\nthe last word\n"):
            self.assertIn(words, done.stderr)
        pids = [int(line.split()[1]) for line in done.stdout.splitlines()]
        self.assertEqual(len(pids), 2)
        wait_for("its children to be gone", lambda: not any(process_birth(pid) for pid in pids), 20)


if __name__ == "__main__":
    main()
