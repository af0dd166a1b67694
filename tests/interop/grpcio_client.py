#!/usr/bin/python3
"""grpcio's client against our server. Argument: the folder with our programs."""
import os
import signal
import sys
import threading
import time

import grpc

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import interop  # noqa: E402

ECHO = "/nui.test.v1.Echo/"
server = {}


def start_server(s, listen="127.0.0.1:0"):
    child = s.child("interop_server", listen)
    port = int(child.stdout.readline().split()[1])
    return child, port


def unary(s, channel, method):
    return channel.unary_unary(ECHO + method, s.pb.EchoRequest.SerializeToString,
                               s.pb.EchoReply.FromString)


def stream(s, channel, method="Stream"):
    return channel.unary_stream(ECHO + method, s.pb.EchoRequest.SerializeToString,
                                s.pb.EchoReply.FromString)


def fails(fn, code, details=None):
    try:
        fn()
    except grpc.RpcError as e:
        assert e.code() == code, (e.code(), e.details())
        assert details is None or e.details() == details, e.details()
        return e
    raise AssertionError("no error where %s was expected" % code)


def stats(s):
    reply = unary(s, server["channel"], "Echo")(s.pb.EchoRequest(count=2))
    return dict(p.split("=") for p in reply.text.split())


def wait_for(what, deadline_s=20):
    end = time.monotonic() + deadline_s
    while not what():
        assert time.monotonic() < end, "waited %d s in vain" % deadline_s
        time.sleep(0.01)


def test_unary(s):
    reply = unary(s, server["channel"], "Echo")(
        s.pb.EchoRequest(text="aloha ā 🌺", data=b"\0\xff", count=1))
    assert reply.text == "aloha ā 🌺" and reply.data == b"\0\xff"
    assert reply.peer == "nui://test/user/alice", reply.peer
    assert unary(s, server["channel"], "Echo")(s.pb.EchoRequest()).text == ""


def test_status(s):
    text = "zu wenig: 5 €, 100 %\nzweite Zeile"
    for code in grpc.StatusCode:
        if code == grpc.StatusCode.OK:
            continue
        fails(lambda: unary(s, server["channel"], "Fail")(
            s.pb.EchoRequest(status=code.value[0], text=text)), code, text)


def test_stream(s):
    n = 0
    for reply in stream(s, server["channel"])(s.pb.EchoRequest(count=1000, bytes_each=5000)):
        assert reply.number == n and len(reply.data) == 5000
        n += 1
    assert n == 1000
    assert list(stream(s, server["channel"])(s.pb.EchoRequest())) == []


def test_slow_reader(s):
    total = 0
    for reply in stream(s, server["channel"])(s.pb.EchoRequest(count=60, bytes_each=100000)):
        total += len(reply.data)
        time.sleep(0.005)
    assert total == 6000000


def test_deadline(s):
    fails(lambda: unary(s, server["channel"], "Hang")(s.pb.EchoRequest(), timeout=0.1),
          grpc.StatusCode.DEADLINE_EXCEEDED)
    fails(lambda: unary(s, server["channel"], "Sleep")(s.pb.EchoRequest(delay_us=5000000),
                                                       timeout=0.05),
          grpc.StatusCode.DEADLINE_EXCEEDED)
    unary(s, server["channel"], "Sleep")(s.pb.EchoRequest(delay_us=1000), timeout=5)
    wait_for(lambda: stats(s)["open"] == "0")


def test_cancel(s):
    before = int(stats(s)["cancelled"])
    call = unary(s, server["channel"], "Hang").future(s.pb.EchoRequest())
    wait_for(lambda: stats(s)["open"] == "1")
    call.cancel()
    wait_for(lambda: int(stats(s)["cancelled"]) == before + 1)
    replies = stream(s, server["channel"])(s.pb.EchoRequest(count=1000000, bytes_each=1000))
    next(replies)
    replies.cancel()
    wait_for(lambda: stats(s)["open"] == "0")


def test_cancel_storm(s):
    hang = unary(s, server["channel"], "Hang")
    for _ in range(25):
        calls = [hang.future(s.pb.EchoRequest()) for _ in range(100)]
        for c in calls:
            c.cancel()
    unary(s, server["channel"], "Echo")(s.pb.EchoRequest())
    wait_for(lambda: stats(s)["open"] == "0")


