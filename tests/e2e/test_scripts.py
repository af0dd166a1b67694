"""Scripts written for Slurm and PBS, run as they are: directives, variables and file names mean what they mean there;
what cannot be had refuses the job with one sentence."""
import os
import shutil
import subprocess
import unittest
from pathlib import Path

from fixture import main
from onesite import SiteCase, layout, wait_for

SERIAL = """#!/bin/bash
#SBATCH --job-name=serial
#SBATCH --output=logs/%x-%j.out
#SBATCH --time=00:05:00
#SBATCH --mem=200M
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=someone@example.org
set -eu
cd "$SLURM_SUBMIT_DIR"
echo "$SLURM_JOB_NAME $SLURM_JOB_ID on $SLURM_JOB_NODELIST of $SLURM_CLUSTER_NAME"
echo "to the same file" >&2
"""

HYBRID = """#!/bin/bash
#SBATCH -N 2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=2
#SBATCH -t 5
#SBATCH -p short
#SBATCH -o hybrid.out -e hybrid.err
#SBATCH --gres=gpu:2
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
echo "$SLURM_NNODES $SLURM_NTASKS $SLURM_NTASKS_PER_NODE $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE $OMP_NUM_THREADS"
echo "$SLURM_JOB_PARTITION $SLURM_PROCID ${SLURM_ARRAY_TASK_ID:-none}"
echo problem >&2
"""

SWEEP = """#!/bin/bash
#SBATCH --array=3-7:2%2
#SBATCH --output=sweep_%A_%3a.txt
#SBATCH --time=5
#SBATCH --export=NONE
PARAMETERS=(0 0 0 red 0 blue 0 green)
echo "${PARAMETERS[$SLURM_ARRAY_TASK_ID]} $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX ${MINE:-unset}"
"""

TORQUE = """#!/bin/sh
#PBS -N mpi
#PBS -l nodes=2:ppn=2:fast,walltime=00:05:00
#PBS -l mem=400mb
#PBS -q short
#PBS -j oe
#PBS -S /bin/bash
#PBS -m abe
#PBS -V
cd $PBS_O_WORKDIR
NP=$(wc -l < $PBS_NODEFILE)
HOSTS=($(sort -u $PBS_NODEFILE))
echo "$PBS_JOBNAME $PBS_NUM_NODES*$PBS_NUM_PPN=$PBS_NP $NP ${#HOSTS[@]} in $PBS_QUEUE for $PBS_WALLTIME with $MINE"
echo joined >&2
"""

PRO = """#!/bin/bash
#PBS -l select=2:ncpus=2:mpiprocs=1:ompthreads=2:mem=100mb
#PBS -l walltime=00:05:00
#PBS -l place=scatter
#PBS -J 1-2
echo "$PBS_ARRAY_INDEX $OMP_NUM_THREADS $NCPUS $(sort -u $PBS_NODEFILE | wc -l)"
"""

RUN = """#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=2 -t 5 -o run.out -e run.err
echo first | nui run -l sh -c 'read line; echo "$NUI_TASK of $NUI_TASKS on $NUI_NODE: $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $line"' | sort
nui run -n 3 sh -c 'exit $NUI_TASK'
echo "highest $?"
nui run -n 5 true
echo "too many $?"
nui run --kill-on-bad-exit sh -c 'test $NUI_TASK != 1 || exit 3; sleep 600'
echo "ended $?"
nui run sleep 600 &
sleep 1
kill -TERM $!
wait $!
echo "stopped $?"
"""

# what each process knows, and that they know each other
MPI = """#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=2 -t 5 -o mpi.out
mpiexec /usr/bin/python3 -c '
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
sys.stdout.write(f"{world.rank} {world.size} {world.allreduce(world.rank)}\\n")'
"""


