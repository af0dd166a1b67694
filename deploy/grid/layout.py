"""What a grid on this machine consists of, where its files are, and its configuration files."""
import os
import pwd
from pathlib import Path

from .base import ROOT, Failure

GRID = "demo"
# name: nodes, processors of each
SITES = {"alpha": (4, 2), "beta": (2, 4), "gamma": (1, 2)}
USERS = ("alice", "bob")
AGENCY, OPERATOR = "nsf", "operator"
# Accounts that every Debian has, unprivileged and nobody's; jobs of the users run as these.
ACCOUNTS = {"alice": ("games", "nobody"), "bob": ("nobody", "games")}
ACCOUNT = {"alice": "phys", "bob": "chem"}  # which the tour makes; named when -A is not given
JOB_PORTS = 100  # rendezvous ports of one site
TAKEOVER_S = 12  # of a group of metaschedulers


def account_of(user):
    """The existing local account a grid user's jobs run as. Without root only our own can be."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    for name in ACCOUNTS[user]:
        try:
            if pwd.getpwnam(name).pw_uid != 0:
                return name
        except KeyError:
            continue
    raise Failure(f"none of the accounts {ACCOUNTS[user]} exists for jobs of {user}")


class Layout:
    """Paths under one state directory."""

    def __init__(self, state):
        self.state = Path(state)
        self.etc, self.run = self.state / "etc", self.state / "run"
        self.log, self.ids = self.state / "log", self.state / "id"
        self.ca, self.work = self.state / "ca", self.state / "work"
        self.toured = self.state / "toured"  # the tour was passed here

    def make(self):
        # Others must be able to pass through (jobs, PostgreSQL), and to read nothing by default.
        self.state.mkdir(mode=0o711, parents=True, exist_ok=True)
        for directory in (self.etc, self.run, self.log, self.ids, self.work):
            directory.mkdir(mode=0o700, exist_ok=True)

    def id_dir(self, kind, name):
        return self.ids / f"{kind}-{name}"

    def config(self, name):
        return self.etc / f"{name}.cfg"

    @property
    def store(self):
        """Where files of jobs may come from and go to."""
        return self.state / "store"

    def make_store(self):
        results = self.store / "results"
        results.mkdir(parents=True, exist_ok=True)
        self.store.chmod(0o755)
        results.chmod(0o1777)  # jobs write as their accounts
        source = self.store / "moons.csv"
        source.write_text("planet,moon,km\nEarth,Moon,3474\nMars,Phobos,22\nMars,Deimos,12\nJupiter,Io,3643\n"
                          "Jupiter,Europa,3122\nJupiter,Ganymede,5268\nJupiter,Callisto,4821\n")
        source.chmod(0o644)

    def identity(self, kind, name):
        mine = self.id_dir(kind, name)
        return [("CA", self.ca / "ca.pem"), ("CRL", self.ca / "crl.pem"),
                ("CERT", mine / "cert.pem"), ("KEY", mine / "key.pem")]

    def daemon(self, name, kind, port):
        """Keys that all daemons share."""
        return [("GRID", GRID), ("LISTEN", f"127.0.0.1:{port}"),
                ("PORTFILE", self.run / f"{name}.port"), ("PIDFILE", self.run / f"{name}.pidfile"),
                ("LOGFILE", self.log / f"{name}.log"), ("LOGLEVEL", "info"),
                ("METRICS", "127.0.0.1:0"),
                ("STATEDIR", self.state / name), *self.identity(kind, name)]


def value_text(value):
    if isinstance(value, list):
        return " ".join(map(value_text, value))
    text = str(value)
    return f'"{text}"' if any(c in text for c in ' \t#"') else text


def write_config(path, title, pairs):
    """Maui's syntax: KEY value. Replaced by a rename."""
    lines = [f"# {title}", ""] + [f"{key:<12} {value if key.endswith(']') else value_text(value)}"
                                  for key, value in pairs]
    new = Path(f"{path}.new")
    new.write_text("\n".join(lines) + "\n")
    new.chmod(0o600)
    new.rename(path)


def slurm_lines(slurm):
    """What nui-local is told of a site's Slurm; its nodes come from there."""
    return [("RMCFG[base]", f"TYPE=SLURM SERVER={slurm.server} KEY={slurm.key} CONF={slurm.conf} "
                            f"COMPLETIONS={slurm.completions} POLL=1 PATIENCE=20 MIRROR=TRUE"),
            ("RMPOLLINTERVAL", "2")]


