"""nui-gate: programs come in by REST. Each answer of the IRI part is held against the published OpenAPI document; what the gate
may do for a user ends where his delegation ends, whatever the gate is asked."""
import base64
import errno
import http.client
import json
import re
import socket
import ssl
import subprocess
import threading
import urllib.request

import jsonschema
from fixture import ROOT, GridCase, main, wait_for
from grid.base import free_ports

SPEC = json.loads((ROOT / "tests" / "data" / "iri" / "openapi.json").read_text())


def schema_of(verb, path, status):
    """Of the published document: the schema of an answer; None: the path is not in it."""
    parts = path.split("?")[0].strip("/").split("/")
    for pattern, verbs in SPEC["paths"].items():
        wanted = pattern.strip("/").split("/")
        if len(wanted) == len(parts) and all(w == p or w.startswith("{") for w, p in zip(wanted, parts)):
            if verb.lower() in verbs:
                answers = verbs[verb.lower()]["responses"]
                content = answers.get(str(status), {}).get("content", {}).get("application/json")
                return content["schema"] if content else {}
    return None


class Gate(GridCase):
    gate = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = cls.grid.ports["http-gate"]
        cls.tokens = {}
        cls.seen = set()  # what of the published document was answered and held against it

    def token(self, who="alice", *options):
        key = (who, *options)
        if key not in self.tokens:
            self.tokens[key] = self.nui(who, "delegate", *options).stdout.strip()
        return self.tokens[key]

    def all(self):
        return self.token("alice", "--jobs", 50, "--max-cost", 100, "-A", "phys")

    def ask(self, verb, path, body=None, token="", status=200, headers=None, raw=False):
        """One request; the answer, of which the schema was checked where it is IRI's."""
        http_ = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        self.addCleanup(http_.close)
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.all()}"
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
        http_.request(verb, path, data, sent)
        reply = http_.getresponse()
        text = reply.read()
        self.reply = reply
        self.assertEqual(status, reply.status, (verb, path, text))
        http_.close()
        if raw or not text:
            return text
        kind = "application/problem+json" if status >= 400 else "application/json"
        self.assertEqual(kind, reply.headers["Content-Type"])
        answer = json.loads(text)
        if status >= 400:
            self.check({"$ref": "#/components/schemas/Problem"}, answer)
            self.assertEqual(status, answer["status"])
        else:
            schema = schema_of(verb, path, status)
            if schema is not None:
                self.check(schema, answer)
                self.seen.add((verb, path))
        return answer

    def check(self, schema, answer):
        jsonschema.Draft202012Validator({**schema, "components": SPEC["components"]},
                                        format_checker=jsonschema.FormatChecker()).validate(answer)

    def get(self, path, **more):
        return self.ask("GET", "/api/v1/" + path, **more)

    def spec(self, **more):
        return {"executable": "/bin/echo", "arguments": ["it's", "done"], "name": "rest", "attributes": {"duration": 60}, **more}

    def submit(self, spec=None, resource="grid", **more):
        return self.ask("POST", f"/api/v1/compute/job/{resource}", spec or self.spec(), **more)["id"]

    def wait(self, job, state="completed"):
        def reached():
            status = self.get(f"compute/status/grid/{job}")["status"]
            return status if status["state"] in (state, "failed", "canceled") else None
        status = wait_for(f"{job} to be {state}", reached, 60, self.grid.layout.log)
        self.assertEqual(state, status["state"], status)
        return status

    def readable(self, name):
        """A gated job's script where its account can read it: a JobSpec names a program at the site."""
        path = self.job_dir() / f"{name}.sh"
        path.write_text(self.gated_script(name).read_text())
        path.chmod(0o755)
        return path

    # ---- the IRI part

    def test_facility_and_status(self):
        facility = self.get("facility")
        self.assertEqual(3, len(facility["site_uris"]))
        self.assertEqual({"alpha", "beta", "gamma"}, {s["id"] for s in self.get("facility/sites")})
        self.assertEqual(["beta"], [s["id"] for s in self.get("facility/sites?offset=1&limit=1")])
        self.assertEqual("alpha", self.get("facility/sites/alpha")["id"])
        self.get("compute/resources")
        resources = {r["id"]: r for r in self.get("status/resources")}
        self.assertEqual({"alpha", "beta", "gamma", "grid"}, set(resources))
        self.assertEqual({"up"}, {r["current_status"] for r in resources.values()})
        self.assertEqual("grid", self.get("status/resources/grid")["id"])
        self.assertEqual([], self.get("status/incidents"))
        self.assertEqual([], self.get("status/events"))
        self.assertEqual([], self.get("task"))
        self.assertEqual([], self.get("status/resources?resource_type=storage"))
        for path in ("facility/sites/delta", "status/resources/delta", "status/incidents/x", "task/1", "nothing", "facility/x/y/z"):
            self.get(path, status=404)
        for path in ("facility/sites?limit=0", "facility/sites?limit=1001", "facility/sites?offset=-1", "facility/sites?limit=x"):
            self.get(path, status=400)
        self.ask("POST", "/api/v1/facility", {}, status=405)

    def test_accounts(self):
        self.assertEqual(["processors"], [c["id"] for c in self.get("account/capabilities")])
        self.assertEqual("processors", self.get("account/capabilities/processors")["id"])
        self.assertEqual(["physics"], [p["id"] for p in self.get("account/projects")])
        self.assertEqual("physics", self.get("account/projects/physics")["id"])
        mine = self.get("account/projects/physics/project_allocations")
        self.assertEqual(["phys"], [a["id"] for a in mine])
        self.assertEqual("100000", mine[0]["entries"][0]["nui.granted"])
        self.assertAlmostEqual(100000 / 3600, mine[0]["entries"][0]["allocation"])
        self.assertEqual("phys", self.get("account/projects/physics/project_allocations/phys")["id"])
        users = self.get("account/projects/physics/project_allocations/phys/user_allocations")
        self.assertEqual(["nui://demo/user/alice"], [u["user_id"] for u in users])
        self.get("account/projects/physics/project_allocations/phys/user_allocations/alice")
        self.get("account/projects/physics/project_allocations/chem", status=404)
        # bob has nothing, and sees nothing of hers
        self.get("account/projects/physics/project_allocations", token=self.token("bob"), status=404)

    def test_a_job_and_its_spec(self):
        spec = self.spec(directory="/tmp", environment={"GREETING": "kia ora", "EMPTY": ""}, stdout_path="out.txt",
                         pre_launch=f"until [ -e {self.job_dir()}/spec.gate ]; do sleep 0.05; done\necho \"$GREETING\"", post_launch="echo after $nui_code", launcher="single",
                         inherit_environment=False,
                         resources={"node_count": 1, "process_count": 2, "processes_per_node": 2, "cpu_cores_per_process": 1,
                                    "exclusive_node_use": False, "memory": 64 << 20},
                         attributes={"duration": 40, "account": "phys", "custom_attributes": {"nui.max_cost": "99.5", "mine": "kept"}})
        del spec["directory"], spec["stdout_path"]  # the output is looked at below
        answer = self.ask("POST", "/api/v1/compute/job/beta", spec)
        self.assertEqual(spec, answer["job_spec"])
        job = answer["id"]
        self.wait(job, "active")
        # As it was given, out of what was signed
        self.assertEqual(spec, self.get(f"compute/status/beta/{job}?include_spec=true")["job_spec"])
        self.open_gate("spec")
        status = self.wait(job)
        self.assertEqual((0, ["beta"]), (status["exit_code"], status["meta_data"]["sites"]))
        self.assertIsNone(self.get(f"compute/status/grid/{job}")["job_spec"])
        out = self.ask("GET", f"/api/v1/nui/jobs/{job}/output", raw=True).decode()
        self.assertEqual("kia ora\nit's done\nafter 0\n", out)
        both = json.loads(self.nui("alice", "status", job, "--json").stdout)
        self.assertEqual("nui://demo/user/alice", both["job"]["submitter"])
        self.settled()
        self.assertEqual(1, len(self.charges(job)))
        # Its place: at beta and the grid, not elsewhere; nobody else's
        self.get(f"compute/status/alpha/{job}", status=404)
        self.get(f"compute/status/grid/{job}", token=self.token("bob"), status=404)
        self.ask("DELETE", f"/api/v1/compute/cancel/grid/{job}", token=self.token("bob"), status=404)
        self.ask("PUT", f"/api/v1/compute/job/grid/{job}", spec, status=409)

    def test_lists_and_cancel(self):
        script = self.readable("rest")
        job = self.submit(self.spec(executable="/bin/sh", arguments=[str(script)], name="gated"), resource="alpha")
        wait_for("the job to begin", lambda: self.began("rest"), 15, self.grid.layout.log)
        self.wait(job, "active")
        self.assertEqual("active", self.get(f"compute/status/alpha/{job}")["status"]["state"])
        found = self.ask("POST", "/api/v1/compute/status/grid", {"name": "gated"})
        self.assertEqual([job], [j["id"] for j in found])
        self.assertEqual([], self.ask("POST", "/api/v1/compute/status/beta", {"name": "gated"}))
        self.assertEqual([], self.ask("POST", "/api/v1/compute/status/grid", {"name": "other"}))
        self.ask("DELETE", f"/api/v1/compute/cancel/alpha/{job}", status=204)
        self.wait(job, "canceled")
        self.assertEqual([], self.ask("POST", "/api/v1/compute/status/grid", {"name": "gated"}))
        self.assertEqual(1, len(self.ask("POST", "/api/v1/compute/status/grid?historical=true", {"name": "gated"})))

    def test_specs_that_cannot_be(self):
        for more, status, words in (
                ({"executable": None}, 422, "executable"),
                ({"executable": 3}, 422, "executable"),
                ({"colour": "red"}, 422, "no field 'colour'"),
                ({"launcher": "mpirun"}, 501, "launcher 'mpirun'"),
                ({"container": {"image": "x"}}, 501, "container"),
                ({"arguments": [1]}, 422, "arguments"),
                ({"environment": {"A=B": "c"}}, 422, "environment"),
                ({"resources": {"process_count": 0}}, 422, "process_count"),
                ({"resources": {"node_count": 2, "process_count": 5, "processes_per_node": 2}}, 422, "5 is not node_count 2"),
                ({"resources": {"gpus": 2}}, 422, "no field 'gpus'"),
                ({"attributes": {"duration": "1h"}}, 422, "duration"),
                ({"attributes": {"custom_attributes": {"nui.colour": "red"}}}, 422, "nui.colour"),
                ({"attributes": {"custom_attributes": {"nui.max_cost": "much"}}}, 422, "nui.max_cost")):
            with self.subTest(more):
                answer = self.ask("POST", "/api/v1/compute/job/grid", self.spec(**more), status=status)
                self.assertIn(words, answer["detail"])
        self.ask("POST", "/api/v1/compute/job/delta", self.spec(), status=404)
        self.ask("POST", "/api/v1/compute/job/grid", b"{", status=400)
        self.ask("POST", "/api/v1/compute/job/grid", [], status=422)
        self.ask("POST", "/api/v1/compute/job/grid", b'{"name":"' + b"x" * (1 << 20) + b'"}', status=413)

    # ---- what the gate may do

    def test_who_asks(self):
        good = self.token()
        self.get("facility", token=None, status=401)
        self.assertIn("Bearer", self.reply.headers["WWW-Authenticate"])
        delegation, secret = good.split(".")
        for bad, words in ((delegation, "none of nui delegate"), (f"{delegation}.", "secret"),
                           (f"{delegation}.{'A' if secret[0] != 'A' else 'B'}{secret[1:]}", "secret"),
                           (f"{delegation}.{self.token('bob').split('.')[1]}", "secret"),
                           (f"{delegation[:40]}.{secret}", "not good"),
                           ("x" * 13000, "at most"),
                           (self.token("alice", "--gate", "other"), "it is for nui://demo/gate/other")):
            with self.subTest(bad[:50]):
                self.assertIn(words, self.get("facility", token=bad, status=401)["detail"])
        flipped = bytearray(base64.urlsafe_b64decode(delegation + "=" * (-len(delegation) % 4)))
        flipped[20] ^= 1
        forged = base64.urlsafe_b64encode(bytes(flipped)).decode().rstrip("=")
        self.get("facility", token=f"{forged}.{secret}", status=401)
        self.get("facility", token=good)

    def test_only_what_was_delegated(self):
        look, change = self.token("alice", "--look"), self.token()
        self.assertEqual("nui://demo/user/alice", self.get("nui/whoami", token=look)["identity"])
        job = self.submit()
        for token, words in ((look, "lets the gate sign no job"), (change, "lets the gate sign no job")):
            self.assertIn(words, self.ask("POST", "/api/v1/compute/job/grid", self.spec(), token=token, status=403)["detail"])
        # Looking only: what would change something is refused by who is asked, not by the gate
        self.assertIn("for looking only", self.ask("DELETE", f"/api/v1/nui/jobs/{job}", token=look, status=403)["detail"])
        self.assertIn("for looking only", self.ask("POST", f"/api/v1/nui/jobs/{job}/hold", {"held": True}, token=look, status=403)["detail"])
        self.wait(job)
        # Bounds of what the gate may sign
        two = self.token("alice", "--jobs", 2, "--max-cost", 70, "-A", "phys", "--sites", "alpha,gamma")
        def refused(spec, words, resource="grid"):
            self.assertIn(words, self.ask("POST", f"/api/v1/compute/job/{resource}", spec, token=two, status=403)["detail"])
        refused(self.spec(attributes={"duration": 60, "custom_attributes": {"nui.max_cost": "70.1"}}), "may cost more than the delegation's 70")
        refused(self.spec(attributes={"account": "chem"}), "does not name account 'chem'")
        refused(self.spec(), "a site that the delegation does not name", "beta")
        left = [self.submit(token=two, resource="gamma") for _ in range(2)]  # what was refused took no number
        for job in left:
            self.wait(job)

    def test_numbers_end(self):
        two = self.token("alice", "--jobs", 2, "--max-cost", 70, "-A", "phys", "--sites", "alpha,gamma")
        first = self.submit(token=two, headers={"Idempotency-Key": "one"})
        self.assertEqual(first, self.submit(token=two, headers={"Idempotency-Key": "one"}))
        self.assertIn("for another request", self.ask("POST", "/api/v1/compute/job/grid", self.spec(name="other"), token=two, status=409,
                                                      headers={"Idempotency-Key": "one"})["detail"])
        self.grid.daemons["gate"].kill()
        self.grid.daemons["gate"].start()
        self.assertEqual(first, self.submit(token=two, headers={"Idempotency-Key": "one"}))
        second = self.submit(token=two)
        self.assertNotEqual(first, second)
        answer = self.ask("POST", "/api/v1/compute/job/grid", self.spec(), token=two, status=422)
        self.assertIn("is for 2 jobs, and all were signed", answer["detail"])
        for job in (first, second):
            self.assertIn(self.wait(job)["meta_data"]["sites"], (["alpha"], ["gamma"]))
        # A gate that lost its memory, or lies about it, has no third one either: the same uuid is the same job
        self.grid.daemons["gate"].stop()
        for file in (self.grid.layout.state / "gate").glob("gate.sqlite*"):
            file.unlink()
        self.grid.daemons["gate"].start()
        self.tokens.clear()  # the others' numbers are forgotten, too
        again = self.ask("POST", "/api/v1/compute/job/grid", self.spec(name="third"), token=two, status=409)
        self.assertNotIn("id", again)

    def test_y_revoked_user(self):
        grid = self.grid
        token = self.token("bob")
        self.get("facility", token=token)
        grid.nui_ca("revoke", grid.layout.ca, "user", "bob")
        wait_for("the gate to know of it", lambda: self.bob_is_out(token), 60, grid.layout.log)

    def bob_is_out(self, token):
        http_ = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        http_.request("GET", "/api/v1/facility", headers={"Authorization": f"Bearer {token}"})
        reply = http_.getresponse()
        text = reply.read()
        http_.close()
        return reply.status == 401 and b"revoked" in text

    # ---- Nui's own part

    def test_the_contract_as_json(self):
        document = self.ask("GET", "/openapi.json", token=None)
        self.assertEqual("3.1.0", document["openapi"])

        def holds(verb, path, pattern, **more):
            answer = self.ask(verb, path, **more)
            schema = document["paths"][pattern][verb.lower()]["responses"]["2XX"]["content"]["application/json"]["schema"]
            jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(answer)
            return answer
        own = "/api/v1/nui/"
        sites = holds("GET", own + "sites", own + "sites")["sites"]
        self.assertEqual(["alpha", "beta", "gamma"], [s["name"] for s in sites])
        made = holds("POST", own + "jobs", own + "jobs", status=201, body={"job": self.pair()})
        job = made["grid_job_id"]
        self.assertEqual(job, holds("GET", f"{own}jobs/{job}", own + "jobs/{arg1}")["grid_job_id"])
        self.wait(job)
        status = holds("GET", f"{own}jobs/{job}", own + "jobs/{arg1}")
        self.assertEqual({"alpha", "beta"}, {c["site"] for c in status["components"]})
        self.assertEqual("right\n", self.ask("GET", f"{own}jobs/{job}/output?component=right", raw=True).decode())
        page = holds("GET", own + "jobs?ended=true&limit=1", own + "jobs")
        self.assertEqual(1, len(page["jobs"]))
        holds("GET", f"{own}jobs?ended=true&limit=1&before={page['first']}", own + "jobs")
        estimate = holds("POST", own + "estimate", own + "estimate", body={"job": self.pair()})
        self.assertTrue(estimate["candidates"][0]["feasible"])
        row = holds("GET", own + "balance?account=phys", own + "balance")["balances"][0]
        self.assertEqual("100000000000", row["granted_micro"])
        self.assertTrue(holds("GET", own + "statement?account=phys", own + "statement")["lines"])
        holds("GET", own + "usage?by=user,site", own + "usage")
        for path in ("holds", "quotes", "grants", "licences"):
            holds("GET", own + path, own + path)
        self.ask("GET", own + "jobs?colour=red", status=400)
        self.ask("GET", own + "jobs?limit=many", status=400)
        self.ask("POST", own + "jobs", {"job": {"colour": 1}}, status=400)
        self.ask("POST", own + "jobs", {}, status=400)

    def pair(self):
        part = {"walltime_us": str(20 * 10**6), "reqs": [{"tasks": 1}]}
        return {"name": "pair", "account": "phys", "components": [
            {**part, "name": side, "sites": [site], "script": base64.b64encode(f"#!/bin/sh\necho {side}\n".encode()).decode()}
            for side, site in (("left", "alpha"), ("right", "beta"))]}

    def test_what_a_user_signed(self):
        """The whole envelope passes; the gate needs no number for it, and cannot change it."""
        script = self.readable("signed")
        done = self.submit(self.spec(executable=str(script)))
        envelope = self.ask("POST", f"/api/v1/nui/jobs/{done}/renew", {})["envelope"]
        # Signed by the gate before: under a delegation without numbers it is the same job again
        again = self.ask("POST", "/api/v1/nui/jobs", {"envelope": envelope}, token=self.token(), status=201)
        self.assertEqual(done, again["grid_job_id"])
        body = bytearray(base64.b64decode(envelope["body"]))
        body[-1] ^= 1
        changed = {**envelope, "body": base64.b64encode(bytes(body)).decode()}
        self.ask("POST", "/api/v1/nui/jobs", {"envelope": changed}, status=401)
        self.ask("POST", "/api/v1/nui/jobs", {"envelope": {**envelope, "gate_delegation": ""}}, status=401)
        self.open_gate("signed")
        self.wait(done)

    # ---- events, repetition, limits

    def events(self, job, **headers):
        """Events of a job until its end, as (id, state)."""
        http_ = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        http_.request("GET", f"/api/v1/nui/jobs/{job}/events", headers={"Authorization": f"Bearer {self.all()}", **headers})
        reply = http_.getresponse()
        self.addCleanup(http_.close)
        self.assertEqual((200, "text/event-stream"), (reply.status, reply.headers["Content-Type"]))
        found = []
        for block in reply.read().decode().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
            if lines:
                found.append((lines["id"], json.loads(lines["data"])["state"]))
        return found

    def test_events(self):
        script = self.readable("events")
        job = self.submit(self.spec(executable="/bin/sh", arguments=[str(script)]))
        wait_for("the job to begin", lambda: self.began("events"), 15, self.grid.layout.log)
        results = []
        readers = [threading.Thread(target=lambda: results.append(self.events(job))) for _ in range(3)]
        for reader in readers:
            reader.start()
        def watched():
            text = self.metrics()
            return "nui_gate_streams 3" in text
        wait_for("three streams to be open", watched, 10, self.grid.layout.log)
        self.open_gate("events")
        for reader in readers:
            reader.join(120)
        self.assertEqual(3, len(results))
        for found in results:
            self.assertEqual("GRID_COMPLETED", found[-1][1])
            self.assertEqual(sorted(found, key=lambda e: int(e[0])), found)
        self.assertEqual("GRID_COMPLETED", self.events(job)[-1][1])
        self.get("nui/jobs/grid.999999/events", status=404)
        wait_for("the streams to be closed", lambda: "nui_gate_streams 0" in self.metrics(), 60, self.grid.layout.log)

    def metrics(self):
        port = re.findall(r" metrics listen=\S+ port=(\d+)", self.grid.daemons["gate"].log.read_text())[-1]
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": "text/plain"})
        with urllib.request.urlopen(asked) as reply:
            return reply.read().decode()

    def test_etag(self):
        self.get("account/capabilities")
        tag = self.reply.headers["ETag"]
        self.assertEqual(b"", self.ask("GET", "/api/v1/account/capabilities", headers={"If-None-Match": tag}, status=304, raw=True))
        self.get("account/capabilities", headers={"If-None-Match": '"other"'})

    def test_metrics(self):
        self.get("facility")
        self.get("nothing", status=404)
        text = self.metrics()
        for name in ('nui_gate_requests_total{code="2xx"}', 'nui_gate_requests_total{code="4xx"}', "nui_gate_request_seconds_count",
                     "nui_gate_connections", 'nui_build_info{program="nui-gate"'):
            self.assertIn(name, text)
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
        self.assertEqual((0, ""), (done.returncode, done.stdout + done.stderr))

    def test_hostile_requests(self):
        for data, answer in ((b"GET /api/v1/facility HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + b"A" * 70000 + b"\r\n\r\n", b" 4"),
                             (b"GET /" + b"a/" * 500 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b" 404"),
                             (b"GET /%00%ff%fe HTTP/1.1\r\nHost: x\r\n\r\n", b" 404"),
                             (b"PATCH /api/v1/facility HTTP/1.1\r\nHost: x\r\n\r\n", b" 405")):
            with self.subTest(data[:40]), socket.create_connection(("127.0.0.1", self.port), 30) as s:
                try:
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                    said = s.recv(200)[:15]
                except OSError as cut:  # refused before all of it was read
                    self.assertIn(cut.errno, (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN))
                    self.assertGreater(len(data), 65536)
                    continue
                self.assertIn(answer, said)
        deep = b"[" * 3000 + b"]" * 3000
        self.ask("POST", "/api/v1/nui/jobs", deep, status=400)
        self.get("facility")

    def test_z_all_of_the_part_was_seen(self):
        """Each path of the published document but the file systems' was answered in its own schema."""
        answered = {(verb, pattern) for verb, path in self.seen for pattern in SPEC["paths"]
                    if schema_of(verb, path, 200) is SPEC["paths"][pattern].get(verb.lower(), {}).get("responses", {}).get("200", {})
                    .get("content", {}).get("application/json", {}).get("schema")}
        for pattern, verbs in SPEC["paths"].items():
            for verb in verbs:
                if "/task/" in pattern or "{event_id}" in pattern or "{incident_id}" in pattern or verb in ("put", "delete"):
                    continue
                self.assertIn((verb.upper(), pattern), answered)


class Silence(GridCase):
    gate = True
    sites = {"alpha": (1, 2), "beta": (1, 2)}

    def test_a_silent_site_is_an_incident(self):
        case = Gate("ask")
        case.grid, case.port, case.tokens, case.seen = self.grid, self.grid.ports["http-gate"], {}, set()
        self.grid.daemons["beta"].kill()
        incident = wait_for("beta to be silent", lambda: case.get("status/incidents", token=case.token()), 90, self.grid.layout.log)
        self.assertEqual(["unplanned"], [i["type"] for i in incident])
        case.get(f"status/incidents/{incident[0]['id']}", token=case.token())
        event = case.get("status/events", token=case.token())[0]
        case.get(f"status/events/{event['id']}", token=case.token())
        self.assertEqual("down", case.get("status/resources/beta", token=case.token())["current_status"])
        self.assertEqual("degraded", case.get("status/resources/grid", token=case.token())["current_status"])
        # Without its metascheduler the gate says so, and comes back by itself
        self.grid.daemons["meta"].kill()
        problem = case.get("nui/jobs", token=case.token(), status=503)
        self.assertIn("refused", problem["detail"])
        self.grid.daemons["meta"].start()
        wait_for("the gate to answer again", lambda: self.answers(case), 60, self.grid.layout.log)

    def check(self, *lines):
        """What the program says of a configuration with these lines; comments, and keys that are said again, go."""
        kept = [line for line in self.grid.layout.config("gate").read_text().splitlines()
                if line.split(" ")[0] not in [said.split(" ")[0].lstrip("-") for said in lines]]
        path = self.grid.layout.etc / "other.cfg"
        path.write_text("\n".join(kept + [line for line in lines if not line.startswith("-")]) + "\n")
        return subprocess.run([self.grid.programs["nui-gate"], "--config", path, "--check"], capture_output=True, text=True)

    def test_b_doors_and_bounds(self):
        grid, gate = self.grid, self.grid.daemons["gate"]
        for lines, words in ((["HTTP 0.0.0.0:8480"], "without TLS only this machine itself is served"), (["HTTP localhost"], "an address and a port"),
                             (["-HTTP"], "neither HTTP nor HTTPS is given"), (["HTTPS 0.0.0.0:8443"], "HTTPS needs HTTPSCERT and HTTPSKEY"),
                             (["-META"], "META is missing"), (["-BANK"], "BANK"), (["HTTPRATE 0"], "HTTPRATE"), (["HTTPCOLOUR red"], "HTTPCOLOUR")):
            done = self.check(*lines)
            self.assertEqual(1, done.returncode, lines)
            self.assertIn(words, done.stderr)
        self.assertEqual(0, self.check("HTTPRATE 5").returncode)

        port, mine = free_ports(1)[0], grid.layout.id_dir("gate", "gate")
        with grid.layout.config("gate").open("a") as config:
            config.write(f"HTTPS 127.0.0.1:{port}\nHTTPSCERT {mine}/cert.pem\nHTTPSKEY {mine}/key.pem\nHTTPRATE 5\nHTTPPERADDRESS 4\n")
        gate.stop()
        gate.start()
        token = self.nui("alice", "delegate", "--look").stdout.strip()
        head = {"Authorization": f"Bearer {token}"}
        http_ = http.client.HTTPSConnection("localhost", port, timeout=600,
                                            context=ssl.create_default_context(cafile=grid.layout.ca / "ca.pem"))
        self.addCleanup(http_.close)
        answers = []
        for _ in range(40):
            http_.request("GET", "/api/v1/account/capabilities", headers=head)
            reply = http_.getresponse()
            answers.append((reply.status, reply.headers["Retry-After"], json.loads(reply.read())))
        self.assertEqual(200, answers[0][0])
        self.assertTrue(answers[0][2][0]["self_uri"].startswith("https://localhost:"))
        self.assertEqual({(200, None), (429, "1")}, {answer[:2] for answer in answers})
        self.assertIn("more than 5 requests a second", next(a[2]["detail"] for a in answers if a[0] == 429))
        # No more connections than that from one address
        socks = [socket.create_connection(("127.0.0.1", grid.ports["http-gate"]), 30) for _ in range(8)]
        open_ = 0
        for s in socks:
            try:
                s.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
                open_ += bool(s.recv(10))
            except OSError:
                pass
        self.assertEqual(4, open_)
        for s in socks:
            s.close()
        # An open stream does not keep it from ending
        self.write("nap.sh", "#!/bin/sh\nsleep 600\n")
        job = grid.submit("alice", "--time", "900", grid.layout.work / "nap.sh")
        stream = http.client.HTTPConnection("127.0.0.1", grid.ports["http-gate"], timeout=600)
        self.addCleanup(stream.close)

        def opened():
            stream.request("GET", f"/api/v1/nui/jobs/{job}/events", headers=head)
            reply = stream.getresponse()
            return reply if reply.status == 200 else reply.read() and None
        reply = wait_for("a stream", opened, 30, grid.layout.log)
        self.assertTrue(gate.stop())
        try:
            self.assertIn(b"event: state", reply.read())
        except http.client.IncompleteRead as cut:
            self.assertIn(b"event: state", cut.partial)
        gate.start()
        self.nui("alice", "cancel", job)

    def test_c_a_stream_ends_with_its_user(self):
        """Last: alice is no more after it."""
        grid = self.grid
        self.write("long.sh", "#!/bin/sh\nsleep 600\n")
        job = grid.submit("alice", "--time", "900", grid.layout.work / "long.sh")
        token = self.nui("alice", "delegate", "--look").stdout.strip()
        http_ = http.client.HTTPConnection("127.0.0.1", grid.ports["http-gate"], timeout=600)
        self.addCleanup(http_.close)
        http_.request("GET", f"/api/v1/nui/jobs/{job}/events", headers={"Authorization": f"Bearer {token}"})
        reply = http_.getresponse()
        self.assertEqual(200, reply.status)
        grid.nui_ca("revoke", grid.layout.ca, "user", "alice")
        text = reply.read()  # to its end, which comes
        self.assertIn(b"event: state", text)
        self.assertNotIn(b"GRID_COMPLETED", text)

    def answers(self, case):
        try:
            return case.get("nui/jobs", token=case.token())
        except AssertionError:
            return None


if __name__ == "__main__":
    main()
