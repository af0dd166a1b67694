"""The tour: what a newcomer sees. Every step prints the command a person would type and its real
output, and checks what came of it."""
import json
import os
import re
import time
from decimal import Decimal

from . import layout as lay
from .base import ROOT, Failure, wait_for
from .forge import Forge

SAMPLES = ROOT / "deploy" / "samples"
DEPOSIT = 100000
TINY = 10


class Tour:
    def __init__(self, grid):
        self.grid = grid
        self.begun = time.monotonic()
        self.number = 0

    # ---- printing and checking

    def title(self, text):
        self.number += 1
        print(f"\n== [{time.monotonic() - self.begun:3.0f}s] {self.number}. {text}")

    def show(self, who, words, output):
        print(f"{who}$ {words}")
        if output.strip():
            print(output.rstrip())

    def nui(self, who, *args, code=0, log=None, quiet=False):
        """Runs and shows one command; Failure when its exit code is another than expected."""
        done = self.grid.nui(who, *args)
        words = " ".join(self.quoted(a) for a in ("nui", *args))
        if not quiet or done.returncode != code:
            self.show(who, words, done.stdout + done.stderr)
        self.check(done.returncode == code,
                   f"'{words}' ended with {done.returncode} instead of {code}", log)
        return done

    @staticmethod
    def quoted(word):
        word = str(word)
        if word.startswith(str(ROOT) + "/"):
            word = os.path.relpath(word, ROOT)
        return f"'{word}'" if re.search(r"[^\w@%+=:,./-]", word) else word

    def check(self, true, sentence, log=None):
        if not true:
            raise Failure(f"step {self.number}: {sentence}", log or self.grid.layout.log)

    def balance(self, who, account):
        """The account's row, in credits as exact decimals."""
        for row in json.loads(self.grid.nui(who, "balance", "--json", "-A", account).stdout or "[]",
                              parse_float=Decimal, parse_int=Decimal):
            if row["account"] == account:
                return row
        raise Failure(f"step {self.number}: nui balance has no row for {account}",
                      self.grid.daemons["bank"].log)

    # ---- the steps

    def go(self, wanted):
        """The whole tour once, and when it is wanted; else what stood still goes on, and nobody gets credits anew."""
        if self.grid.layout.toured.exists() and not wanted:
            self.again()
        else:
            self.run()

    def again(self):
        self.grid.make()
        self.daemons()
        log = self.grid.daemons["meta"].log
        self.nui("alice", "sites", log=log)
        self.nui("alice", "balance", log=self.grid.daemons["bank"].log)
        print("\n== it goes on where it was; the tour again: ./deploy/quickstart --tour")

    def run(self):
        for step in (self.authority, self.daemons, self.credits, self.estimate, self.one_site,
                     self.coallocated, *([self.files] if self.grid.store else []), self.statement, self.refusals):
            step()
        print(f"\n== tour: all {self.number} steps passed in "
              f"{time.monotonic() - self.begun:.0f} s")
        self.grid.layout.toured.touch()

    def authority(self):
        self.title("a certificate authority, and a certificate for everyone")
        grid = self.grid
        original = grid.nui_ca

        def shown(*args):
            output = original(*args)
            self.show("operator", " ".join(["nui-ca", *(self.short(a) for a in args)]), output)
            return output
        grid.nui_ca = shown
        try:
            grid.make()
            grid.nui_ca("list", grid.layout.ca)
        finally:
            del grid.nui_ca
        rows = original("list", grid.layout.ca, "--noheader").splitlines()
        valid = {tuple(row.split()[1:3]) for row in rows if row.startswith("valid")}
        missing = set(grid.identities()) - valid
        self.check(not missing, f"no valid certificate for {sorted(missing)}")

    def short(self, word):
        return str(word).replace(f"{self.grid.layout.state}/", "")

    def daemons(self):
        self.title("PostgreSQL, the bank, three sites, the metascheduler, the gate")
        grid = self.grid
        grid.start()
        print(f"postgresql {grid.ports['postgresql']:>6}  private, in "
              f"{self.short(grid.postgres.dir)}, pid {grid.postgres.process.pid()}")
        for name, daemon in grid.daemons.items():
            print(f"{name:<10} {grid.ports[name]:>6}  {daemon.program.name} --config "
                  f"{self.short(daemon.config)}, pid {daemon.pid()}")

    def exists(self, account):
        return any(r["name"] == account for r in self.grid.json(lay.OPERATOR, "account", "list"))

    def credits(self):
        self.title("the operator sets up the bank; the agency grants credits to alice's project")
        log = self.grid.daemons["bank"].log
        if not self.exists("phys"):
            for words in ([["user", "create", user] for user in lay.USERS] +
                          [["rate", "set", site, "1"] for site in self.grid.sites] +
                          [["site", "modify", site, "--claims", "yes"] for site in self.grid.managers()] +
                          [["project", "create", "physics"],
                           ["project", "add-user", "physics", "alice"],
                           ["account", "create", "phys", "--project", "physics"],
                           ["account", "create", "tiny", "--project", "physics", "--fallback",
                            "phys"],
                           ["project", "create", "chemistry"],
                           ["project", "add-user", "chemistry", "bob"],
                           ["account", "create", "chem", "--project", "chemistry"]]):
                self.nui(lay.OPERATOR, *words, log=log)
            self.nui(lay.AGENCY, "deposit", "-A", "tiny", TINY, log=log)
        before = self.balance("alice", "phys")
        self.nui(lay.AGENCY, "deposit", "-A", "phys", DEPOSIT, log=log)
        self.nui("alice", "balance", log=log)
        grown = self.balance("alice", "phys")["granted"] - before["granted"]
        self.check(grown == DEPOSIT, f"phys was granted {grown} credits more, not {DEPOSIT}", log)

    def estimate(self):
        self.title("the sites, and when and for how much a job could run")
        log = self.grid.daemons["meta"].log
        self.nui("alice", "sites", log=log)
        done = self.nui("alice", "estimate", "-A", "phys", SAMPLES / "hello.sh", log=log)
        for site in self.grid.sites:
            self.check(site in done.stdout, f"the estimate does not name {site}", log)

    def settled(self, who, account):
        """The account's balance once no job holds anything of it."""
        def nothing_held():
            row = self.balance(who, account)
            return row if row["held"] == 0 else None
        return wait_for(f"the charge to arrive at account {account}", nothing_held, 20,
                        self.grid.daemons["bank"].log)

    def one_site(self):
        self.title("a job for one site: submit, watch, output, charge")
        log = self.grid.daemons["meta"].log
        before = self.settled("alice", "phys")
        done = self.nui("alice", "submit", "-A", "phys", SAMPLES / "hello.sh", log=log)
        ident = self.grid_id(done)
        self.nui("alice", "watch", ident, log=log)
        done = self.nui("alice", "output", ident, log=log)
        self.check("1 + 2 + ... + 20000 = 200010000" in done.stdout, "the job's output is not there",
                   log)
        after = self.settled("alice", "phys")
        charged = after["settled"] - before["settled"]
        self.check(0 < charged < 120, f"the job was charged {charged} credits, not between 0 and 120")
        print(f"(charged {charged} credits for 2 processors)")

    def grid_id(self, done):
        found = re.search(r"\bgrid\.\d+\b", done.stdout)
        self.check(found, f"submit printed no job id: {done.stdout.strip()}")
        return found.group(0)

    def coallocated(self):
        self.title("a job on two clusters at the same moment")
        log = self.grid.daemons["meta"].log
        done = self.nui("alice", "submit", "-A", "phys", "-t", 60,
                        "--component", "left:site=alpha,tasks=2",
                        "--component", "right:site=beta,tasks=3", SAMPLES / "pair.py", log=log)
        ident = self.grid_id(done)
        self.nui("alice", "watch", ident, log=log)
        said = {}
        for part in ("left", "right"):
            said[part] = self.nui("alice", "output", ident, part, log=log).stdout
        results = {re.search(r"joint result: (\d+)", text) for text in said.values()}
        self.check(None not in results and len({r.group(1) for r in results}) == 1,
                   "the two components did not print one joint result", log)
        self.check("left  at alpha" in said["left"] and "right at beta" in said["right"],
                   "a component ran on another site than asked for", log)
        self.settled("alice", "phys")

    def files(self):
        self.title("a job's files: brought from a store, and taken back to it")
        log, store = self.grid.daemons["meta"].log, self.grid.layout.store
        name = f"largest-{time.time_ns()}.txt"
        done = self.nui("alice", "submit", "-A", "phys", "--stage-in", f"file://{store}/moons.csv=moons.csv",
                        "--stage-out", f"largest.txt=file://{store}/results/{name}", SAMPLES / "moons.sh", log=log)
        ident = self.grid_id(done)
        self.nui("alice", "watch", ident, log=log)
        result = store / "results" / name
        wait_for("the result to be in the store", result.exists, 60, log)
        self.show("alice", f"cat {result}", result.read_text())
        self.check(result.read_text() == "Ganymede, 5268 km\n", "the result is another", log)
        self.settled("alice", "phys")

    def statement(self):
        self.title("the statement adds up")
        log = self.grid.daemons["bank"].log
        self.nui("alice", "statement", "-A", "phys", log=log)
        paper = json.loads(self.grid.nui("alice", "statement", "--json", "-A", "phys").stdout,
                           parse_float=Decimal, parse_int=Decimal)
        row = self.balance("alice", "phys")
        self.check(row["granted"] - row["held"] - row["settled"] == row["available"],
                   f"granted - held - charged is not what is available: {row}", log)
        self.check(paper["opening_posted"] + sum(line["posted"] for line in paper["lines"]) ==
                   paper["closing_posted"] == row["available"] + row["held"],
                   "the statement's lines do not add up to its closing", log)
        print("(granted {granted} - held {held} - charged {settled} = available {available})"
              .format(**row))

    def refusals(self):
        self.title("who cannot pay, and who is not who they say")
        log = self.grid.daemons["meta"].log
        done = self.nui("bob", "submit", "-A", "chem", SAMPLES / "hello.sh", code=1, log=log)
        self.check("insufficient funds" in done.stderr and "short by 120" in done.stderr,
                   "bob, who has an account without credits, was not told so", log)
        done = self.nui("bob", "submit", "-A", "phys", SAMPLES / "hello.sh", code=1, log=log)
        self.check("not a member" in done.stderr, "bob was not told that phys is not his", log)
        forge = Forge(self.grid)
        body = forge.job("alice", "phys").SerializeToString()
        envelope = forge.sign("alice", body)
        envelope.body = body.replace(b"echo forged", b"echo FORGED")
        accepted, words = forge.submit_to_site("alpha", envelope)
        print(f"(a job that alice signed and someone changed, handed to alpha as the metascheduler)\n"
              f"alpha: {words}")
        self.check(not accepted, "alpha accepted a forged job", self.grid.daemons["alpha"].log)
        self.check("signature" in words, f"alpha refused the forged job for another reason: {words}",
                   self.grid.daemons["alpha"].log)
        before = self.settled("alice", "phys")
        done = self.nui("alice", "submit", "-A", "tiny", SAMPLES / "hello.sh", log=log)
        ident = self.grid_id(done)
        self.nui("alice", "watch", ident, log=log)
        self.settled("alice", "tiny")
        after = self.settled("alice", "phys")
        self.check(after["settled"] > before["settled"],
                   "alice's second job was not charged to the fallback account phys")
        self.nui("alice", "balance", log=log)
