"""Metrics: a real Prometheus scrapes a real grid in both ways, the shipped rules fire when they should and not in a quiet
time, and the boards ask for what there is."""
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from fixture import ROOT, GridCase, layout, main, wait_for
from grid.base import Process, free_ports

SHIPPED = ROOT / "deploy" / "prometheus"
# Of daemons that this test asks at their own port, with a certificate.
REMOTE = ("bank", "beta")


class Metrics(GridCase):
    sites = {"alpha": (1, 2), "beta": (1, 2)}
    prometheus = None

    @classmethod
    def fund(cls):
        super().fund()
        place = cls.grid.layout.state / "prometheus"
        place.mkdir()
        cls.port = free_ports(1)[0]
        cls.port_of = {}
        cls.configure(place)
        cls.prometheus = Process("prometheus", cls.grid.layout.run / "prometheus.process",
                                 cls.grid.layout.log / "prometheus.stderr")
        cls.addClassCleanup(cls.prometheus.stop)
        cls.prometheus.start(["prometheus", f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/data",
                              f"--web.listen-address=127.0.0.1:{cls.port}"])

    @classmethod
    def plain_port(cls, name):
        """Of the daemon that runs now."""
        text = cls.grid.daemons[name].log.read_text()
        return re.findall(r" metrics listen=\S+ port=(\d+)", text)[-1]

    @classmethod
    def configure(cls, place):
        """What is shipped, faster: rules without their patience, scrapes of a fifth of a second."""
        (place / "alerts.yml").write_text(re.sub(r"for: \w+", "for: 0s", (SHIPPED / "alerts.yml").read_text()))
        names = ("bank", "meta", "alpha", "beta")
        cls.port_of = {name: cls.grid.ports[name] if name in REMOTE else cls.plain_port(name) for name in names}
        mine = cls.grid.layout.id_dir("operator", layout.OPERATOR)
        (place / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "500ms", "scrape_timeout": "400ms", "evaluation_interval": "500ms"},
            "rule_files": ["alerts.yml"],
            "scrape_configs": [
                {"job_name": "nui", "static_configs": [
                    {"targets": [f"127.0.0.1:{cls.port_of[n]}"], "labels": {"daemon": n}} for n in names if n not in REMOTE]},
                {"job_name": "nui-remote", "scheme": "https",
                 "tls_config": {"ca_file": f"{cls.grid.layout.ca}/ca.pem", "cert_file": f"{mine}/cert.pem",
                                "key_file": f"{mine}/key.pem"},
                 "static_configs": [{"targets": [f"127.0.0.1:{cls.port_of[n]}"], "labels": {"daemon": n}} for n in REMOTE]},
            ]}))  # JSON is YAML

    def api(self, path, **query):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}",
                                        timeout=600) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {query}: {error.read().decode()}") from None
        except OSError:
            return None

    def value(self, query):
        """Of the one sample there is; None."""
        data = self.api("query", query=query)
        return float(data["result"][0]["value"][1]) if data and len(data["result"]) == 1 else None

    def firing(self):
        data = self.api("alerts")
        return {(a["labels"]["alertname"], a["labels"].get("daemon"), a["labels"].get("site"))
                for a in data["alerts"] if a["state"] == "firing"} if data else None

    def wait_value(self, query, wanted):
        wait_for(f"{query} to be {wanted}", lambda: self.value(query) == wanted, 40, self.grid.layout.log)

    def wait_firing(self, *alert):
        wait_for(f"{alert} to fire", lambda: alert in (self.firing() or ()), 60, self.grid.layout.log)

    def wait_over(self, *alert):
        def over():
            now = self.firing()
            return now is not None and alert not in now
        wait_for(f"{alert} to be over", over, 60, self.grid.layout.log)

    def page(self, name, accept, port=None):
        request = urllib.request.Request(f"http://127.0.0.1:{port or self.plain_port(name)}/metrics", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def test_1_pages(self):
        """Both forms are well-formed, and no user, account or job is in any of them."""
        self.nui("alice", "submit", "-t", "60", self.write("one.sh", "#!/bin/sh\nexit 0\n"))
        for name in ("bank", "meta", "alpha", "beta"):
            kind, text = self.page(name, "*/*")
            self.assertTrue(kind.startswith("application/openmetrics-text; version=1.0.0"), kind)
            self.assertTrue(text.endswith("# EOF\n"))
            self.assertNotRegex(text, "alice|bob|phys|grid\\.1|alpha\\.1")
            kind, text = self.page(name, "text/plain")
            self.assertTrue(kind.startswith("text/plain; version=0.0.4"), kind)
            done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
            lint = [line for line in (done.stdout + done.stderr).splitlines() if line]
            self.assertEqual([], lint)
            self.assertEqual(0, done.returncode)

    def test_2_all_is_well(self):
        """Every daemon is up in Prometheus' eyes, by either way; the work is counted; nothing fires."""
        wait_for("six scrapes of each", lambda: self.value('min(count_over_time(up{job=~"nui.*"}[5m]))') and
                 self.value('min(count_over_time(up{job=~"nui.*"}[5m]))') >= 6, 60, self.grid.layout.log)
        self.wait_value('sum(up{job=~"nui.*"})', 4)
        gated = self.gated_script("two")
        ident = self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-n", 2, "-t", "60", gated)
        self.wait_state(ident, ("Running",))
        self.wait_value('sum(nui_jobs{daemon="alpha",state="running"})', 1)
        self.wait_value('nui_grid_jobs{state="running"}', 1)
        self.wait_value('nui_procs{daemon="alpha",state="dedicated"}', 2)
        self.wait_value('slurm_jobs_running{daemon="alpha"}', 1)
        pair = self.grid.submit("alice", "-A", "phys", "-t", "60", "--component", "a:site=alpha,tasks=1",
                                "--component", "b:site=beta,tasks=1", gated)
        self.open_gate("two")
        self.wait_state(ident, ("Completed",))
        self.wait_state(pair, ("Completed",))
        self.wait_value('nui_coalloc_total{result="completed"}', 1)
        self.wait_value('nui_grid_jobs{state="running"}', 0)
        wait_for("two PREPAREs", lambda: (self.value("nui_coalloc_prepare_seconds_count") or 0) >= 2, 40,
                 self.grid.layout.log)
        self.wait_value('nui_bank_op_seconds_count{op="charge",result="done"}', 4)
        wait_for("the history to have blocks", lambda: (self.value("nui_history_blocks_total") or 0) > 0, 40,
                 self.grid.layout.log)
        wait_for("two jobs to be counted", lambda: (self.value(
            'sum(nui_rpc_seconds_count{daemon="meta",method="nui.meta.v1.Meta/Submit",code="OK"})') or 0) >= 2, 40,
            self.grid.layout.log)
        self.assertEqual(set(), self.firing())

    def test_3_boards(self):
        """Each expression of the boards is PromQL, and each metric that it names is served."""
        known = set(self.api("label/__name__/values"))
        for path in sorted(SHIPPED.glob("*.json")):
            board = json.loads(path.read_text())
            self.assertGreater(len(board["panels"]), 5)
            for panel in board["panels"]:
                for target in panel["targets"]:
                    expr = target["expr"].replace("$instance", ".*")
                    self.api("query", query=expr)
                    for name in re.findall(r"\b(?:nui|slurm|process)_\w+", expr):
                        optional = "forecast_coverage" in name
                        self.assertTrue(name in known or optional, f"{path.name}: {panel['title']}: {name}")
        for rule in (SHIPPED / "alerts.yml").read_text().splitlines():
            for name in re.findall(r"\bnui_\w+", rule):
                self.assertTrue(name in known or "forecast" in name or name == "nui_bank_answers", name)

    def test_4_a_site_that_is_gone(self):
        self.grid.daemons["beta"].kill()
        self.wait_firing("NuiDaemonDown", "beta", None)
        self.wait_firing("NuiSiteSilent", "meta", "beta")
        self.grid.daemons["beta"].start()
        self.wait_over("NuiDaemonDown", "beta", None)
        self.wait_over("NuiSiteSilent", "meta", "beta")
        self.assertEqual(set(), self.firing())

    def test_5_a_bank_without_its_database(self):
        first, second = (self.grid.submit("alice", "-A", "phys", "--site", "alpha", "-n", 2, "-t", "60",
                                          self.gated_script("five")) for _ in range(2))
        self.wait_state(first, ("Running",))
        self.wait_state(second, ("Queued",))
        self.grid.postgres.stop()
        self.wait_firing("NuiBankUnreachable", "bank", None)
        self.open_gate("five")  # the second one's hold is asked for now
        self.wait_firing("NuiBankUnreachable", "alpha", None)
        self.grid.postgres.start()
        self.wait_over("NuiBankUnreachable", "bank", None)
        self.wait_over("NuiBankUnreachable", "alpha", None)
        self.wait_state(second, ("Completed",))
        self.assertEqual(set(), self.firing())

    def test_6_who_may_read(self):
        """At a daemon's own port: operators and daemons, and nobody without a certificate; nothing but the page."""
        def ask(kind, name, port, path="/metrics"):
            mine = self.grid.layout.id_dir(kind, name)
            done = subprocess.run(["curl", "-s", "--http2", "-o", "/dev/null", "-w", "%{http_code}", "--cacert",
                                   str(self.grid.layout.ca / "ca.pem"), *(["--cert", str(mine / "cert.pem"), "--key",
                                                                            str(mine / "key.pem")] if name else []),
                                   f"https://127.0.0.1:{port}{path}"], text=True, capture_output=True)
            return done.stdout
        port = self.grid.ports["bank"]
        self.assertEqual("200", ask("operator", layout.OPERATOR, port))
        self.assertEqual("200", ask("site", "alpha", port))
        self.assertEqual("403", ask("user", "alice", port))
        self.assertEqual("403", ask("agency", layout.AGENCY, port))
        self.assertEqual("415", ask("operator", layout.OPERATOR, port, "/metrics/x"))
        self.assertEqual("000", ask(None, None, port))
        self.assertIn("it may not read this page", self.grid.daemons["bank"].log.read_text())

    def test_7_where_it_may_listen(self):
        """An address that others reach is refused, with what to do instead."""
        path = self.grid.layout.config("alpha")
        text = path.read_text()
        other = path.with_name("elsewhere.cfg")
        other.write_text(text.replace("127.0.0.1:0", "0.0.0.0:9464"))
        done = subprocess.run([str(self.grid.programs["nui-local"]), "--config", str(other), "--check"], text=True,
                              capture_output=True)
        self.assertEqual(1, done.returncode)
        self.assertIn("METRICS 0.0.0.0:9464: an address of this machine itself and a port are wanted", done.stderr)

    def test_8_rules(self):
        """Each rule fires when it should, by its own patience, and not a minute before."""
        done = subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=SHIPPED, text=True, capture_output=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        done = subprocess.run(["promtool", "check", "rules", str(SHIPPED / "alerts.yml")], text=True, capture_output=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        tested = set(re.findall(r"alertname: (\w+)\n *exp_alerts", (SHIPPED / "alerts_test.yml").read_text()))
        self.assertEqual(set(re.findall(r"alert: (\w+)", (SHIPPED / "alerts.yml").read_text())), tested)


if __name__ == "__main__":
    main()
