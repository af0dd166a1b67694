"""The daemons' skeleton (proto/rpc/daemon.c) as a process: start, refusals, reload, stop."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROBE, NUI_CA = sys.argv.pop(1), sys.argv.pop(1)
DEADLINE_S = 80


def ca(*args):
    subprocess.run([NUI_CA, *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Skeleton(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.certs = tempfile.mkdtemp(prefix="nui-daemon-ca-")
        ca("init", cls.certs + "/ca", "--grid", "example")
        ca("issue", cls.certs + "/ca", "site", "alpha", "--out", cls.certs + "/alpha")
        ca("issue", cls.certs + "/ca", "user", "alice", "--out", cls.certs + "/alice")
        ca("crl", cls.certs + "/ca")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.certs)

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="nui-daemon-")
        for name, source in (("ca.pem", "ca/ca.pem"), ("crl.pem", "ca/crl.pem"),
                             ("cert.pem", "alpha/cert.pem"), ("key.pem", "alpha/key.pem")):
            shutil.copy2(f"{self.certs}/{source}", f"{self.dir}/{name}")
        self.running = []
        self.write()

    def tearDown(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.dir)

    def write(self, extra="", **keys):
        values = dict(GRID="example", STATEDIR="state", LISTEN="127.0.0.1:0", SOCKET="probe.sock",
                      PORTFILE="port", LOGFILE="log", CA="ca.pem", CRL="crl.pem", CERT="cert.pem",
                      KEY="key.pem")
        values.update(keys)
        text = "".join(f"{k} {v}\n" for k, v in values.items() if v is not None) + extra
        with open(self.dir + "/probe.cfg.new", "w") as f:
            f.write(text)
        os.rename(self.dir + "/probe.cfg.new", self.dir + "/probe.cfg")

    def spawn(self, *args, **kw):
        process = subprocess.Popen([PROBE, "--config", self.dir + "/probe.cfg", *args],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)
        self.running.append(process)
        return process

    def run_to_end(self, *args):
        process = self.spawn(*args)
        out, err = process.communicate(timeout=DEADLINE_S)
        return process.returncode, out, err

    def number(self, name):
        with open(f"{self.dir}/{name}") as f:
            return int(f.read())

    def log(self):
        try:
            with open(self.dir + "/log") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def wait_for(self, what, why):
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if what():
                return
            time.sleep(0.02)
        self.fail(f"{why} did not happen; the log:\n{self.log()}")

    def wait_log(self, pattern, times=1):
        self.wait_for(lambda: len(re.findall(pattern, self.log())) >= times, pattern)

    def start(self, **kw):
        ready = r"daemon ready version=\S+ self=nui://example/site/alpha port=\d+"
        before = len(re.findall(ready, self.log()))
        process = self.spawn(**kw)
        self.wait_for(lambda: len(re.findall(ready, self.log())) > before
                      or process.poll() is not None, "readiness")
        self.assertIsNone(process.poll())
        self.assertTrue(os.path.exists(self.dir + "/port"))
        return process

    def stop(self, process, how=signal.SIGTERM):
        process.send_signal(how)
        self.assertEqual(process.wait(DEADLINE_S), 0, process.stderr.read())

    def test_life(self):
        process = self.start()
        port = self.number("port")
        socket.create_connection(("127.0.0.1", port), 5).close()
        self.assertTrue(os.path.exists(self.dir + "/probe.sock"))
        self.assertEqual(self.number("state/daemon-probe.pid"), process.pid)
        self.assertEqual(os.stat(self.dir + "/state").st_mode & 0o777, 0o700)
        self.assertIn("probe started name=alpha grid=example level=1", self.log())
        self.stop(process)
        self.assertIn("probe stopped level=1", self.log())
        self.assertFalse(os.path.exists(self.dir + "/port"))
        self.assertFalse(os.path.exists(self.dir + "/probe.sock"))
        self.stop(self.start(), signal.SIGINT)

    def test_options(self):
        run = lambda *a: subprocess.run([PROBE, *a], capture_output=True, text=True)
        self.assertRegex(run("--version").stdout, r"^daemon-probe \d+\.\d+\.\d+\n$")
        self.assertIn("usage: daemon-probe", run("--help").stdout)
        for args, text in ((["--confg"], "unknown option '--confg', did you mean --config?"),
                           (["--config"], "a file is missing after '--config'"),
                           (["x"], "unexpected argument 'x'")):
            r = run(*args)
            self.assertEqual(r.returncode, 2)
            self.assertIn(text, r.stderr)
        r = run()
        self.assertEqual(r.returncode, 1)
        self.assertEqual(r.stderr, "daemon-probe: /nonexistent/probe.cfg: No such file or directory\n")

    def test_check(self):
        code, out, err = self.run_to_end("--check")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("probe.cfg is good", out)
        self.assertFalse(os.path.exists(self.dir + "/state"))
        self.write("SIMFLAGS x\n")
        code, out, err = self.run_to_end("--check")
        self.assertEqual(code, 0)
        self.assertIn("SIMFLAGS is a parameter of Maui's that Nui does not have", err)
        for extra, text in (("PROBELEVL 2\n", "unknown parameter PROBELEVL, did you mean PROBELEVEL?"),
                            ("PROBELEVEL 10\n", "is not between 1 and 9"),
                            ("LOGLEVEL loud\n", "LOGLEVEL: log level 'loud'")):
            self.write(extra)
            code, out, err = self.run_to_end("--check")
            self.assertEqual(code, 1)
            self.assertIn(text, err)
        self.write(LISTEN=None, SOCKET=None)
        self.assertIn("neither LISTEN nor SOCKET", self.run_to_end("--check")[2])
        self.write()
        os.environ["PROBE_META"] = "1"  # no site: an account of the machine would be the user of its name
        self.addCleanup(os.environ.pop, "PROBE_META", None)
        self.assertIn("SOCKET is for sites", self.run_to_end("--check")[2])
        self.write(SOCKET=None)
        self.assertEqual(self.run_to_end("--check")[0], 0)
        del os.environ["PROBE_META"]
        self.write(CRL=None)
        self.assertIn("CRL is missing", self.run_to_end("--check")[2])

    def refused(self, text):
        code, out, err = self.run_to_end()
        self.assertEqual(code, 1)
        self.assertIn(text, err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertFalse(os.path.exists(self.dir + "/port"))

    def test_refusals(self):
        self.write(CERT=f"{self.certs}/alice/cert.pem", KEY=f"{self.certs}/alice/key.pem")
        self.refused("needs one of kind site")
        self.write(GRID="other")
        self.refused("is for grid example, GRID is other")
        self.write()
        os.chmod(self.dir + "/key.pem", 0o644)
        self.refused("key.pem")
        os.chmod(self.dir + "/key.pem", 0o600)
        self.write("PROBELEVEL 8\n")
        self.refused("level 8 never starts")
        self.write(STATEDIR="probe.cfg")
        self.refused("is not a directory")
        busy = socket.create_server(("127.0.0.1", 0))
        self.write(LISTEN=f"127.0.0.1:{busy.getsockname()[1]}")
        self.refused("in use")
        busy.close()

    def test_fatal_inside_start(self):
        self.write("PROBELEVEL 7\n")
        process = self.spawn()
        self.assertEqual(process.wait(DEADLINE_S), 1)
        self.assertIn("level 7 stops at once", self.log())
        self.assertIn("probe stopped", self.log())

    def test_second_instance(self):
        process = self.start()
        code, out, err = self.run_to_end()
        self.assertEqual(code, 1)
        self.assertRegex(err, rf"runs already on this state \(pid {process.pid} holds .*daemon-probe.pid\)")
        self.assertTrue(os.path.exists(self.dir + "/port"))
        self.assertTrue(os.path.exists(self.dir + "/probe.sock"))
        process.kill()
        process.wait()
        self.stop(self.start())  # a killed one leaves no lock behind

    def test_reload(self):
        process = self.start()
        self.write("PROBELEVEL 3\n")
        self.wait_log(r"probe reloaded from=1 to=3")  # by itself
        os.rename(self.dir + "/log", self.dir + "/log.1")
        process.send_signal(signal.SIGHUP)
        self.wait_log(r"log opened")
        self.wait_log(r"probe reloaded from=3 to=3")
        for extra, keys, text in (("PROBELEVEL 4\nNONSENSE 1\n", {}, "unknown parameter NONSENSE"),
                                  ("PROBELEVEL 9\n", {}, "level 9 cannot be reached"),
                                  ("PROBELEVEL 5\n", {"LISTEN": "127.0.0.1:1"},
                                   "LISTEN cannot change while the program runs")):
            self.write(extra, **keys)
            self.wait_log(r"error daemon configuration_refused .*" + re.escape(text))
        self.assertNotIn("to=4", self.log())
        self.assertNotIn("to=5", self.log())
        self.write("PROBELEVEL 6\nLOGLEVEL debug\n")
        self.wait_log(r"probe reloaded from=3 to=6")
        self.stop(process)

    def test_certificates_are_noticed(self):
        process = self.start()
        ca("crl", self.certs + "/ca")
        shutil.copy2(self.certs + "/ca/crl.pem", self.dir + "/crl.new")
        os.rename(self.dir + "/crl.new", self.dir + "/crl.pem")
        self.wait_log(r"daemon certificates_taken")
        with open(self.dir + "/crl.new", "w") as f:
            f.write("no CRL\n")
        os.rename(self.dir + "/crl.new", self.dir + "/crl.pem")
        self.wait_log(r"error daemon certificates_refused")
        self.assertIsNone(process.poll())
        self.stop(process)

    def test_tells_systemd(self):
        for name in (self.dir + "/notify", "\0nui-test-" + os.path.basename(self.dir)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                s.bind(name)
                s.settimeout(DEADLINE_S)
                env = dict(os.environ, NOTIFY_SOCKET=name.replace("\0", "@"))
                process = self.start(env=env)
                self.assertEqual(s.recv(100), b"READY=1")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(s.recv(100), b"STOPPING=1")
                self.assertEqual(process.wait(DEADLINE_S), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
