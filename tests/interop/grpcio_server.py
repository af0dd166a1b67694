#!/usr/bin/python3
"""grpcio's server against our client. Argument: the folder with our programs."""
import os
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import interop  # noqa: E402

CODES = {c.value[0]: c for c in grpc.StatusCode}


class Echo(grpc.GenericRpcHandler):
    def __init__(self, pb):
        self.pb = pb
        self.hung = threading.Semaphore(0)

    def service(self, details):
        method = details.method.rsplit("/", 1)[1]
        fn = getattr(self, method.lower(), None)
        if fn is None:
            return None
        make = (grpc.unary_stream_rpc_method_handler if method == "Stream"
                else grpc.unary_unary_rpc_method_handler)
        return make(fn, self.pb.EchoRequest.FromString, self.pb.EchoReply.SerializeToString)

    def echo(self, request, context):
        context.send_initial_metadata((("x-initial", "1"), ("x-initial-bin", b"\0\1")))
        context.set_trailing_metadata((("x-trailing", "2"),))
        return self.pb.EchoReply(text=request.text, data=request.data)

    big = echo

    def fail(self, request, context):
        context.abort(CODES[request.status], request.text)

    def sleep(self, request, context):
        end = time.monotonic() + request.delay_us / 1e6
        while time.monotonic() < end and context.is_active():
            time.sleep(min(0.01, max(0, end - time.monotonic())))
        return self.pb.EchoReply(text=request.text)

    def hang(self, request, context):
        self.hung.release()
        while context.is_active():
            time.sleep(0.01)
        return self.pb.EchoReply()

    def stream(self, request, context):
        for i in range(request.count):
            yield self.pb.EchoReply(number=i, data=bytes(request.bytes_each))
        if request.status:
            context.abort(CODES[request.status], request.text)


def start(s, port=0):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64),
                         options=[("grpc.max_receive_message_length", 4 << 20),
                                  ("grpc.so_reuseport", 1)])
    server.add_generic_rpc_handlers((Echo(s.pb),))
    creds = grpc.ssl_server_credentials([(s.read("alpha.key"), s.read("alpha.pem"))],
                                        s.read("ca.pem"), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:%d" % port, creds)
    server.start()
    return server, port


def test_cases(s):
    server, port = start(s)
    child = s.child("interop_client", "127.0.0.1:%d" % port, "cases")
    out, _ = child.communicate(timeout=120)
    print(out, end="")
    server.stop(0)
    assert child.returncode == 0


def test_restart(s):
    """GOAWAY and a successor that listens already: no call is lost, hangs or ends UNAVAILABLE.
    grpcio itself answers grpc-status 1 to calls that it had accepted, but not begun, when stop()
    came: at most the 16 in flight at each of the three restarts."""
    server, port = start(s)
    child = s.child("interop_client", "127.0.0.1:%d" % port, "load", "3000")
    for line in child.stdout:
        if line.startswith("at ") and int(line.split()[1]) in (500, 1500, 2500):
            successor, again = start(s, port)
            assert again == port
            server.stop(10).wait()
            server = successor
        elif not line.startswith("at "):
            print(" ", line, end="")
            if line.startswith("done="):
                failed = int(line.rsplit("=", 1)[1])
            else:
                assert line.strip() == "1 CANCELLED", line
    child.wait(timeout=60)
    server.stop(0)
    assert failed <= 48, failed


def test_killed(s):
    """kill -9 of the server: calls end UNAVAILABLE, none hangs."""
    served = subprocess.Popen([sys.executable, "-B", __file__, s.bindir, "serve", s.dir])
    path = os.path.join(s.dir, "port")
    end = time.monotonic() + 20
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.02)
    with open(path) as f:
        port = int(f.read())
    child = s.child("interop_client", "127.0.0.1:%d" % port, "load", "540")
    killed = False
    for line in child.stdout:
        if line.startswith("at 500"):
            served.kill()
            served.wait()
            killed = True
        elif not line.startswith("at "):
            print(" ", line, end="")
            assert line.startswith("done=540") or line.strip().startswith("14 "), line
    assert killed and child.wait(timeout=60) == 1


def serve(directory):
    """In a process of its own, to be killed."""
    class Here:
        pass
    s = Here()
    sys.path.insert(0, os.path.join(directory, "tests", "interop"))
    import echo_pb2
    s.pb = echo_pb2
    s.read = lambda name: open(os.path.join(directory, name), "rb").read()
    server, port = start(s)
    with open(os.path.join(directory, "port.new"), "w") as f:
        f.write(str(port))
    os.rename(os.path.join(directory, "port.new"), os.path.join(directory, "port"))
    server.wait_for_termination()


def main():
    if len(sys.argv) == 4 and sys.argv[2] == "serve":
        return serve(sys.argv[3])
    return interop.Cases().run(interop.Setup(sys.argv[1]), globals())


if __name__ == "__main__":
    sys.exit(main())
