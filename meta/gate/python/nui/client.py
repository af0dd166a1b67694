"""The gate's client: one connection for each request, nothing kept but the token."""
from __future__ import annotations

import asyncio
import base64
import http.client
import json
import random
import ssl
import time
from typing import Any, AsyncIterator, Iterator, Optional, Sequence
from urllib.parse import quote, urlencode, urlsplit

from . import wire
from .errors import Unavailable, error_of
from .job import Job
from .signing import Identity
from .status import Balance, Candidate, Status

TRIES = 5
COST_FACTOR = 2  # so many times the dearest estimate is signed as the most that a job may cost


def _plain(value: Any) -> Any:
    """For JSON: bytes as base64, the rest as it is."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


class Client:
    """A grid, through its gate.

    url: the gate's, "https://gate.example.org:8443". token: of Identity.delegate or nui-delegate(1). identity: with it jobs
    are signed here; without, the gate signs them as far as the token says. timeout: seconds for one request. ca: a PEM file
    with the authority of the gate's certificate; none: the system's.
    """

    def __init__(self, url: str, token: str, *, identity: Optional[Identity] = None, timeout: float = 60,
                 ca: Optional[str] = None):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is no URL of a gate")
        self._host, self._port = parts.hostname, parts.port
        self._tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        self._token, self.identity, self.timeout = token, identity, timeout

    # ---- requests

    def _connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _open(self, verb: str, path: str, body: Optional[bytes] = None, headers: Optional[dict[str, str]] = None,
              timeout: Optional[float] = None) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connect(timeout or self.timeout)
        try:
            connection.request(verb, path, body, {"Authorization": f"Bearer {self._token}", **(headers or {})})
            reply = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unavailable(0, f"the gate {self._host} was not reached: {error}") from None
        if reply.status >= 400:
            text = reply.read()
            connection.close()
            try:
                detail = json.loads(text)["detail"]
            except (ValueError, KeyError, TypeError):
                detail = text.decode(errors="replace")[:300]
            raise error_of(reply.status, detail)
        return connection, reply

    def request(self, verb: str, path: str, body: Any = None, *, key: str = "") -> bytes:
        """One request of the gate's API (nui-gate(8)); what was answered. It is repeated while the gate or what is behind it
        does not answer, a few times, since every request may be: jobs by their uuid or key."""
        data = None if body is None else json.dumps(_plain(body)).encode()
        repeatable = verb != "POST" or not path.endswith("/jobs") or bool(key) or "envelope" in (body or {})
        for left in range(TRIES if repeatable else 1, 0, -1):
            try:
                connection, reply = self._open(verb, path, data, {"Idempotency-Key": key} if key else None)
                try:
                    text = reply.read()
                except (OSError, http.client.HTTPException) as error:
                    raise Unavailable(0, f"the gate's answer was cut: {error}") from None
                finally:
                    connection.close()
                return text
            except Unavailable:
                if left == 1:
                    raise
                time.sleep(random.uniform(0, 0.2 * 2 ** (TRIES - left)))
        raise AssertionError

    def _get(self, path: str, **query: Any) -> Any:
        words = urlencode({name: value for name, value in query.items() if value not in ("", None)})
        return json.loads(self.request("GET", f"/api/v1/nui/{path}{'?' + words if words else ''}"))

    # ---- jobs

    def _envelope(self, identity: Identity, job: Job, question: bool, bound: int = 0) -> dict[str, Any]:
        fields = job.signed_fields(identity.grid, identity.uri, question)
        if bound:
            fields.update(cost_max_micro=bound, cost_default=True)
        return {"keyed": bool(job.key), "envelope": identity.sign("nui-job-v1", wire.encode("Job", fields))}

    def _estimate(self, job: Job) -> dict[str, Any]:
        body = {"envelope": self._envelope(self.identity, job, True)["envelope"]} if self.identity else {"job": self._contract(job)}
        answer: dict[str, Any] = json.loads(self.request("POST", "/api/v1/nui/estimate", body))
        return answer

    @staticmethod
    def _contract(job: Job) -> dict[str, Any]:
        plain: dict[str, Any] = _plain(job.fields())
        return plain

    def estimate(self, job: Job) -> list[Candidate]:
        """When and where it would start, and for how much: the best way first. Nothing is held or promised."""
        return [Candidate.of(one) for one in self._estimate(job)["candidates"]]

    def submit(self, job: Job) -> str:
        """Its id, "grid.42", when the grid has it on disk. With several components it is co-allocated.

        Signed here when the client has an identity: for at most job.max_cost, or twice the dearest estimate. Otherwise by
        the gate, within the token's delegation (Denied: it does not reach so far). Conflict: no funds; Invalid: no site can
        ever run it, or the bound is below the price.
        """
        if not self.identity:
            answer = self.request("POST", "/api/v1/nui/jobs", {"job": self._contract(job)}, key=job.key)
        else:
            bound = 0
            if job.max_cost is None:
                bound = COST_FACTOR * int(self._estimate(job)["price_most_micro"])
            answer = self.request("POST", "/api/v1/nui/jobs", self._envelope(self.identity, job, False, bound))
        ident: str = json.loads(answer)["grid_job_id"]
        return ident

    def status(self, job: str) -> Status:
        """How it is now. NotFound: there is none, or it is another's."""
        return Status.of(self._get(f"jobs/{quote(job)}"))

    def jobs(self, *, ended: bool = False, page: int = 1000) -> Iterator[Status]:
        """Mine, the newest first, page by page."""
        before = ""
        while True:
            answer = self._get("jobs", ended=str(ended).lower(), limit=page, before=before)
            yield from (Status.of(one) for one in reversed(answer["jobs"]))
            before = answer["first"]
            if before in ("0", "1") or not (answer["more"] or len(answer["jobs"]) >= page):
                return

    def cancel(self, job: str) -> bool:
        """False: it had ended before."""
        cancelled: bool = json.loads(self.request("DELETE", f"/api/v1/nui/jobs/{quote(job)}"))["cancelled"]
        return cancelled

    def hold(self, job: str, held: bool = True) -> None:
        """It does not start; held=False: it may again."""
        self.request("POST", f"/api/v1/nui/jobs/{quote(job)}/hold", {"held": held})

    # ---- what comes of it

    def _stream(self, job: str, timeout: Optional[float]) -> Iterator[Status]:
        """Its states by one stream, until that ends."""
        connection, reply = self._open("GET", f"/api/v1/nui/jobs/{quote(job)}/events", timeout=timeout or 40)
        try:
            for line in reply:
                if line.startswith(b"data: "):
                    yield Status.of(json.loads(line[6:]))
        except (OSError, http.client.HTTPException):
            return  # cut: whoever watches comes again
        finally:
            connection.close()

    def watch(self, job: str, *, timeout: Optional[float] = None) -> Iterator[Status]:
        """Its state now and each that it comes to, until it has ended; a lost connection is made again. TimeoutError after
        so many seconds."""
        limit = None if timeout is None else time.monotonic() + timeout
        last: Optional[Status] = None
        failures = 0
        while True:
            left = None if limit is None else limit - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"{job} has not ended after {timeout} s")
            try:
                for status in self._stream(job, min(left, 40) if left else None):
                    failures = 0
                    if status != last:
                        yield status
                    last = status
                    if status.ended:
                        return
                    if limit is not None and time.monotonic() >= limit:
                        break
            except Unavailable:
                failures += 1
                if failures >= 10:
                    raise
                time.sleep(random.uniform(0, min(5, 0.1 * 2 ** failures)))

    def wait(self, job: str, *, timeout: Optional[float] = None) -> Status:
        """How it ended. TimeoutError after so many seconds."""
        for status in self.watch(job, timeout=timeout):
            if status.ended:
                return status
        raise AssertionError

    async def events(self, job: str, *, timeout: Optional[float] = None) -> AsyncIterator[Status]:
        """As watch, for asyncio: `async for status in grid.events(job)`."""
        states = self.watch(job, timeout=timeout)

        def following() -> Optional[Status]:
            return next(states, None)
        while (status := await asyncio.to_thread(following)) is not None:
            yield status

    def output(self, job: str, *, component: str = "", stream: str = "stdout") -> bytes:
        """What it wrote until now: stream "stdout" or "stderr". Conflict: it has no site yet."""
        return b"".join(self._parts(f"jobs/{quote(job)}/output", component=component, stream=stream))

    def _parts(self, where: str, **query: str) -> Iterator[bytes]:
        """8 MiB at a time, as the gate gives it."""
        offset = 0
        while True:
            words = urlencode({**{name: value for name, value in query.items() if value}, "offset": offset})
            part = self.request("GET", f"/api/v1/nui/{where}?{words}")
            yield part
            offset += len(part)
            if len(part) < 8 << 20:
                return

    def files(self, job: str, *, component: str = "") -> dict[str, int]:
        """The files in its directory at the site, and their bytes."""
        return {one["path"]: int(one["bytes"]) for one in self._get(f"jobs/{quote(job)}/files", component=component)["files"]}

    def fetch(self, job: str, path: str, *, component: str = "") -> bytes:
        """One of them, whole. NotFound: there is none."""
        return b"".join(self._parts(f"jobs/{quote(job)}/files", path=path, component=component))

    # ---- the grid and the bank

    def balance(self, account: str = "") -> list[Balance]:
        """Accounts that I may see, or that one."""
        return [Balance.of(one) for one in self._get("balance", account=account)["balances"]]

    def sites(self) -> Sequence[dict[str, Any]]:
        """The sites as they report: the contract's SiteState as JSON (moments are microseconds since 1970)."""
        sites: Sequence[dict[str, Any]] = self._get("sites")["sites"]
        return sites

    def whoami(self) -> dict[str, Any]:
        """Who I am here, and what the token allows: identity, expires, change, jobs_max, cost_max_micro, accounts, sites."""
        mine: dict[str, Any] = self._get("whoami")
        return mine
