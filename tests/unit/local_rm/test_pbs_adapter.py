"""nui-pbs against what a real OpenPBS 23.06.06 printed (tests/data/pbs: the call, its exit code and its stderr in the first lines), and against
what a user can put into a job. No server is there: the commands are played."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ADAPTER = ROOT / "local/rm/adapters/pbs/nui-pbs"
DATA = ROOT / "tests/data/pbs"

PLAYED = """#!/usr/bin/python3 -B
import json, os, re, sys
here = os.path.dirname(__file__)
call = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
with open(f"{here}/calls", "a") as calls:
    calls.write(call + "\\n")
for pattern, code, out, err in json.load(open(f"{here}/answers")):
    if re.fullmatch(pattern, call):
        sys.stdout.write(out)
        sys.stderr.write(err)
        sys.exit(code)
sys.exit(f"not played: {call}")
"""


def recorded(name):
    """exit code, stdout, stderr."""
    lines = (DATA / f"{name}.txt").read_text().split("\n", 3)
    return int(lines[1].split()[-1]), lines[3], lines[2].partition(": ")[2] + "\n"


class Adapter(unittest.TestCase):
    def setUp(self):
        self.bin = Path(tempfile.mkdtemp(prefix="nui-test-pbs-"))
        self.addCleanup(shutil.rmtree, self.bin)
        for name in ("qstat", "pbsnodes", "qrun", "qselect", "qrls", "qhold", "qdel", "qrerun", "qsig", "qsub"):
            (self.bin / name).write_text(PLAYED)
            (self.bin / name).chmod(0o755)
        self.answers = []
        self.plays("qselect .*", text="")

    def plays(self, pattern, name=None, text="", code=0, err=""):
        self.answers.append([pattern, *((recorded(name)) if name else (code, text, err))])

    def call(self, *args, code=0):
        (self.bin / "answers").write_text(json.dumps(self.answers))
        done = subprocess.run([sys.executable, "-B", ADAPTER, *args], text=True, capture_output=True, check=False, timeout=60,
                              env={"PATH": "/usr/bin:/bin", "TZ": "UTC", "LC_ALL": "C", "PBS_BIN": str(self.bin), "NUI_SINCE": "1795411000"})
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout

    def calls(self):
        return (self.bin / "calls").read_text().splitlines()

    def jobs(self):
        """Of workloadquery: attributes by job."""
        head, *lines = self.call("workloadquery").splitlines()
        self.assertEqual(head, f"SC=0 COUNT={len(lines)} RESPONSE=done")
        return {line.split(" ", 1)[0]: dict(w.split("=", 1) for w in line.split(" ", 1)[1].split(";")) for line in lines}

    def test_nodes(self):
        self.plays("pbsnodes .*", "pbsnodes-dsv-busy")
        self.assertEqual(self.call("clusterquery"), "SC=0 COUNT=1 RESPONSE=done\nvm CPROC=8;CMEMORY=24105;AMEMORY=24005;STATE=Idle\n")

    def test_states_of_nodes(self):
        for state, said in (("free", "Idle"), ("job-busy", "Idle"), ("offline,job-busy", "Draining"), ("down,offline", "Down"), ("state-unknown,down", "Down"),
                            ("", "Down")):
            self.answers = []
            self.plays("pbsnodes .*", text=f"Name=n1\x1fstate={state}\x1fcomment=fan; \"left\"\x1fresources_available.ncpus=4\n")
            line = self.call("clusterquery").splitlines()[1]
            self.assertIn(f"STATE={said}", line)
            self.assertEqual('CAT="fan; \\"left\\""' in line, said != "Idle")

    def test_waiting_and_running(self):
        for name, state in (("qstat-dsv-queued", "Idle"), ("qstat-dsv-running", "Running"), ("qstat-f-queued", "Idle"), ("qstat-f-running", "Running"),
                            ("qstat-f-suspended", "Suspended"), ("qstat-f-requeued", "Idle")):
            self.answers = self.answers[:1]
            self.plays("qstat -t -f .*", name)
            [(ident, job)] = self.jobs().items()
            self.assertEqual((ident, job["STATE"], job["UNAME"], job["QUEUETIME"]), ("0.vm", state, "alice2", "1795411932"), name)
            self.assertEqual((job["TASKS"], job["DPROCS"], job["WCLIMIT"], job["RCLASS"], job.get("RMEM")), ("1", "2", "300", "workq", "100"), name)
            self.assertEqual((job.get("STARTTIME"), job.get("TASKLIST")), ("1795411933", "vm") if state in ("Running", "Suspended") else (None, None), name)

    def test_array(self):
        """Its elements are jobs; the array is none."""
        self.plays("qstat -t -f .*", "qstat-t-f-array")
        self.assertEqual({i: j["STATE"] for i, j in self.jobs().items()}, {f"3[{n}].vm": "Idle" for n in (1, 2, 3)})

    def test_history(self):
        """What ended since: asked for by its time, with the code; what never ran has no start."""
        self.answers = []
        self.plays("qselect -x -T -s FXM -tm.gt.202611230511.40", text="2.vm\n0.vm\n")
        self.plays("qstat -t -f .*", text="")
        code, text, _ = recorded("qstat-x-f-exit3")
        self.plays("qstat -x -f .* 2.vm 0.vm", text=text + recorded("qstat-x-f-deleted")[1], code=code)
        jobs = self.jobs()
        self.assertEqual({k: jobs["2.vm"][k] for k in ("STATE", "EXITCODE", "STARTTIME", "COMPLETETIME", "TASKLIST", "CPUTIME")},
                         {"STATE": "Completed", "EXITCODE": "3", "STARTTIME": "1795411952", "COMPLETETIME": "1795411953", "TASKLIST": "vm", "CPUTIME": "0"})
        self.assertEqual((jobs["0.vm"]["STATE"], jobs["0.vm"].get("STARTTIME")), ("Removed", None))

    def job(self, **more):
        said = {"Job_Name": "t", "Job_Owner": "ann@h", "job_state": "Q", "queue": "workq", "ctime": "Mon Nov 23 05:32:12 2026", "Hold_Types": "n",
                "schedselect": "1:ncpus=1", **more}
        return "\x1f".join(["Job Id: 7.vm", *(f"{k}={v}" for k, v in said.items())]) + "\n"

    def test_signals_holds_chunks(self):
        run = {"stime": "Mon Nov 23 05:32:13 2026", "exec_vnode": "(a:ncpus=2:mem=1gb+b:ncpus=1)+(c:ncpus=3)", "mtime": "Mon Nov 23 05:40:00 2026"}
        for more, wanted in (
                ({"job_state": "F", "Exit_status": "271", **run}, {"EXITCODE": "143", "STATE": "Completed"}),
                ({"job_state": "F", "Exit_status": "271", "substate": "91", **run}, {"EXITCODE": "143", "STATE": "Removed"}),
                ({"job_state": "F", "Exit_status": "-11", **run}, {"EXITCODE": "255"}),
                ({"job_state": "R", "schedselect": "6:ncpus=1", **run}, {"TASKLIST": "a:a:b:c:c:c", "TASKS": "6"}),
                ({"job_state": "H", "Hold_Types": "u"}, {"STATE": "UserHold"}), ({"job_state": "H", "Hold_Types": "us"}, {"STATE": "SystemHold"}),
                ({"job_state": "H", "Hold_Types": "o"}, {"STATE": "SystemHold"}),
                ({"schedselect": "1:ncpus=4+2:ncpus=1"}, {"STATE": "SystemHold"}),
                ({"schedselect": "2:ncpus=4:ngpus=1:mem=2gb", "Resource_List.place": "scatter"},
                 {"TASKS": "2", "DPROCS": "4", "GRES": "gpus:1", "RMEM": "2048", "NODES": "2"}),
                ({"Execution_Time": "Mon Nov 23 06:00:00 2026"}, {"STARTDATE": "1795413600"}), ({"Account_Name": "phys"}, {"ACCOUNT": "phys"})):
            self.answers = self.answers[:1]
            self.plays("qstat -t -f .*", text=self.job(**more))
            job = self.jobs()["7.vm"]
            self.assertEqual({k: job.get(k) for k in wanted}, wanted)

    def test_what_users_forge(self):
        """Attributes and whole jobs in a job's own variables: what the server says first counts, a job that is there twice is asked for alone."""
        forged = "A=1\nJob Id: 8.vm\x1fJob_Name=no\x1fJob_Owner=eve@h\x1fjob_state=Q\x1fctime=Mon Nov 23 05:00:00 2026\x1fVariable_List=x"
        real = self.job(Job_Owner="bob@h").replace("7.vm", "8.vm")
        self.plays("qstat -t -f .*", text=self.job(Variable_List=forged, euser="ann") + real)
        self.plays("qstat -x -f .* 8.vm", text=real)
        jobs = self.jobs()
        self.assertEqual({i: j["UNAME"] for i, j in jobs.items()}, {"7.vm": "ann", "8.vm": "bob"})
        self.answers = self.answers[:1]
        self.plays("qstat -t -f .*", text=self.job(Variable_List="A=1\x1fjob_state=R\x1feuser=root", euser="ann", Account_Name="x"))
        job = self.jobs()["7.vm"]
        self.assertEqual((job["STATE"], job["UNAME"]), ("Idle", "ann"))

    def test_start(self):
        self.plays("qstat -f .* 0.vm", "qstat-dsv-queued")
        self.plays(r"qrun -H \(v1:ncpus=2:mem=100mb\) 0.vm")
        self.assertEqual(self.call("jobstart", "0.vm", "v1", "alice2"), "SC=0  RESPONSE=done\n")
        self.assertEqual(self.call("jobstart", "0.vm", "v1", "bob", code=1), "SC=-1 RESPONSE=there is no job 0.vm of bob\n")
        self.assertEqual(sum(c.startswith("qrun") for c in self.calls()), 1)

    def test_start_refused(self):
        for answer, says in (("qrun-by-user", "Unauthorized Request"), ("qrun-no-node", "Request invalid for state of job")):
            self.answers = []
            self.plays("qstat -f .* 0.vm", "qstat-dsv-queued")
            self.plays("qrun .*", answer)
            self.assertRegex(self.call("jobstart", "0.vm", "v1", "alice2", code=1), f"^SC=-1 RESPONSE=qrun: {says}")
        self.answers = []
        self.plays("qstat -f .* 0.vm", "qstat-dsv-running")
        self.assertEqual(self.call("jobstart", "0.vm", "v1", "alice2", code=1), "SC=-1 RESPONSE=job 0.vm is in state R\n")
        self.plays("qstat -f .* 99999", "qstat-unknown")
        self.assertRegex(self.call("jobstart", "99999", "v1", "alice2", code=1), "Unknown Job Id")
        self.assertRegex(self.call("jobstart", "--help", "v1", "alice2", code=1), "is no job of the server's")

    def test_the_rest(self):
        """Resumed on the same vnodes: qsig -s resume would wait for a scheduler that is off."""
        self.plays("qstat -f .* 0.vm", "qstat-f-suspended")
        for pattern in (r"qrun -H \(vm:ncpus=2:mem=102400kb\) 0.vm", "qsig -s suspend 0.vm", "qrerun 0.vm", "qhold -h u 0.vm", "qrls -h uos 0.vm"):
            self.plays(pattern)
        self.plays("qdel 0.vm", code=35, err="qdel: Job has finished 0.vm\n")
        self.plays("qsub .*", text="17.vm\n")
        for args in (("jobresume", "0.vm"), ("jobsuspend", "0.vm"), ("jobrequeue", "0.vm"), ("jobmodify", "-j", "0.vm", "--set", "hold=user"),
                     ("jobmodify", "-j", "0.vm", "--clear", "hold"), ("jobcancel", "0.vm")):
            self.assertEqual(self.call(*args), "SC=0  RESPONSE=done\n")
        self.assertEqual(self.call("jobsubmit", "UNAME=ann", "WCLIMIT=608", "TASKS=3", "DPROCS=2", "RMEM=100", "NAME=alpha.7.3f09c2aa", "IWD=/w",
                                   "EXEC=/w/run", "RCLASS=workq", "ACCOUNT=phys"), "SC=0 JOBID=17.vm RESPONSE=done\n")
        self.assertEqual(self.calls()[-1], "qsub -N alpha.7.3f09c2aa -l select=3:ncpus=2:mem=100mb -l walltime=608 -r n -o /dev/null -e /dev/null "
                                           "-q workq -A phys -- /w/run")

    def test_first_configuration(self):
        self.plays("qstat -Q .*", "qstat-Qf")
        self.plays("qstat -B .*", "qstat-Bf")
        self.plays("pbsnodes .*", "pbsnodes-dsv-busy")
        said = self.call("firstconfig").splitlines()
        for line in ("SERVERMODE      TEST", "CLASSCFG[workq]", "#   vm CPROC=8;CMEMORY=24105;AMEMORY=24005;STATE=Idle"):
            self.assertIn(line, said)
        self.assertFalse([line for line in said if "qmgr" in line])  # it is as it must be already
        program = Path(os.environ["NUI_BUILD"]) / "local/nui-local"
        done = subprocess.run([program, "--from-pbs"], text=True, capture_output=True, check=False, timeout=60,
                              env={"PATH": "/usr/bin:/bin", "PBS_BIN": str(self.bin)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line for line in done.stdout.splitlines() if not line.startswith("RMCFG")], [line for line in said if not line.startswith("RMCFG")])
        file = self.bin / "first.cfg"
        file.write_text("GRID demo\nSITENAME alpha\n" + done.stdout)
        checked = subprocess.run([program, "--check", "--config", file], text=True, capture_output=True, check=False, timeout=60)
        self.assertNotIn("RMCFG", checked.stderr)
        self.assertNotIn("CLASSCFG", checked.stderr)


if __name__ == "__main__":
    unittest.main()