def gridengine_lines(engine):
    """What it is told of a site's Grid Engine, which it asks by a program."""
    return [("RMCFG[base]", f"TYPE=NATIVE ADAPTER={ROOT}/local/rm/adapters/gridengine/nui-gridengine "
                            f'ENV="{engine.adapter_env()}" POLL=1 PATIENCE=30'),
            ("RMPOLLINTERVAL", "2")]


def group_lines(metas, at):
    """What each of several metaschedulers is told of all of them."""
    if len(metas) == 1:
        return []
    return [(f"METACFG[{meta}]", f"SERVER={at[meta]}") for meta in metas] + [("TAKEOVERTIME", TAKEOVER_S)]


def write_all(layout, ports, conninfo, sites=None, slurms=None, metas=("meta",), gates=(), store=False, engines=None):
    """Every configuration file of the grid. ports: bank, metaschedulers, each site, and `jobs` (a base)."""
    sites, slurms, engines = sites or SITES, slurms or {}, engines or {}
    at = {name: f"127.0.0.1:{ports[name]}" for name in ("bank", *metas, *sites)}
    write_config(layout.config("bank"), "nui-bank(8)",
                 layout.daemon("bank", "bank", ports["bank"]) + [("DATABASE", conninfo)])
    for meta in metas:
        write_config(layout.config(meta), "nui-meta(8)",
                     layout.daemon(meta, "meta", ports[meta]) + [("BANK", at["bank"])] +
                     [(f"SITECFG[{site}]", f"SERVER={at[site]}") for site in sites] +
                     group_lines(metas, at))
    for gate in gates:
        write_config(layout.config(gate), "nui-gate(8)",
                     layout.daemon(gate, "gate", ports[gate]) + [("META", [at[meta] for meta in metas]), ("BANK", at["bank"])] +
                     [("HTTP", f"127.0.0.1:{ports['http-' + gate]}")])
    gridmap = layout.etc / "gridmap"
    gridmap.write_text("".join(f'"nui://{GRID}/user/{u}" {account_of(u)}\n' for u in USERS))
    for index, (site, (nodes, procs)) in enumerate(sites.items()):
        first = ports["jobs"] + index * JOB_PORTS
        write_config(layout.config(site), f"nui-local(8) of site {site}",
                     layout.daemon(site, "site", ports[site]) +
                     [("SITENAME", site), ("BANK", at["bank"])] +
                     [("META", [at[meta] for meta in metas])] +
                     ([("METAGROUP", list(metas))] if len(metas) > 1 else []) +
                     [("GRIDMAP", gridmap), ("SOCKET", layout.run / f"{site}.sock"),
                      ("JOBDIR", layout.state / f"jobs-{site}"),
                      ("PORTRANGE", f"{first}-{first + JOB_PORTS - 1}")] +
                     ([("STAGEROOT", layout.store)] if store else []) +
                     (slurm_lines(slurms[site]) if site in slurms else gridengine_lines(engines[site]) if site in engines else
                      [("RMCFG[base]", "TYPE=EMBEDDED")] +
                      [(f"NODECFG[{site}{n:02}]", f"PROCS={procs} MEM={procs}G")
                       for n in range(1, nodes + 1)]))
    for kind, name in ([("user", u) for u in USERS] + [("agency", AGENCY), ("operator", OPERATOR)]):
        for meta in metas:  # alice, and alice-meta2 who asks the second one
            person = name if meta == "meta" else f"{name}-{meta}"
            write_config(layout.config(person), f"nui.cfg(5) of {name}",
                         [("GRID", GRID), *layout.identity(kind, name), ("META", at[meta]),
                          ("BANK", at["bank"])] +
                         [("ACCOUNT", a) for n, a in ACCOUNT.items() if n == name] +
                         [(f"SITECFG[{site}]", f"SERVER={at[site]}") for site in sites])


def find_programs(build):
    """Paths of the built programs by name, wherever the build put them. None: only what needs none
    of them can be done."""
    if build is None:
        return {}
    names = {"nui-bank": "bank", "nui-meta": "meta", "nui-local": "local", "nui": ".", "nui-gate": "meta/gate",
             "nui-supervise": "local/rm", "nui-node": "local"}
    found = {}
    for name, usual in names.items():
        places = [Path(build) / usual / name, *Path(build).glob(f"*/{name}"),
                  *Path(build).glob(f"*/*/{name}")]
        found[name] = next((p for p in places if p.is_file() and os.access(p, os.X_OK)), None)
        if found[name] is None:
            raise Failure(f"{name} is not in {build}: build it first")
    found["nui-ca"] = ROOT / "certs" / "nui-ca"
    return found