def test_big(s):
    data = bytes(range(256)) * (4 << 12)
    reply = unary(s, server["channel"], "Big")(s.pb.EchoRequest(data=data))
    assert reply.data == data
    fails(lambda: unary(s, server["channel"], "Big")(s.pb.EchoRequest(data=data * 2)),
          grpc.StatusCode.RESOURCE_EXHAUSTED, "the request is over this method's size limit")
    fails(lambda: unary(s, server["channel"], "Echo")(s.pb.EchoRequest(data=data)),
          grpc.StatusCode.RESOURCE_EXHAUSTED)


def test_metadata(s):
    echo = unary(s, server["channel"], "Echo")
    echo(s.pb.EchoRequest(), metadata=(("x-trace", "abc"), ("x-bytes-bin", b"\0\1\xff")))
    echo(s.pb.EchoRequest(), metadata=(("x-long", "l" * 8000),))
    fails(lambda: echo(s.pb.EchoRequest(), metadata=(("x-long", "l" * 20000),)),
          grpc.StatusCode.RESOURCE_EXHAUSTED)
    echo(s.pb.EchoRequest())


def test_refusals(s):
    fails(lambda: unary(s, server["channel"], "Absent")(s.pb.EchoRequest()),
          grpc.StatusCode.UNIMPLEMENTED, "no such method")
    fails(lambda: unary(s, server["channel"], "Closed")(s.pb.EchoRequest()),
          grpc.StatusCode.PERMISSION_DENIED)
    with s.channel(server["port"], who="op") as channel:
        assert unary(s, channel, "Closed")(s.pb.EchoRequest(text="x")).text == "x"
    fails(lambda: unary(s, server["channel"], "Echo")(s.pb.EchoRequest(text="x" * 1000),
                                                      compression=grpc.Compression.Gzip),
          grpc.StatusCode.UNIMPLEMENTED)
    two = server["channel"].stream_unary(ECHO + "Echo", s.pb.EchoRequest.SerializeToString,
                                         s.pb.EchoReply.FromString)
    fails(lambda: two(iter([s.pb.EchoRequest(), s.pb.EchoRequest()])),
          grpc.StatusCode.UNIMPLEMENTED)
    fails(lambda: two(iter([])), grpc.StatusCode.UNIMPLEMENTED)


def test_certificates(s):
    for who in ("mallory", None):
        with s.channel(server["port"], who=who) as channel:
            fails(lambda: unary(s, channel, "Echo")(s.pb.EchoRequest(), timeout=5),
                  grpc.StatusCode.UNAVAILABLE)


def test_health(s):
    check = server["channel"].unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"") == b"\x08\x01"
    assert check(b"\x0a\x10nui.test.v1.Echo") == b"\x08\x01"
    fails(lambda: check(b"\x0a\x01x"), grpc.StatusCode.NOT_FOUND)


def test_many(s):
    sleep = unary(s, server["channel"], "Sleep")
    calls = [sleep.future(s.pb.EchoRequest(text=str(i), delay_us=i * 7 % 5000))
             for i in range(2000)]
    for i, c in enumerate(calls):
        assert c.result(timeout=30).text == str(i)


def test_restart(s):
    """The successor listens first; 16 threads see no failure."""
    child, port = start_server(s)
    channel = s.channel(port)
    sleep = unary(s, channel, "Sleep")
    sleep(s.pb.EchoRequest())
    failures, done, stop = [], [0], threading.Event()

    def work():
        while not stop.is_set():
            try:
                sleep(s.pb.EchoRequest(delay_us=3000), timeout=20)
                done[0] += 1
            except grpc.RpcError as e:
                failures.append((e.code(), e.details()))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for t in threads:
        t.start()
    for _ in range(3):
        at = done[0]
        wait_for(lambda: done[0] > at + 200)
        successor, _ = start_server(s, "127.0.0.1:%d" % port)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=20) == 0
        child = successor
    at = done[0]
    wait_for(lambda: done[0] > at + 200)
    stop.set()
    for t in threads:
        t.join()
    channel.close()
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=20) == 0
    assert not failures, failures[:5]


def main():
    s = interop.Setup(sys.argv[1])
    child, port = start_server(s)
    server["port"] = port
    server["channel"] = s.channel(port)
    rc = interop.Cases().run(s, globals())
    server["channel"].close()
    child.send_signal(signal.SIGTERM)
    if child.wait(timeout=30) != 0:
        print("FAILED the server's exit:", child.returncode)
        rc = 1
    return rc


if __name__ == "__main__":
    sys.exit(main())
