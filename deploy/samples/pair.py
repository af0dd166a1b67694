#!/usr/bin/python3
"""One program, two components of a co-allocated job (`left` and `right`) on two clusters.

Each draws ten numbers that the other cannot know. They find each other through NUI_PEERS, exchange
the numbers over TCP, and both print the same inner product, with the moment each was started.
"""
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


def main():
    me = os.environ["NUI_COMPONENT"]
    peers = dict(word.split("=", 1) for word in os.environ["NUI_PEERS"].split())
    numbers = [random.SystemRandom().randrange(1000) for _ in range(10)]
    mine = {"component": me, "site": os.environ["NUI_SITE"], "begun": BEGUN, "numbers": numbers}
    if me == "left":
        port = int(os.environ["NUI_PORT"])
        with socket.create_server(("", port)) as listener:
            listener.settimeout(PATIENCE_S)
            stream, _ = listener.accept()
    else:
        stream = connect(*peers["left"].rsplit(":", 1))
    stream.settimeout(PATIENCE_S)
    with stream, stream.makefile("rw") as channel:
        channel.write(json.dumps(mine) + "\n")
        channel.flush()
        other = json.loads(channel.readline())
    left, right = (mine, other) if me == "left" else (other, mine)
    for part in (left, right):
        moment = time.strftime("%H:%M:%S", time.localtime(part["begun"]))
        print(f"{part['component']:5} at {part['site']:5} started {moment}"
              f".{int(part['begun'] * 1000) % 1000:03}, drew {part['numbers']}")
    print(f"started within {abs(left['begun'] - right['begun']) * 1000:.0f} ms of each other")
    print("joint result:", sum(a * b for a, b in zip(left["numbers"], right["numbers"])))


main()
