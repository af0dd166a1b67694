"""The README's session with one cluster, typed line by line by somebody who has nothing: what it shows is what comes."""
import os
import re
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from fixture import BUILD, ROOT, become, layout, main

SECTION = "## One cluster, without a grid"


def session():
    """[(command, the lines that it prints)]"""
    text = (ROOT / "README.md").read_text().split(SECTION, 1)[1]
    block = re.search(r"```\n(.*?)```", text, re.S)[1]
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return steps


@unittest.skipIf(os.geteuid() != 0, "needs to be root: it types as an ordinary account")
class OneCluster(unittest.TestCase):
    def test_as_it_stands(self):
        account = layout.account_of("alice")
        with tempfile.TemporaryDirectory(prefix="nui-e2e-") as home:
            os.chmod(home, 0o777)
            began = Path(home, "began")
            began.mkdir()
            (began / "build").mkdir()
            (began / "build" / "release").symlink_to(BUILD)
            began.chmod(0o777)
            typed = "".join(f"echo '@{i}'\n{command}\n" + ("sleep 0.1; until [ -S socket ]; do sleep 0.1; done\n"
                            if command.endswith("&") else "") for i, (command, _) in enumerate(session()))
            shell = subprocess.Popen([*become(account), "/bin/bash"], cwd=began, text=True, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                     env={**{k: v for k, v in os.environ.items() if "SAN_OPTIONS" in k or k in ("TZ", "LC_ALL")},
                                          "HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin"})
            try:
                said, _ = shell.communicate(typed + "echo '@end'\nkill %1\nwait\n", timeout=120)
            finally:
                try:
                    os.killpg(shell.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            found = re.split(r"^@(?:\d+|end)\n", said, flags=re.M)[1:]
            self.assertEqual(len(found), len(session()) + 1, said)
            for (command, wanted), printed in zip(session(), found):
                self.assertEqual(printed.splitlines(), wanted, f"$ {command}\n{said}")


if __name__ == "__main__":
    main()
