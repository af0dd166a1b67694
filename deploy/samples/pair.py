#!/usr/bin/python3
"""One program, two components of a co-allocated job (`left` and `right`) on two clusters.

Each draws ten numbers that the other cannot know. They find each other through NUI_PEERS, know each other by
NUI_SECRET, exchange the numbers over TCP, and both print the same inner product, with the moment each was started.
"""
import hmac
import json
import os
import random
import socket
import time

BEGUN = time.time()
PATIENCE_S = 30


def connect(host, port):
    """The other side may be a moment later than we are."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def line_of(me, body):
    """Anybody can connect to a port: what the other says bears a mark that only the parts of this job can make."""
    text = json.dumps(body)
    mark = hmac.new(os.environ["NUI_SECRET"].encode(), f"{me} {text}".encode(), "sha256").hexdigest()
    return f"{mark} {text}\n"


def body_of(me, line):
    """None: a stranger's."""
    text = line.partition(" ")[2]
    try:
        body = json.loads(text)
    except ValueError:
        return None
    return body if hmac.compare_digest(line.encode(), line_of(me, body).encode()) else None


def meet(stream, me, other, mine):
    """What the other part says, once it has shown who it is."""
    stream.settimeout(PATIENCE_S)
    with stream, stream.makefile("rw") as channel:
        channel.write(line_of(me, mine))
        channel.flush()
        return body_of(other, channel.readline())


def main():
    me = os.environ["NUI_COMPONENT"]
    peers = dict(word.split("=", 1) for word in os.environ["NUI_PEERS"].split())
    numbers = [random.SystemRandom().randrange(1000) for _ in range(10)]
    mine = {"component": me, "site": os.environ["NUI_SITE"], "begun": BEGUN, "numbers": numbers}
    if me == "left":
        port = int(os.environ["NUI_PORT"])
        with socket.create_server(("", port)) as listener:
            listener.settimeout(PATIENCE_S)
            other = None
            while other is None:
                other = meet(listener.accept()[0], me, "right", mine)
    else:
        other = meet(connect(*peers["left"].rsplit(":", 1)), me, "left", mine)
    left, right = (mine, other) if me == "left" else (other, mine)
    for part in (left, right):
        moment = time.strftime("%H:%M:%S", time.localtime(part["begun"]))
        print(f"{part['component']:5} at {part['site']:5} started {moment}"
              f".{int(part['begun'] * 1000) % 1000:03}, drew {part['numbers']}")
    print(f"started within {abs(left['begun'] - right['begun']) * 1000:.0f} ms of each other")
    print("joint result:", sum(a * b for a, b in zip(left["numbers"], right["numbers"])))


main()
