"""Servers that files are staged from and to, on loopback: web and S3 with faults as told, and a real sshd behind a
relay that can cut the connection."""
import hashlib
import hmac
import http.server
import os
import re
import socket
import ssl
import subprocess
import threading
import urllib.parse

PIECE = 16 << 10


def make_certificate(folder):
    """A certificate for 127.0.0.1 and localhost that is its own authority; its path and its key's."""
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


class File:
    def __init__(self, data, etag=True, modified="Sat, 21 Nov 2026 10:00:00 GMT", ranges=True):
        self.data, self.modified, self.ranges = data, modified, ranges
        self.etag = f'"{hashlib.md5(data).hexdigest()}"' if etag is True else etag


class Fault:
    """What is done to one answer, in place of or beside the file: its status, the connection cut after so many bytes of
    the body, held there until `go` is set, or sent a few bytes at a time."""

    def __init__(self, status=0, cut=None, hold=None, location=None, headers=(), trickle=None):
        self.trickle = trickle  # so many bytes every tenth of a second, until `go` is set
        self.status, self.cut, self.hold, self.location, self.headers = status, cut, hold, location, headers
        self.go = threading.Event()
        self.reached = threading.Event()


class Web(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, certificate=None, handler=None):
        super().__init__(("127.0.0.1", 0), handler or WebHandler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "https" if certificate else "http"
        self.port = self.server_address[1]
        self.files, self.faults = {}, {}
        self.log = []  # (method, path, headers, status)
        self.lock = threading.Lock()
        self.active = self.active_most = 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def url(self, path, host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.port}{path}"

    def fault(self, path, *faults):
        self.faults.setdefault(path, []).extend(faults)
        return faults[0]

    def requests(self, path, method=None):
        with self.lock:
            return [r for r in self.log if r[1].split("?")[0] == path and method in (None, r[0])]

    def handle_error(self, request, client_address):
        pass  # clients go away in these tests

    def close(self):
        self.shutdown()
        self.server_close()


class WebHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def next_fault(self):
        with self.server.lock:
            waiting = self.server.faults.get(self.path.split("?")[0])
            return waiting.pop(0) if waiting else Fault()

    def note(self, status):
        with self.server.lock:
            self.server.log.append((self.command, self.path, dict(self.headers.items()), status))

    def answer(self, status, body=b"", headers=(), fault=None, length=None):
        self.note(status)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.body_send(body, fault or Fault())

    def body_send(self, body, fault):
        for at in range(0, len(body), fault.trickle or len(body) + 1) if fault.trickle else ():
            self.wfile.write(body[at:at + fault.trickle])
            self.wfile.flush()
            if fault.go.wait(0.1):
                self.close_connection = True
                return
        if fault.trickle:
            return
        stops = {len(body)} | {s for s in (fault.cut, fault.hold) if s is not None}
        at = 0
        for stop in sorted(stops):
            while at < min(stop, len(body)):
                self.wfile.write(body[at:min(at + PIECE, stop)])
                at = min(at + PIECE, stop, len(body))
            self.wfile.flush()
            if fault.hold == stop:
                fault.reached.set()
                fault.go.wait(60)
            if fault.cut == stop:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return

    def do_GET(self):
        with self.server.lock:
            self.server.active += 1
            self.server.active_most = max(self.server.active_most, self.server.active)
        try:
            self.get(self.next_fault())
        finally:
            with self.server.lock:
                self.server.active -= 1

    do_HEAD = do_GET

    def get(self, fault):
        if fault.status:
            headers = list(fault.headers) + ([("Location", fault.location)] if fault.location else [])
            return self.answer(fault.status, b"words of an error", headers)
        file = self.server.files.get(self.path.split("?")[0])
        if not file:
            return self.answer(404, b"no such file")
        self.file_send(file, fault)

    def file_send(self, file, fault):
        headers = [("Last-Modified", file.modified)] if file.modified else []
        if file.etag:
            headers.append(("ETag", file.etag))
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        if wanted and file.ranges and condition in (None, file.etag, file.modified):
            begin = int(wanted[1])
            end = min(int(wanted[2] or len(file.data)), len(file.data) - 1)
            if begin >= len(file.data):
                return self.answer(416, b"", [("Content-Range", f"bytes */{len(file.data)}")])
            headers.append(("Content-Range", f"bytes {begin}-{end}/{len(file.data)}"))
            return self.answer(206, file.data[begin:end + 1], headers, fault)
        self.answer(200, file.data, headers, fault)

    def body_take(self, fault=None):
        """What was sent; None when the fault cuts it."""
        left, body = int(self.headers.get("Content-Length", 0)), b""
        while left > 0:
            piece = self.rfile.read(min(left, PIECE))
            if not piece:
                self.close_connection = True
                return None
            body += piece
            left -= len(piece)
            if fault and fault.cut is not None and len(body) >= fault.cut:
                self.note(0)
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return None
            if fault and fault.hold is not None and len(body) >= fault.hold and not fault.go.is_set():
                fault.reached.set()
                fault.go.wait(60)
        return body

    def do_PUT(self):
        fault = self.next_fault()
        body = self.body_take(fault)
        if body is None:
            return
        if fault.status:
            return self.answer(fault.status)
        self.server.files[self.path] = File(body)
        self.answer(201)


# --- S3 ----------------------------------------------------------------------------------------

class S3(Web):
    """Path-style, with the signature of every request computed anew from what arrived."""

    def __init__(self, certificate=None, access="AKEXAMPLE", secret="s3cr3t/+key", region="eu"):
        super().__init__(certificate, S3Handler)
        self.access, self.secret, self.region = access, secret, region
        self.uploads = {}  # id: {number: bytes}
        self.given_up = []


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class S3Handler(WebHandler):
    def signature_wrong(self, body):
        """Why the request is refused; None: it is well signed (AWS Signature Version 4)."""
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if not found:
            return "no signature"
        access, date, region, signed, signature = found.groups()
        stamp = self.headers.get("X-Amz-Date", "")
        if access != self.server.access or region != self.server.region or not stamp.startswith(date):
            return "of another key, region or day"
        names = signed.split(";")
        if "host" not in names or "x-amz-date" not in names or names != sorted(names):
            return "headers"
        path, _, query = self.path.partition("?")
        pairs = sorted(p if "=" in p else p + "=" for p in query.split("&")) if query else []
        payload = self.headers.get("X-Amz-Content-Sha256")
        if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
            return "body"
        canonical = "\n".join([self.command, urllib.parse.quote(urllib.parse.unquote(path), safe="/-._~"),
                               "&".join(pairs)]
                              + [f"{n}:{' '.join(self.headers[n].split())}" for n in names] + ["", signed, payload])
        scope = f"{date}/{region}/s3/aws4_request"
        key = sign(sign(sign(sign(b"AWS4" + self.server.secret.encode(), date), region), "s3"), "aws4_request")
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        return None if hmac.compare_digest(sign(key, text).hex(), signature) else "signature"

    def refused(self, body=b""):
        why = self.signature_wrong(body)
        if why:
            self.answer(403, f"<Error><Code>SignatureDoesNotMatch</Code><Message>{why}</Message></Error>".encode())
        return why is not None

    def query(self):
        return dict(urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True))

    def do_GET(self):
        if not self.refused():
            self.path = urllib.parse.unquote(self.path)
            super().do_GET()

    do_HEAD = do_GET

    def do_PUT(self):
        fault = self.next_fault()
        body = self.body_take(fault)
        if body is None or self.refused(body):
            return
        query = self.query()
        if fault.status:
            return self.answer(fault.status)
        if "uploadId" in query:
            if query["uploadId"] not in self.server.uploads:
                return self.answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
            self.server.uploads[query["uploadId"]][int(query["partNumber"])] = body
        else:
            self.server.files[urllib.parse.unquote(self.path)] = File(body)
        self.answer(200, headers=[("ETag", f'"{hashlib.md5(body).hexdigest()}"')])

    def do_POST(self):
        body = self.body_take()
        if body is None or self.refused(body):
            return
        fault, query, key = self.next_fault(), self.query(), urllib.parse.unquote(self.path.split("?")[0])
        if fault.status:
            return self.answer(fault.status)
        if "uploads" in query:
            name = f"up+{len(self.server.uploads)}/="
            self.server.uploads[name] = {}
            return self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
                               "</InitiateMultipartUploadResult>".encode())
        parts = self.server.uploads.pop(query.get("uploadId"), None)
        told = re.findall(r'<PartNumber>(\d+)</PartNumber><ETag>("[0-9a-f]+")</ETag>', body.decode())
        if parts is None:
            return self.answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        if told != [(str(n), f'"{hashlib.md5(parts[n]).hexdigest()}"') for n in sorted(parts)]:
            return self.answer(200, b"<Error><Code>InvalidPart</Code></Error>")
        self.server.files[key] = File(b"".join(parts[n] for n in sorted(parts)))
        self.answer(200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def do_DELETE(self):
        if not self.refused():
            self.server.given_up.append(self.query().get("uploadId"))
            self.server.uploads.pop(self.query().get("uploadId"), None)
            self.answer(204)


# --- ssh ---------------------------------------------------------------------------------------

SSHD = "/usr/sbin/sshd"


class Sshd:
    """A listener that gives each connection to an sshd of its own, through a relay. cut: bytes from the server, or
    (cut_up) to it, after which the next connection is cut, once."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("host", "other", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(folder, name)], check=True)
        os.rename(os.path.join(folder, "user.pub"), os.path.join(folder, "authorized"))
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self.config = os.path.join(folder, "sshd_config")
        with open(self.config, "w") as f:
            f.write(f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
                    "PasswordAuthentication no\nPermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n"
                    "PidFile none\nLogLevel ERROR\n")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cut = self.cut_up = None
        self.connections = 0
        self.children, self.sockets = [], []
        self.up_bytes = []
        threading.Thread(target=self.accept, daemon=True).start()

    def known_hosts(self, key="host"):
        path = os.path.join(self.folder, "known_hosts_" + key)
        with open(os.path.join(self.folder, key + ".pub")) as f, open(path, "w") as out:
            out.write(f"[127.0.0.1]:{self.port} " + " ".join(f.read().split()[:2]) + "\n")
        return path

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            ours, theirs = socket.socketpair()
            self.sockets += [client, ours]
            with open(os.path.join(self.folder, "sshd.log"), "ab") as log:
                self.children.append(subprocess.Popen([SSHD, "-i", "-e", "-f", self.config], stdin=theirs,
                                                      stdout=theirs, stderr=log))
            theirs.close()
            cut, self.cut = self.cut, None
            cut_up, self.cut_up = self.cut_up, None
            self.up_bytes.append(0)
            number = len(self.up_bytes) - 1
            threading.Thread(target=self.relay, args=(ours, client, cut, None), daemon=True).start()
            threading.Thread(target=self.relay, args=(client, ours, cut_up, number), daemon=True).start()

    def relay(self, source, target, cut, number):
        moved = 0
        try:
            while piece := source.recv(PIECE):
                moved += len(piece)
                if number is not None:
                    self.up_bytes[number] = moved
                if cut is not None and moved > cut:
                    break
                target.sendall(piece)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for child in self.children:
            child.terminate()
            child.wait()
        for s in self.sockets:
            s.close()