def mpi_missing():
    done = subprocess.run(["/usr/bin/python3", "-c", "import mpi4py.MPI"], capture_output=True)
    return done.returncode != 0


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Scripts(SiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.account = layout.account_of("alice")
        cls.shared = cls.state / "shared"
        cls.shared.mkdir()
        cls.shared.chmod(0o1777)
        (cls.shared / "bin").mkdir()
        shutil.copy(cls.programs["nui"], cls.shared / "bin")
        cls.alpha = cls.site()
        cls.alpha.write(f"JOBDIR {cls.state}/jobs\nPORTRANGE 20000-20099\nADMIN1 root\n"
                        "NODECFG[alpha[01-04]] PROCS=4 MEM=2G FEATURES=fast GRES=gpu:2\nCLASSCFG[short] PRIORITY=5\n"
                        "NODECFG[alpha05] PROCS=4 MEM=2G FEATURES=typed GRES=gpu.a100:2\n")
        cls.alpha.start()

    def submit(self, name, text, *args, **options):
        path = self.shared / f"{name}.sh"
        path.write_text(text)
        path.chmod(0o755)
        return self.ok(self.alpha, "msub", *args, path, account=self.account, **options).split()

    def ran(self, ident):
        """The job's directory, when it has ended well."""
        wait_for(f"{ident} to end", lambda: self.data(self.alpha, "checkjob", ident)["job"]["state"] == "Completed", 60,
                 self.alpha.log)
        return Path(f"{self.state}/jobs/{ident}/work")

    def test_a_serial_job(self):
        ident, = self.submit("serial", SERIAL)
        number = ident.split(".")[1]
        work = self.ran(ident)
        text = (work / f"logs/serial-{number}.out").read_text()
        node = (work / "nodefile").read_text().strip()
        self.assertEqual(text, f"serial {number} on {node} of alpha\nto the same file\n")
        self.assertEqual((work / "logs").stat().st_uid, (work / "script").stat().st_uid)

    def test_nodes_tasks_and_threads(self):
        ident, = self.submit("hybrid", HYBRID)
        work = self.ran(ident)
        self.assertEqual((work / "hybrid.out").read_text(), "2 4 2 2(x2) 4(x2) 2\nshort 0 none\n")
        self.assertEqual((work / "hybrid.err").read_text(), "problem\n")

    def test_an_array(self):
        idents = self.submit("sweep", SWEEP, env={"MINE": "here"})
        self.assertEqual(len(idents), 3)
        said, numbers = [], set()
        for ident in idents:
            out, = self.ran(ident).glob("sweep_*.txt")
            numbers.add(out.name.split("_")[1])
            said.append((out.name.split("_")[2], out.read_text().strip()))
        self.assertEqual(said, [("003.txt", "red 3 3 7 unset"), ("005.txt", "blue 3 3 7 unset"),
                                ("007.txt", "green 3 3 7 unset")])
        self.assertEqual(len(numbers), 1)
        self.assertTrue(numbers.pop().isdigit())

    def test_tasks_by_run(self):
        ident, = self.submit("run", RUN, "--env", f"PATH={self.shared}/bin:/usr/bin:/bin")
        work = self.ran(ident)
        nodes = (work / "nodefile").read_text().split()
        lines = (work / "run.out").read_text().splitlines()
        self.assertEqual(lines[:4], [f"{i}: {i} of 4 on {nodes[i]}: {i} {i % 2} {i // 2} {('first', '')[i > 0]}"
                                     for i in range(4)])
        self.assertEqual(lines[4:], ["highest 2", "too many 1", "ended 143", "stopped 143"])
        said = (work / "run.err").read_text()
        self.assertIn("nui run: the job has 4 tasks, not 5\n", said)
        self.assertIn("nui run: task 1 ended with 3: the others are ended\n", said)
        outside = subprocess.run([self.programs["nui"], "run", "true"], capture_output=True, text=True)
        self.assertEqual((outside.returncode, len(outside.stderr.splitlines())), (1, 1))
        self.assertIn("here is no job", outside.stderr)

    def test_a_signal_before_the_limit(self):
        """The tasks get it by nui run; the script and what else it has forked do not. Later, where they were not there yet."""
        for half in (5, 20, 80):
            ident, = self.submit("warned", f"""#!/bin/bash
#SBATCH -n 2 -t 0:{2 * half} --signal=USR1@{half}
sleep 600 &
nui run sh -c 'trap "echo told $NUI_TASK; exit 5" USR1; while :; do sleep 0.1; done' | sort
echo ${{PIPESTATUS[0]}}
kill $! && echo lives
""", "--env", f"PATH={self.shared}/bin:/usr/bin:/bin")
            wait_for(f"{ident} to end", lambda: self.data(self.alpha, "checkjob", ident)["job"]["state"] not in ("Idle", "Starting", "Running"),
                     60 + 2 * half, self.alpha.log)
            said = Path(f"{self.state}/jobs/{ident}/work/stdout").read_text()
            if "lives" in said:
                break
        self.assertEqual(said, "told 0\ntold 1\n5\nlives\n")

    def test_tasks_by_a_launcher(self):
        """It gets a node and a script; what the task is told comes through whole, though the launcher passes nothing on."""
        launcher = self.shared / "there"
        launcher.write_text(f'#!/bin/sh\necho "$1 $2" >>{self.shared}/asked\nexec env -i PATH=/usr/bin:/bin /bin/sh -c "$3"\n')
        launcher.chmod(0o755)
        ident, = self.submit("launcher", f"""#!/bin/bash
#SBATCH --ntasks=4 --ntasks-per-node=2 --time=5 --output=run.out
export NUI_LAUNCHER="{launcher} -q" MINE="it's
\\$HOME"
mkdir sub; cd sub
nui run sh -c 'echo "$NUI_TASK $NUI_NODE ${{PWD##*/}} $0 $(echo "$MINE" | tr "\\n" +)"; exit $NUI_TASK' "a  'word\\"" | sort
echo ${{PIPESTATUS[0]}}; ls -A .. | grep -c '^.task'
NUI_LAUNCHER=/nonexistent nui run true; echo $?
""", "--env", f"PATH={self.shared}/bin:/usr/bin:/bin")
        work = self.ran(ident)
        nodes = (work / "nodefile").read_text().split()
        self.assertEqual((work / "run.out").read_text().splitlines()[:7],
                         [f"{i} {nodes[i]} sub a  'word\" it's+$HOME+" for i in range(4)] + ["3", "0", "nui run: /nonexistent: No such file or directory"])
        self.assertEqual((self.shared / "asked").read_text(), 2 * f"-q {nodes[2]}\n")

    @unittest.skipIf(mpi_missing(), "no python3-mpi4py: see deploy/packages")
    def test_an_mpi_finds_its_places(self):
        ident, = self.submit("mpi", MPI)
        self.assertEqual(sorted((self.ran(ident) / "mpi.out").read_text().splitlines()), [f"{i} 4 6" for i in range(4)])

    def test_torque(self):
        ident, = self.submit("torque", TORQUE, env={"MINE": "here"})
        work = self.ran(ident)
        self.assertEqual((work / "stdout").read_text(), "mpi 2*2=4 4 2 in short for 300 with here\njoined\n")
        self.assertFalse((work / "stderr").exists())

    def test_pbs_professional(self):
        idents = self.submit("pro", PRO)
        self.assertEqual([(self.ran(i) / "stdout").read_text() for i in idents], ["1 2 2 2\n", "2 2 2 2\n"])

    def test_gpus_of_a_type_are_among_the_whole(self):
        """A node has two, both of a type: who asks for that type and who asks for any share them."""
        idents = []

        def submit(name, *gpus, limit="1:00:00", state="Running"):
            gate = self.shared / f"{name}.gate"
            ident, = self.submit(name, f"#!/bin/sh\nuntil [ -e {gate} ]; do sleep 0.05; done\n", "-t", limit, "--features", "typed", *gpus)
            idents.append(ident)
            self.addCleanup(gate.touch)
            if state == "Running":
                running(ident)
            return ident, gate

        def running(ident):
            wait_for(f"{ident} to run", lambda: self.data(self.alpha, "checkjob", ident)["job"]["state"] == "Running", 60, self.alpha.log)

        def waits(ident):
            """What came after it runs: it has been looked at, and there was no room for it."""
            self.assertEqual(self.data(self.alpha, "checkjob", ident)["job"]["state"], "Idle")

        _, typed_gate = submit("typed", "--gpus", "a100:2")
        whole, whole_gate = submit("whole", "--gpus", "1", state="Idle")
        _, after_gate = submit("after")
        waits(whole)
        typed_gate.touch()
        running(whole)
        typed, gate = submit("more", "--gpus", "a100:2", state="Idle")
        _, last_gate = submit("one", "--gpus", "a100:1", limit="5:00")  # over before the other could have two
        waits(typed)
        for one in (whole_gate, last_gate, after_gate, gate):
            one.touch()
        for ident in idents:
            self.ran(ident)
        self.refused(self.alpha, "msub", "--features", "typed", "--gpus", "3", self.shared / "one.sh", "-t", "5:00",
                     account=self.account, code=1, says="all nodes that are up hold 0")

    def test_a_directory_that_its_user_has_there(self):
        """It starts there, as its account; what it prints and was brought stays in the job's own, which it knows."""
        home = self.shared / "it's a project"
        home.mkdir()
        shutil.chown(home, self.account)
        for name, head in (("chdir", f'#SBATCH -t 5 --chdir="{home}"'), ("pbs-d", f'#PBS -l walltime=5 -d "{home}"')):
            ident, = self.submit(name, f"#!/bin/bash\n{head}\npwd; cd ${{SLURM_SUBMIT_DIR:-$PBS_O_WORKDIR}}x 2>/dev/null\n"
                                       f'pwd; cat "$NUI_JOBDIR/script" >made-by-{name}\n')
            work = self.ran(ident)
            self.assertEqual((work / "stdout").read_text(), f"{home}\n" * 2)
            made = home / f"made-by-{name}"
            self.assertEqual((made.read_text(), made.owner()), ((work / "script").read_text(), self.account))
        # In its user's home; and by the option, which wins.
        ident, = self.submit("home", "#!/bin/sh\n#SBATCH --chdir=/nowhere\npwd\n", "-t", 5, "--chdir", "~")
        self.assertEqual((self.ran(ident) / "stdout").read_text().strip(), os.path.expanduser(f"~{self.account}"))

    def test_a_directory_that_is_not_there(self):
        closed = self.shared / "closed"
        closed.mkdir(mode=0o700)
        for where, why in (("/nowhere/at/all", "does not exist at this site"), (closed, "may not be entered by the account"),
                           (self.shared / "bin/nui", "is no directory at this site")):
            ident, = self.submit("lost", "#!/bin/sh\necho ran\n", "-t", 5, "--chdir", where)
            wait_for(f"{ident} to end", lambda: self.data(self.alpha, "checkjob", ident)["job"]["state"] == "Failed", 60, self.alpha.log)
            self.assertIn(f"the directory where it was to start, {where}, {why}", self.ok(self.alpha, "checkjob", ident))
            self.assertEqual((Path(f"{self.state}/jobs/{ident}/work") / "stdout").read_text(), "")

    def test_what_cannot_be_had_is_refused(self):
        for line, why in (("#SBATCH --signal=KILL@60", "line 2: #SBATCH --signal: --signal: signal 'KILL@60': wanted"),
                          ("#SBATCH --chdir=work", "line 2: #SBATCH --chdir: work is a directory of the machine where"),
                          ("#PBS -d ~else/x", "wanted a path at the site"),
                          ("#SBATCH --output=/scratch/out", "inside the job's directory"),
                          ("#PBS -l nodes=1:ppn=2+1:ppn=4", "several kinds"),
                          ("#PBS -W stageout=a@b:c", "--stage-in and --stage-out move files")):
            path = self.shared / "refused.sh"
            path.write_text(f"#!/bin/sh\n{line}\ntrue\n")
            self.refused(self.alpha, "msub", path, account=self.account, code=2, says=why)
        self.assertNotIn("refused", str(self.data(self.alpha, "showq")))
        other = self.site("beta", "beta")
        other.write(f"JOBDIR {self.state}/jobs-beta\nADMIN1 root\nRMCFG[x] TYPE=NATIVE "
                    + " ".join(f"{call}URL=exec:///bin/true" for call in ("CLUSTERQUERY", "WORKLOADQUERY", "JOBSTART", "JOBCANCEL")) + "\n")
        other.start()
        self.refused(other, "msub", "-t", "5:00", "--signal", "USR1@60", "--wrap", "true", account=self.account, code=1,
                     says="the resource manager here (NATIVE) sends a job no signal before its limit")

    def test_a_job_without_foreign_words_has_no_foreign_variables(self):
        ident, = self.submit("plain", "#!/bin/sh\nenv | cut -d= -f1 | grep -E '^(SLURM|PBS)' || echo none\n", "-t", "5:00")
        self.assertEqual((self.ran(ident) / "stdout").read_text(), "none\n")


if __name__ == "__main__":
    main()
