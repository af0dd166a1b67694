"""Each of Maui's commands by the rules that hold for all: every option in help, man page and
completion; --json as its schema says, --csv with the same columns; who may do what, cell by cell."""
import csv
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from fixture import BUILD, main
from onesite import ROOT, SiteCase, layout
from schemas import (CHANGE, CREDENTIAL, CREDENTIAL_SUMS, GRID, JOB, NODE, OBJECT, PROFILE, QUEUE,
                     RESERVATION, SCHEDULE, START, SUMMARY, check, fields, priority)
from test_simulation import BEGIN, TRACE_NODES, trace_job

COMMON = {"--json", "--csv", "--noheader", "--config", "--help"}
LONG = re.compile(r"(?:^|[ \[|(,/])(--[a-z][a-z0-9-]*)", re.M)


def nui(*args):
    done = subprocess.run([str(layout.find_programs(BUILD)["nui"]), *args], capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, (args, done.returncode, done.stderr)
    return done.stdout


def commands(group=None):
    """The names that `nui help` lists, of one group or of all but nui's own."""
    found, at = [], ""
    for line in nui("help").splitlines():
        if line.startswith("  ") and line[2] != " " and at not in ("", "About nui itself"):
            if group is None or at.startswith(group):
                found.append(line.split()[0])
        elif line and line[0] not in " -" and not line.startswith("usage"):
            at = line
    return found


class Options(unittest.TestCase):
    """--help fails when the command has an option that its text does not name (proto/cli/options.c)."""

    def man_text(self, name):
        """The page, in plain letters, and those that it names for its options or stands for."""
        pages = list(ROOT.glob(f"*/man/nui-{name}.1")) + list(ROOT.glob(f"*/*/man/nui-{name}.1"))
        self.assertEqual(len(pages), 1, f"man pages of {name}")
        text = pages[0].read_text()
        so = re.match(r"\.so man1/nui-(.*)\.1", text)
        if so:
            return self.man_text(so[1])
        plain = re.sub(r"\\f[A-Z]|\\&", "", text).replace("\\-", "-")
        return plain

    def test_words_of_elsewhere(self):
        """Commands of other batch systems are named with ours, which there are."""
        known = set(commands())
        for word in ("bsub", "pbsnodes", "qsub", "qstat", "qdel", "qalter", "sacct", "sbatch", "scancel", "scontrol", "sinfo",
                     "sprio", "squeue", "srun", "sshare"):
            done = subprocess.run([str(layout.find_programs(BUILD)["nui"]), word], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, word)
            ours = re.findall(r"nui ([a-z]+)", done.stderr.split("here:")[1])
            self.assertTrue(ours and set(ours) <= known, done.stderr)

    def test_help_man_completion(self):
        completion = nui("completion", "bash")
        names = commands()
        self.assertGreater(len(names), 40)
        for name in names:
            with self.subTest(command=name):
                named = set(LONG.findall(nui(name, "--help"))) - COMMON
                text = self.man_text(name)
                missing = {o for o in named if not re.search(re.escape(o) + r"(?![\w-])", text)}
                self.assertFalse(missing, f"nui-{name}.1 lacks options")
                line = re.search(rf"^    {re.escape(name)}\) echo '(.*)' ;;$", completion, re.M)
                self.assertIsNotNone(line, "completion lacks the command")
                self.assertEqual(set(line[1].split()) - COMMON, named, "completion's options")
                self.assertTrue(COMMON <= set(line[1].split()))

    def test_the_shells_complete(self):
        """bash, zsh and fish themselves offer commands, options, and the jobs, accounts and sites that nui lists."""
        with tempfile.TemporaryDirectory(prefix="nui-e2e-") as home:
            fake = Path(home, "nui")
            fake.write_text("#!/bin/sh\ncase $1 in jobs) echo grid.7,x ;; showq) echo alpha.3,x ;; balance) echo phys,1 ;; "
                            "sites) echo beta,Up ;; esac\n")
            fake.chmod(0o755)
            asked = {"sta": ["status"], "status --": ["--json"], "status ": ["grid.7"], "checkjob ": ["alpha.3"],
                     "submit --account p": ["phys"], "submit --site ": ["beta"]}
            ways = {"bash": 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nui; printf "%s\\n" "${COMPREPLY[@]}"',
                    "zsh": 'source "$1"; shift; emulate ksh; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nui; '
                           'printf "%s\\n" "${COMPREPLY[@]}"',
                    "fish": 'source $argv[1]; complete -C $argv[2]'}
            for shell, way in ways.items():
                if not shutil.which(shell):
                    continue
                script = Path(home, shell)
                script.write_text(nui("completion", shell))
                for typed, offered in asked.items():
                    with self.subTest(shell=shell, typed=typed):
                        words = ["nui", *typed.split(" ")]
                        command = [shell, "-c", way, script, f"nui {typed}"] if shell == "fish" else [shell, "-c", way, shell, script, *words]
                        done = subprocess.run(command, capture_output=True, text=True, timeout=600,
                                              env={"PATH": f"{home}:/usr/bin:/bin", "HOME": home})
                        got = [line.split("\t")[0] for line in done.stdout.splitlines()]
                        self.assertTrue(set(offered) <= set(got), f"{got} {done.stderr}")
                        if typed == "sta" and shell != "zsh":  # which sifts by itself
                            self.assertEqual({w for w in got if not w.startswith("sta")}, set())

    def test_links(self):
        """Maui's names and Moab's are links; each of them is a command of these groups, and the other way round."""
        self.assertEqual(set(nui("completion", "links").split()), set(commands(("On a cluster", "Bank, with Moab"))))


POLICY = """SIMJOBSUBMISSIONPOLICY NORMAL
SIMINITIALQUEUEDEPTH 1
SIMSTOPITERATION 12
SIMAUTOSHUTDOWN FALSE
RMPOLLINTERVAL 60
CREDWEIGHT 1
USERWEIGHT 1
FSWEIGHT 1
FSUSERWEIGHT 1
FSPOLICY DEDICATEDPS
USERCFG[alice] PRIORITY=10 FSTARGET=30 MAXJOB=4 QLIST=hi
USERCFG[dave] MAXPROC=16
SRCFG[lunch] PERIOD=DAY STARTTIME=12:00:00 ENDTIME=13:00:00 TASKCOUNT=2 USERLIST=alice
QOSCFG[hi] PRIORITY=5
"""
JOBS = (("1001", "alice", 8, 3600, 0, 1800), ("1002", "bob", 12, 7200, 60, 3600), ("1003", "alice", 16, 1800, 120, 900),
        ("1004", "carol", 4, 600, 180, 300), ("1005", "bob", 4, 600, 240, 600), ("1006", "dave", 32, 3600, 300, 60),
        ("1007", "carol", 8, 14400, 300, 60))

LISTS = {"transfers": "any", "holds": "any", "allocated": "any", "rejections": "any"}
# Command lines in order, and what --json says; SCRIPT is a job script, STEP: a step after it.
OUTPUTS = (
    ("showq", {"site": "s", "time": "t", "active": [fields(QUEUE)], "idle": [fields(QUEUE)],
               "blocked": [fields(QUEUE)], **fields("procs:i procs_active:i nodes:i nodes_active:i hidden:i")}),
    ("checkjob 1006", {"job": fields(JOB), **LISTS}),
    ("checkjob -v 1003", {"job": fields(JOB), **LISTS, "nodes": [fields("node:s reason:s tasks:i")]}),
    ("checkjob 1004", {"job": fields(JOB), **LISTS}),
    ("showbf", [fields("procs:i nodes:i length:d")]),
    ("showstart 1003", fields(START)),
    ("showstart 4@1:00:00", fields(START)),
    ("showstart -e all 1003", [fields("method:s median:t? low50:t? high50:t? low95:t? high95:t? certain:b "
                                      "confidence:s? without:s?")]),
    ("checknode node01", {"node": fields(NODE), "reservations": [fields(RESERVATION)]}),
    ("showres", [fields(RESERVATION)]),
    ("showres -n", [fields(RESERVATION)]),
    ("setres -u alice -s 18:00 -d 1:00:00 TASKS==4", [fields("reservation:s start_time:t end_time:t? node:s tasks:i")]),
    ("releaseres alice.0", [fields("reservation:s released:b")]),
    ("mrsvctl -c -a USER==alice -t 4 -s 18:00 -d 1:00:00", [fields("reservation:s start_time:t end_time:t? node:s tasks:i")]),
    ("mrsvctl -l", [fields(RESERVATION)]),
    ("mrsvctl -q ALL", [fields(RESERVATION)]),
    ("mrsvctl -r alice.0", [fields("reservation:s released:b")]),
    ("showstate", [fields(NODE)]),
    ("sethold 1003", [fields(CHANGE)]),
    ("showhold", [fields("job_id:s user:s holds:s submit_time:t reason:s?")]),
    ("diagnose -q", [fields(QUEUE)]),
    ("diagnose -b", [fields(QUEUE)]),
    ("releasehold 1003", [fields(CHANGE)]),
    ("setspri 5 1003", [fields(CHANGE)]),
    ("mjobctl -h user 1003", [fields(CHANGE)]),
    ("mjobctl -u user 1003", [fields(CHANGE)]),
    ("mjobctl -p +5 1003", [fields(CHANGE)]),
    ("mjobctl -m wclimit=20:00 1003", [fields(OBJECT)]),
    ("mjobctl -q state 1003", [fields("job_id:s attribute:s value:s?")]),
    ("setdeadline +72:00:00 1003", [fields(OBJECT)]),
    ("setqos hi 1003", [fields(OBJECT)]),
    ("diagnose -p", [priority("USER", "FSUSER", "QUEUETIME")]),
    ("diagnose -f", [fields("kind:s name:s percent:n target:n? target_type:s? interval:i interval_percent:n")]),
    ("diagnose -j", [fields(QUEUE)]),
    ("diagnose -n", [fields(NODE)]),
    ("diagnose -r", [fields(RESERVATION)]),
    ("diagnose -s", [fields("name:s period:s days:s start:d end:d depth:i resources:s task:s features:s? partition:s? "
                            "acl:s? flags:s? owner:s? next_time:t? reservations:s?")]),
    ("diagnose -u", [fields(CREDENTIAL)]),
    ("diagnose -g", [fields(CREDENTIAL)]),
    ("diagnose -a", [fields(CREDENTIAL)]),
    ("diagnose -c", [fields(CREDENTIAL)]),
    ("diagnose -Q", [fields(CREDENTIAL)]),
    ("diagnose -m", [fields("memory:i nodes:i nodes_up:i procs:i procs_free:i memory_dedicated:i disk:i swap:i")]),
    ("diagnose -R", [fields("kind:s name:s state:s server:s? waiting:i oldest_time:t? clock:s?")]),
    ("diagnose -S", fields("time:t mode:s started_time:t iteration:i last_iteration_time:t? jobs:i statdir:s "
                           "trace_jobs:i")),
    ("mdiag -j", [fields(QUEUE)]),
    ("diagnose -t", [fields("partition:s resource:s configured:i up:i dedicated:i in_use:i")]),
    ("diagnose -e", [fields("class:s answers:s scored:i uncertain:i coverage_50:n? coverage_95:n? median_error:d? bias_s:n? earned:b")]),
    ("mjobctl -s 1001", [fields(CHANGE)]),
    ("mjobctl -r 1001", [fields(CHANGE)]),
    ("mjobctl -c 1005", [fields("job_id:s cancelled:b")]),
    ("schedctl -S --wait", [fields(SCHEDULE)]),
    ("mjobctl -R 1002", [fields(CHANGE)]),
    ("canceljob 1007", [fields("job_id:s cancelled:b")]),
    ("msub -t 1:00 SCRIPT", [fields("job_id:s start_estimate:t?")]),
    ("runjob 1008", [fields("job_id:s nodes:s")]),
    ("msub -t 1:00 SCRIPT", [fields("job_id:s start_estimate:t?")]),
    ("mjobctl -x 1009", [fields("job_id:s nodes:s")]),
    ("mnodectl -m state=drained node08", [fields(OBJECT)]),
    ("changeparam RESERVATIONDEPTH[0] 2", [fields("parameter:s value:s")]),
    ("schedctl", [fields(SCHEDULE)]),
    ("schedctl -n", [fields(NODE)]),
    ("schedctl -l", [fields("parameter:s value:s")]),
    ("checknode ALL", [{"node": fields(NODE), "reservations": "any"}]),
    ("schedctl -m RESERVATIONDEPTH[0] 2", [fields("parameter:s value:s")]),
    ("runjob -s 1009", [fields(CHANGE)]),
    ("showstats", fields(SUMMARY)),
    ("showstats -s", fields(SUMMARY)),
    ("showstats -v", fields(SUMMARY)),
    ("showstats -u", [fields(CREDENTIAL_SUMS)]),
    ("showstats -g", [fields(CREDENTIAL_SUMS)]),
    ("showstats -a", [fields(CREDENTIAL_SUMS)]),
    ("showstats -c", [fields(CREDENTIAL_SUMS)]),
    ("showstats -q", [fields(CREDENTIAL_SUMS)]),
    ("showstats -n", [fields("node:s state:s memory:i procs:i procs_dedicated:i total_time:d up_time:d busy_time:d "
                             "available_percent:n busy_percent:n")]),
    ("showstats -f AVGXFACTOR", [fields(GRID)]),
    ("showstats -f", [fields("kind:s name:s percent:n target:n? target_type:s? interval:i interval_percent:n")]),
    ("showstats -S", fields("time:t mode:s started_time:t iteration:i last_iteration_time:t? jobs:i statdir:s "
                            "trace_jobs:i")),
    ("showstats -d", [fields(PROFILE)]),
    ("showgrid AVGXFACTOR", [fields(GRID)]),
    ("profiler", [fields(PROFILE)]),
    ("profiler -p user", [fields(PROFILE)]),
    ("profiler -p day", [fields(PROFILE)]),
    ("profiler -m JOBCOUNT", [fields(GRID)]),
    ("showaudit", [fields("sequence:i time:t who:s what:s")]),
    ("showconfig", [fields("parameter:s value:s")]),
    ("resetstats", fields("reset_time:t")),
)
# They change something: asked once. The others are asked for --csv as well.
CHANGES = ("setres releaseres sethold releasehold setspri setqos mjobctl canceljob msub runjob mnodectl changeparam "
           "resetstats setdeadline mrsvctl").split()
# Options that choose another output; each has a line above.
CHOICES = {"diagnose": "pfqbjnrsugacQmRSte", "showstats": "svugacqnfSd", "mjobctl": "cxhupmqRsr", "profiler": "pm",
           "showres": "n", "schedctl": "Snlm", "mrsvctl": "clqr", "runjob": "s", "checkjob": "v", "showstart": "e"}


class Simulated(SiteCase):
    def demo(self, name, more=""):
        """A machine of 32 processors with jobs that run, wait and are blocked, at a fixed step."""
        (self.state / "jobs").write_text("VERSION 230\n" + "".join(
            trace_job(*j[:4], BEGIN + j[4], j[5], account="phys") for j in JOBS))
        (self.state / "nodes").write_text(TRACE_NODES)
        script = self.state / "job.sh"
        script.write_text("#!/bin/sh\nexit 0\n")
        script.chmod(0o755)
        site = self.site(name, "alpha")
        site.write(f"SERVERMODE SIMULATION\nSIMWORKLOADTRACEFILE {self.state}/jobs\n"
                   f"SIMRESOURCETRACEFILE {self.state}/nodes\n{POLICY}{more}", gridmap=False)
        site.start()
        self.ok(site, "schedctl", "--wait")
        return site, script


class Formats(Simulated):
    def as_rows(self, document, schema):
        """What --csv should list; None: its form says more than a table can."""
        if isinstance(schema, list):
            return document
        if "job" in schema:
            return [document["job"]]
        if "node" in schema and isinstance(schema["node"], dict):
            return [document["node"]]
        if "active" in schema:
            return document["active"] + document["idle"] + document["blocked"]
        return [document]

    def csv_check(self, site, words, rows, schema):
        text = self.ok(site, words[0], "--csv", *words[1:])
        lines = list(csv.reader(io.StringIO(text)))
        flat = [k if not isinstance(v, dict) else [k, f"{k}_percent"] for k, v in schema.items()]
        header = [c for k in flat for c in (k if isinstance(k, list) else [k])]
        self.assertEqual(lines[0], header)
        if words[0] != "showaudit":  # which has grown
            self.assertEqual(len(lines) - 1, len(rows))
        self.assertTrue(all(len(line) == len(header) for line in lines), text)
        bare = self.ok(site, words[0], "--csv", "--noheader", *words[1:])
        self.assertEqual(len(list(csv.reader(io.StringIO(bare)))), len(lines) - 1)

    def test_json_and_csv(self):
        site, script = self.demo("formats")
        for line, schema in OUTPUTS:
            words = [str(script) if w == "SCRIPT" else w for w in line.split()]
            with self.subTest(line=line):
                text = self.ok(site, words[0], "--json", *words[1:])
                document = json.loads(text)
                wrong = check(document, schema)
                self.assertIsNone(wrong, f"{line}: {wrong}")
                if words[0] not in CHANGES and "-S" not in words:
                    rows = self.as_rows(document, schema)
                    row = schema[0] if isinstance(schema, list) else schema
                    row = next((v for k, v in row.items() if k in ("job", "node") and isinstance(v, dict)), row)
                    self.csv_check(site, words, rows, row if "active" not in row else row["active"][0])

    def test_every_command_has_a_schema(self):
        asked = [line.split() for line, _ in OUTPUTS]
        self.assertEqual({w[0] for w in asked}, set(commands("On a cluster")))
        for command, letters in CHOICES.items():
            seen = {w[1] for words in asked if words[0] == command for w in words[1:]
                    if re.match("-[A-Za-z]$", w)}
            self.assertEqual(set(letters) - seen, set(), command)


if __name__ == "__main__":
    main()
