"""What both pairings share: generated messages, certificates, programs of ours as children."""
import os
import subprocess
import sys
import tempfile

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Setup:
    """Certificates and generated Python messages in a folder that goes away."""

    def __init__(self, bindir):
        self.bindir = bindir
        self.tmp = tempfile.TemporaryDirectory(prefix="nui-interop-")
        self.dir = self.tmp.name
        subprocess.run([os.path.join(bindir, "interop_certs"), self.dir], check=True)
        subprocess.run(["protoc", "--proto_path=" + ROOT, "--python_out=" + self.dir,
                        os.path.join(ROOT, "tests/interop/echo.proto")], check=True)
        sys.path.insert(0, os.path.join(self.dir, "tests", "interop"))
        import echo_pb2
        self.pb = echo_pb2

    def read(self, name):
        with open(os.path.join(self.dir, name), "rb") as f:
            return f.read()

    def channel(self, port, who="alice", ca="ca", options=()):
        creds = grpc.ssl_channel_credentials(
            self.read(ca + ".pem"),
            self.read(who + ".key") if who else None,
            self.read(who + ".pem") if who else None)
        return grpc.secure_channel(
            "127.0.0.1:%d" % port, creds,
            options=[("grpc.ssl_target_name_override", "localhost"),
                     ("grpc.max_send_message_length", 16 << 20),
                     ("grpc.max_receive_message_length", 16 << 20),
                     ("grpc.use_local_subchannel_pool", 1)] + list(options))

    def child(self, program, *args):
        return subprocess.Popen([os.path.join(self.bindir, program), self.dir, *args],
                                stdout=subprocess.PIPE, text=True)


class Cases:
    """Runs functions named test_*, prints a line for each, and says how it went."""

    def __init__(self):
        self.failed = 0

    def run(self, setup, table):
        import traceback
        for name, fn in sorted(table.items()):
            if not name.startswith("test_"):
                continue
            try:
                fn(setup)
                print("ok", name, flush=True)
            except Exception:
                traceback.print_exc()
                print("FAILED", name, flush=True)
                self.failed += 1
        return 1 if self.failed else 0
