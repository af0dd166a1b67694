"""The README's session with one cluster, typed line by line by somebody who has nothing: what it shows is what comes."""
import os
import pty
import re
import signal
import subprocess
import tempfile
import unittest
from contextlib import suppress
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
                said, _ = shell.communicate(typed + "echo '@end'\nkill %1\nwait\n", timeout=600)
            finally:
                try:
                    os.killpg(shell.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            found = re.split(r"^@(?:\d+|end)\n", said, flags=re.M)[1:]
            self.assertEqual(len(found), len(session()) + 1, said)
            for (command, wanted), printed in zip(session(), found):
                self.assertEqual(printed.splitlines(), wanted, f"$ {command}\n{said}")

    def init(self, place, *options, answers=None):
        """(exit code, what it said), asked on a terminal where there are answers."""
        command = [BUILD / "nui-local", "--init", *options, place]
        if answers is None:
            done = subprocess.run(command, text=True, capture_output=True)
            return done.returncode, done.stdout + done.stderr
        ours, theirs = pty.openpty()
        child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        said = b""
        with suppress(OSError):  # its end is an error to a terminal
            while piece := os.read(ours, 4096):
                said += piece
        os.close(ours)
        return child.wait(), said.decode().replace("\r", "")

    def test_first_configuration(self):
        """What it writes is good, also with its examples in force; it asks on a terminal, and overwrites nothing."""
        with tempfile.TemporaryDirectory(prefix="nui-e2e-") as home:
            asked = Path(home, "asked")
            code, said = self.init(asked, answers=["box", "", "3G"])
            procs = os.sysconf("SC_NPROCESSORS_ONLN")
            self.assertEqual(code, 0, said)
            self.assertIn("The name of this machine in listings [", said)
            self.assertIn(f"maui.cfg: box with {procs} processor", said)
            text = (asked / "maui.cfg").read_text()
            self.assertIn(f"NODECFG[box] PROCS={procs} MEM=3G\n", text)
            examples = text.split("in force:")[1]
            (asked / "all.cfg").write_text(text + re.sub(r"^# (\S+ .*?)(  .*)?$", r"\1", examples, flags=re.M))
            for name in ("maui.cfg", "all.cfg"):
                done = subprocess.run([BUILD / "nui-local", "--config", asked / name, "--check"], text=True, capture_output=True)
                self.assertEqual((done.returncode, done.stdout.strip()), (0, f"nui-local: {asked / name} is good"), done.stderr)
            self.assertIn("FSPOLICY DEDICATEDPS\n", (asked / "all.cfg").read_text().split("in force:")[2 - 1])
            again = self.init(asked, "--procs", "2")
            self.assertEqual(again, (1, f"nui-local: {asked}/maui.cfg: File exists\n"))
            self.assertEqual((asked / "maui.cfg").read_text(), text)
            for options, why in ((("--procs", "none"), "'none' is no number of processors"),
                                 (("--memory", "much"), "much"), (("--node", "a b"), "a b")):
                code, said = self.init(Path(home, "wrong"), *options)
                self.assertEqual((code, len(said.splitlines())), (1, 1), said)
                self.assertIn(why, said)
            self.assertFalse(Path(home, "wrong").exists())


if __name__ == "__main__":
    main()
