"""The policy book's pages about the daemon: tests/unit/local/scenarios/site/*.txt (tests/unit/local/README.md
says how they are written). Each is a site of its own, asked through the real client."""
import os
import re
import subprocess
import time
import unittest
from pathlib import Path

from fixture import ROOT, main
from onesite import SiteCase, layout, wait_for
from test_simulation import BEGIN, trace_job

PAGES = ROOT / "tests" / "unit" / "local" / "scenarios" / "site"
SECTIONS = ("config", "nodes", "jobs", "steps")


def read(page):
    """{section: [(line number, line)]}; comments are left out."""
    found, section = {}, None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), [])
            if line.strip("[]") not in SECTIONS:
                raise AssertionError(f"{page}:{number}: {line} is no section")
        elif section is not None and line.strip() and not line.lstrip().startswith("#"):
            section.append((number, line))
    return found


def words(line):
    name, *rest = line.split()
    return name, dict(word.split("=", 1) for word in rest)


def node_line(line):
    name, of = words(line)
    features = of.get("features", "")
    classes = "".join(f"[{c}:{of.get('procs', 1)}]" for c in of.get("classes", "batch").split(","))
    return (f"COMPUTENODE AVAILABLE 0 {name} [DEFAULT] 2048M 1024M 20000M {of.get('procs', 1)} 1 1 0 "
            f"Linux x86_64 [{features or 'NONE'}] {classes} [ethernet] 1.0 [NONE] [NONE] [NONE]\n")


def job_line(line):
    name, of = words(line)
    feature = f"[{of['features']}]" if "features" in of else "[NONE]"
    text = trace_job(name, of.get("user", "alice"), int(of.get("tasks", 1)), int(of["walltime"]),
                     BEGIN + int(of.get("at", 0)), int(of.get("run", of["walltime"])), feature,
                     of.get("class", "batch"), of.get("account", "[NONE]"))
    text = text.replace(" grp ", f" {of.get('group', 'grp')} ", 1)
    return text.replace("[NONE]:DEFAULT", f"{of['qos']}:{of['qos']}") if "qos" in of else text


def same(expected, line):
    parts = [re.escape(part) for part in " ".join(expected.split()).split("...")]
    return re.fullmatch(".*".join(parts), " ".join(line.split())) is not None


def account(name):
    return layout.account_of(name) if name in layout.USERS else name


class Page:
    """One page on its way through its steps."""

    def __init__(self, case, page):
        self.case, self.path, self.text = case, page, read(page)
        self.site = case.site(f"page-{page.stem}", "alpha")
        config = "".join(f"{line}\n" for _, line in self.text["config"])
        etc = self.site.state / "etc"
        for kind, make in (("jobs", job_line), ("nodes", node_line)):
            path = etc / f"{page.stem}.{kind}"
            head = "VERSION 230\n" if kind == "jobs" else ""
            path.write_text(head + "".join(make(line) for _, line in self.text.get(kind, [])))
            config = config.replace(f"FILE {kind}\n", f"FILE {path}\n")
        self.site.write(self.named(config), gridmap=False)
        self.started = None
        self.output, self.code, self.at = [], 0, 0

    @staticmethod
    def named(text):
        """{alice} is the account that alice has on this machine."""
        return re.sub(r"\{(\w+)\}", lambda m: account(m.group(1)), text)

    def fail(self, number, what):
        said = "\n".join(self.output)
        self.case.fail(f"{self.path}:{number}: {what}\n{said}")

    def took(self, done):
        self.output, self.code, self.at = (done.stdout + done.stderr).splitlines(), done.returncode, 0

    def start(self):
        if self.started is None:
            self.started = time.monotonic()
            self.site.start()

    def command(self, account, line):
        self.start()
        self.took(self.site.nui(*self.named(line).split(), account=account))

    def check(self):
        self.took(subprocess.run([self.site.programs["nui-local"], "--config", self.site.config,
                                  "--check"], capture_output=True, text=True, timeout=600))

    def ended(self, number, least):
        if self.started is None:
            self.started = time.monotonic()
            self.site.process.start([self.site.programs["nui-local"], "--config", self.site.config])
        wait_for("the daemon to end", self.site.process.died, 120, self.site.log)
        if time.monotonic() - self.started < least:
            self.fail(number, f"ended before {least} s")
        self.output, self.code, self.at = self.site.log.read_text().splitlines(), 0, 0

    def expect(self, number, line):
        for at in range(self.at, len(self.output)):
            if same(line, self.output[at]):
                self.at = at + 1
                return
        self.fail(number, f"no line '{line.strip()}' (in this order)")

    def step(self, number, line, follow):
        """A step, and what its answer has to be like."""
        asked = re.fullmatch(r"(?:as (\w+) )?\$ (.*)", line)
        ended = re.fullmatch(r"ended(?: not before (\d+) s)?", line)
        if asked:
            self.command(asked.group(1) and account(asked.group(1)), asked.group(2))
        elif line == "check":
            self.check()
        elif ended:
            self.ended(number, int(ended.group(1) or 0))
        else:
            self.fail(number, f"'{line}' is no step")
        code = 0
        for number, line in follow:
            if line.startswith("  exit "):
                code = int(line.split()[1])
            elif line.startswith("  not "):
                if any(same(line[6:], said) for said in self.output):
                    self.fail(number, f"a line '{line[6:]}'")
            else:
                self.expect(number, line)
        if self.code != code:
            self.fail(number, f"exit code {self.code}, not {code}")

    def run(self):
        steps = self.text["steps"]
        at = 0
        while at < len(steps):
            end = at + 1
            while end < len(steps) and steps[end][1].startswith("  "):
                end += 1
            self.step(*steps[at], steps[at + 1:end])
            at = end
        if self.started is not None:
            self.site.stop()


@unittest.skipIf(os.geteuid() != 0, "needs to be root: other accounts use the socket")
class Book(SiteCase):
    pass


def page_test(path):
    return lambda self: Page(self, path).run()


for found in sorted(Path(PAGES).glob("*.txt")):
    setattr(Book, "test_" + found.stem.replace("-", "_"), page_test(found))

if __name__ == "__main__":
    main()
