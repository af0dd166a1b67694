"""A daemon that does not answer: whoever waits at a terminal is told for whom, long before the call gives up."""
import os
import pty
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from fixture import BUILD, layout, main


class Silence(unittest.TestCase):
    def test_who_does_not_answer(self):
        with tempfile.TemporaryDirectory(prefix="nui-e2e-") as place, socket.socket(socket.AF_UNIX) as silent:
            path = Path(place) / "silent.sock"
            silent.bind(str(path))
            silent.listen()
            (Path(place) / "nui.cfg").write_text(f"GRID demo\nSITECFG[alpha] SOCKET={path}\n")
            ours, theirs = pty.openpty()
            client = subprocess.Popen([layout.find_programs(BUILD)["nui"], "showq"], stdout=subprocess.PIPE, stderr=theirs,
                                      env={**os.environ, "NUI_CONFIG": f"{place}/nui.cfg"})
            try:
                os.close(theirs)
                said = b""
                while not said.endswith(b"\n"):
                    said += os.read(ours, 4096)
                self.assertIsNone(client.poll())  # it still waits
                self.assertEqual(said.decode().strip(), f"nui: unix:{path} has not answered for 3 s; waiting on (Ctrl-C ends it)")
            finally:
                client.kill()
                client.communicate()
                os.close(ours)


if __name__ == "__main__":
    main()
