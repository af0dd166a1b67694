"""An envelope made without our programs, and calls to a daemon with Google's gRPC.

What a dishonest metascheduler could do: take a job that a user did sign, change it, and hand it to a
site under its own, valid certificate. The site must notice by itself.
"""
import hashlib
import hmac
import subprocess
import sys
import time
import uuid

from .base import ROOT, run
from .layout import GRID

DOMAIN = b"nui-job-v1\0"


class Contract:
    """The messages of proto/nui/v1, generated for Python into a directory of the grid."""

    def __init__(self, directory):
        out = directory / "python"
        out.mkdir(exist_ok=True)
        protos = sorted((ROOT / "proto" / "nui" / "v1").glob("*.proto"))
        run(["protoc", f"--proto_path={ROOT}", f"--python_out={out}", *protos], "protoc")
        if str(out) not in sys.path:
            sys.path.insert(0, str(out))
        from proto.nui.v1 import bank_pb2, common_pb2, local_pb2, meta_pb2
        self.common, self.local, self.meta, self.bank = common_pb2, local_pb2, meta_pb2, bank_pb2


class Forge:
    def __init__(self, grid):
        self.grid = grid
        self.contract = Contract(grid.layout.work)

    def job(self, user, account, script=b"#!/bin/sh\necho forged\n", walltime_s=60):
        now = int(time.time() * 1e6)
        job = self.contract.common.Job(grid=GRID, submitter=f"nui://{GRID}/user/{user}",
                                       uuid=uuid.uuid4().bytes, created_us=now,
                                       expires_us=now + 3600 * 10**6, name="forged", account=account, cost_any=True)
        part = job.components.add(name="main", walltime_us=walltime_s * 10**6, script=script)
        part.reqs.add(tasks=1, procs_per_task=1)
        return job

    def sign(self, user, body):
        """The envelope as `nui submit` makes it, by the openssl command with the user's own key."""
        mine = self.grid.layout.id_dir("user", user)
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", mine / "key.pem"],
                                   input=DOMAIN + body, stdout=subprocess.PIPE, check=True).stdout
        der = subprocess.run(["openssl", "x509", "-in", mine / "cert.pem", "-outform", "DER"],
                             stdout=subprocess.PIPE, check=True).stdout
        return self.contract.common.Envelope(body=body, signature=signature, chain=[der])

    def channel(self, daemon, kind, name, options=()):
        """A TLS channel to a daemon as kind/name, e.g. as the metascheduler; options are grpc's."""
        import grpc
        mine = self.grid.layout.id_dir(kind, name)
        credentials = grpc.ssl_channel_credentials(
            (self.grid.layout.ca / "ca.pem").read_bytes(), (mine / "key.pem").read_bytes(),
            (mine / "cert.pem").read_bytes())
        return grpc.secure_channel(f"localhost:{self.grid.ports[daemon]}", credentials, options)

    def call(self, channel, service, method, request, reply_class, seconds=10):
        """One unary call. Raises grpc.RpcError with the status."""
        stub = channel.unary_unary(f"/{service}/{method}",
                                   request_serializer=lambda m: m.SerializeToString(),
                                   response_deserializer=reply_class.FromString)
        return stub(request, timeout=seconds)

    def hand_over(self, envelope, site, meta="meta", component="main"):
        """The same with a metascheduler's hand-over to the site, by the key that the bank gives it."""
        bank, common = self.contract.bank, self.contract.common
        with self.channel("bank", "meta", meta) as channel:
            key = self.call(channel, "nui.bank.v1.Bank", "HandoverKey", bank.HandoverKeyRequest(),
                            bank.HandoverKeyReply).keys[0]
        parts = [b"nui-handover-v1", GRID.encode(), common.Job.FromString(envelope.body).uuid,
                 hashlib.sha256(envelope.body).digest(), component.encode(), site.encode(), meta.encode(),
                 key.ends_us.to_bytes(8, "big")]
        text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        given = common.Envelope.FromString(envelope.SerializeToString())
        given.handover.CopyFrom(common.HandOver(metascheduler=meta, key=key.key, expires_us=key.ends_us,
                                                mac=hmac.digest(key.secret, text, "sha256")))
        return given

    def submit_to_site(self, site, envelope, grid_job_id="grid.999999", meta="meta", component="main", epoch=0):
        """What the site says to a job that a metascheduler hands it: (accepted, words), or its id."""
        import grpc
        local = self.contract.local
        request = local.SubmitRequest(envelope=envelope, component=component,
                                      grid_job_id=grid_job_id, attempt=1, epoch=epoch)
        with self.channel(site, "meta", meta) as channel:
            try:
                reply = self.call(channel, "nui.local.v1.Local", "Submit", request,
                                  local.SubmitReply)
            except grpc.RpcError as error:
                return False, f"{error.code().name}: {error.details()}"
            return reply.accepted, reply.site_job_id or f"{reply.reason.code}: {reply.reason.text}"

    def as_meta(self, site, method, request, reply_class, meta="meta"):
        """Another call of a site's service as a metascheduler."""
        with self.channel(site, "meta", meta) as channel:
            return self.call(channel, "nui.local.v1.Local", method, request, reply_class)
