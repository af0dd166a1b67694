"""Twenty scripts of scientists' (tests/data/scripts), unchanged: on processes of nui-local's, on a real Slurm, and by its own sbatch."""
import os
import shutil
import unittest
from pathlib import Path

from fixture import ROOT, main
from onesite import SiteCase, layout, wait_for
from test_scripts import mpi_missing
from test_slurm_site import LACKING, SlurmSite

SCRIPTS = ROOT / "tests/data/scripts"
CHAIN = ("prepare", "simulate", "collect")
SINGLE = sorted(p.stem for p in SCRIPTS.glob("*.sh") if p.stem not in CHAIN and not (p.stem == "mpi" and mpi_missing()))
ENDED = ("Completed", "Failed", "Removed", "Cancelled")


def wanted(name):
    """What it prints: of an array, or of runs with several arguments, of each."""
    one = SCRIPTS / f"{name}.want"
    return [p.read_text() for p in ([one] if one.exists() else sorted(SCRIPTS.glob(f"{name}.*.want")))]


class Everyday:
    def place(self, name):
        """A directory of the user's own."""
        place = self.shared / name
        place.mkdir(exist_ok=True)
        shutil.chown(place, self.account)
        return place

    def submit(self, name, *args, depend=()):
        path = self.shared / f"{name}.sh"
        shutil.copy(SCRIPTS / path.name, path)
        return self.ok(self.alpha, "msub", "-q", "debug", *depend, path, *args, account=self.account).split()

    def printed(self, ident):
        """By a job that has ended well."""
        detail = wait_for(f"{ident} to end", lambda: (lambda d: d["job"]["state"] in ENDED and d)(self.data(self.alpha, "checkjob", ident)),
                          90, self.alpha.log)
        work = Path(detail["job"]["directory"])
        files = [p for pattern in ("stdout", "*.out", "*.log") for p in work.glob(pattern)]
        text = "".join(p.read_text() for p in files)
        self.assertEqual(detail["job"]["state"], "Completed", f"{ident}: {text}{detail}")
        return text

    def test_single(self):
        idents = {name: self.submit(name) for name in SINGLE}
        for name, those in idents.items():
            with self.subTest(name):
                self.assertEqual([self.printed(i) for i in those], wanted(name))

    def test_chain(self):
        place = self.place("chain")
        first, = self.submit("prepare", place, depend=("--hold",))
        middle = [self.submit("simulate", place, n, depend=("--depend", f"afterok:{first}"))[0] for n in (2, 3)]
        last, = self.submit("collect", place, depend=("--depend", f"afterok:{middle[0]}:{middle[1]}"))
        self.ok(self.alpha, "releasehold", "-u", first, account=self.account)
        self.assertEqual([self.printed(i) for i in (first, *middle, last)], [*wanted("prepare"), *wanted("simulate"), *wanted("collect")])


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class OnProcesses(Everyday, SiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.account = layout.account_of("alice")
        cls.shared = cls.state / "shared"
        cls.shared.mkdir()
        cls.shared.chmod(0o1777)
        cls.alpha = cls.site()
        cls.alpha.write(f"JOBDIR {cls.state}/jobs\nADMIN1 root\nNODECFG[alpha[01-03]] PROCS=4 MEM=4G GRES=gpu:2\nCLASSCFG[debug] PRIORITY=5\n")
        cls.alpha.start()


@unittest.skipIf(LACKING, f"Slurm's packages are not installed ({LACKING}): see deploy/packages")
class OnSlurm(Everyday, SlurmSite):
    nodes = [(f"c{i}", {"CPUs": 4, "RealMemory": 4000, "Gres": "gpu:2"}) for i in (1, 2, 3)]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.account = cls.user
        cls.shared = cls.state / "shared"
        cls.shared.mkdir()
        cls.shared.chmod(0o1777)

    def by_sbatch(self, name):
        """Slurm's own command; the number, and where its output comes to."""
        place = self.place(f"sbatch-{name}-{len(list(self.shared.iterdir()))}")
        path = place / f"{name}.sh"
        shutil.copy(SCRIPTS / path.name, path)
        done = self.rm.command("sbatch", "--parsable", "-p", "debug", f"--chdir={place}", "-o", "%a.printed", path, user=self.user)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip(), place

    def printed_there(self, number, place):
        self.rm.wait_job(number, ("COMPLETED", "FAILED", "CANCELLED"), 120)
        wait_for(f"{number} to have left Slurm's queue",
                 lambda: not self.rm.command("squeue", "-h", "-j", number, "-t", "PENDING,RUNNING,COMPLETING").stdout.strip(), 120)
        return [p.read_text() for p in sorted(place.glob("*.printed"))]

    def test_by_slurms_own(self):
        # Not mpi: outside of nui, mpiexec of Debian's Open MPI ends by a signal under several slurmd of one machine.
        names = [n for n in SINGLE if "#SBATCH" in (SCRIPTS / f"{n}.sh").read_text() and n != "mpi"]
        jobs = {name: self.by_sbatch(name) for name in names}
        for name, (number, place) in jobs.items():
            with self.subTest(name):
                self.assertEqual(self.printed_there(number, place), wanted(name))


if __name__ == "__main__":
    main()
