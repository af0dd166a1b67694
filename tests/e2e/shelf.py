"""An HTTP server from and to which tests stage files, which can be slow, stop half way, or refuse."""
import hashlib
import http.server
import json
import random
import threading
import time

SIZE = 3 << 20


class Shelf(http.server.ThreadingHTTPServer):
    """Files by HTTP with ETag and ranges; one that is gated stops half way until its gate is opened, what is
    closed is refused; what is slow takes four seconds. What is posted to hook/NAME is kept in told[NAME]."""
    daemon_threads = True

    def __init__(self, address="127.0.0.1"):
        super().__init__((address, 0), Handler)
        self.files, self.gates, self.seen, self.taken = {}, {}, [], {}
        self.closed, self.half, self.told, self.slow = set(), {}, {}, set()
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a daemon was killed

    def put(self, name, size=SIZE, gated=False):
        data = random.Random(name).randbytes(size)
        self.files[name] = data
        if gated:
            self.gates[name] = threading.Event()
        return self.url(name), hashlib.sha256(data).hexdigest()

    def gate(self, name):
        """What is put there stops half way, which half[name] says."""
        self.gates[name], self.half[name] = threading.Event(), threading.Event()

    def puts(self, name):
        with self.lock:
            return sum(m == "PUT" and n == name for m, n, _ in self.seen)

    def url(self, name):
        return f"http://{self.server_address[0]}:{self.server_port}/{name}"

    def ranges(self, name):
        with self.lock:
            return [r for m, n, r in self.seen if n == name and m == "GET"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def named(self):
        name = self.path.lstrip("/")
        with self.server.lock:
            self.server.seen.append((self.command, name, self.headers.get("Range")))
        data = self.server.files.get(name)
        if data is None:
            self.send_error(404)
        return name, data

    def head(self, code, data, begin=0):
        self.send_response(code)
        self.send_header("Content-Length", str(len(data) - begin))
        self.send_header("ETag", '"%s"' % hashlib.sha256(data).hexdigest()[:16])
        self.send_header("Accept-Ranges", "bytes")
        if code == 206:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.end_headers()

    def do_HEAD(self):
        _, data = self.named()
        if data is not None:
            self.head(200, data)

    def do_GET(self):
        name, data = self.named()
        if data is None:
            return
        begin = 0
        if self.headers.get("Range"):
            begin = int(self.headers["Range"].removeprefix("bytes=").split("-")[0])
        self.head(206 if begin else 200, data, begin)
        gate, half = self.server.gates.get(name), len(data) // 2
        try:
            if gate is not None and not gate.is_set():
                self.wfile.write(data[begin:max(begin, half)])
                self.wfile.flush()
                gate.wait(120)
                begin = max(begin, half)
            while name in self.server.slow and begin < len(data):
                self.wfile.write(data[begin:begin + SIZE // 8])
                self.wfile.flush()
                begin += SIZE // 8
                time.sleep(0.5)
            self.wfile.write(data[begin:])
        except OSError:
            pass

    def do_PUT(self):
        name, size = self.path.lstrip("/"), int(self.headers.get("Content-Length", 0))
        with self.server.lock:
            self.server.seen.append(("PUT", name, None))
        data = self.rfile.read(size // 2)
        if name in self.server.half:
            self.server.half[name].set()
            self.server.gates[name].wait(120)
        data += self.rfile.read(size - len(data))
        if name in self.server.closed:
            self.send_error(403)
        elif len(data) == size:  # else its sender was killed
            with self.server.lock:
                self.server.taken[name] = data
            self.answer(201)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.told.setdefault(self.path.removeprefix("/hook/"), []).append(body)
        self.answer(204)

    def answer(self, code):
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()
