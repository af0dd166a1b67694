"""What must not happen to a site: a job that is Completed without having run, another's output shown, one
user's mistake or one full disk that takes away what others have."""
import os
import pwd
import shutil
import subprocess
import unittest

from fixture import main
from onesite import SharedCase, wait_for
from smalldisk import small_disk


class Shared(SharedCase):
    """Scripts, and waiting for states."""
    def script(self, name, text):
        path = self.shared / f"{name}.sh"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(0o755)
        return path

    def msub(self, site, *args, account=None, **options):
        return self.ok(site, "msub", *args, account=account or self.account, **options).strip()

    def job(self, site, ident):
        return self.data(site, "checkjob", ident)["job"]

    def wait_job(self, site, ident, *states):
        wait_for(f"{ident} to be {' or '.join(states)}", lambda: self.job(site, ident)["state"] in states, 60,
                 site.log)
        return self.job(site, ident)

    def output(self, site, ident):
        return (self.state / f"jobs-{site.name}" / ident / "work" / "stdout").read_text()


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Numbers(Shared):
    """The state directory is new, or an older copy of it; JOBDIR was kept."""

    def config(self, site):
        site.write(f"JOBDIR {self.state}/jobs-{site.name}\nADMIN1 root\nNODECFG[{site.site}[01-02]] PROCS=2 MEM=2G\n")

    def run_one(self, site, text, account):
        ident = self.msub(site, "-t", "5:00", self.script("one", f"#!/bin/sh\necho {text} by $(id -un)\n"),
                          account=account)
        self.assertEqual(self.wait_job(site, ident, "Completed", "Failed")["state"], "Completed")
        return ident

    def anew(self, site, backup=None):
        """A new state directory, or a copy."""
        site.stop()
        shutil.rmtree(site.dir)
        if backup:
            shutil.copytree(backup, site.dir)
            site.dir.chmod(0o711)
        self.config(site)
        site.start()

    def test_a_new_state(self):
        """No number is given again that a job has a directory of; where that came back later, and is another user's, the
        job of its number runs and sees nothing of it, and the directory stays."""
        site = self.site("fresh")
        self.config(site)
        site.start()
        first = self.run_one(site, "old", self.account)
        jobs = self.state / "jobs-fresh"
        self.anew(site)
        second = self.run_one(site, "second", self.other)
        self.assertEqual((first, second), ("alpha.1", "alpha.2"))
        self.assertEqual(self.output(site, first), f"old by {self.account}\n")
        for ident in (first, second):
            (jobs / ident).rename(self.state / ident)
        self.anew(site)
        (self.state / first).rename(jobs / first)
        again = self.run_one(site, "new", self.other)
        self.assertEqual(again, first)
        self.assertEqual(self.output(site, again), f"new by {self.other}\n")
        aside = jobs / f"{first}.aside-1" / "work" / "stdout"
        self.assertEqual(aside.read_text(), f"old by {self.account}\n")
        self.assertEqual(len(site.logged("directory_set_aside", first)), 1)

    def test_an_older_copy(self):
        """A backup from before a job came: its number is not given again, and its output stays its owner's. What waited
        when the backup was made waits again."""
        site = self.site("older")
        self.config(site)
        site.start()
        kept = self.run_one(site, "kept", self.account)
        held = self.msub(site, "-h", "-t", "5:00", self.script("held", "#!/bin/sh\necho held\n"))
        site.stop()
        shutil.copytree(site.dir, self.state / "backup")
        site.start()
        self.ok(site, "canceljob", held)
        lost = self.run_one(site, "lost", self.account)
        self.anew(site, self.state / "backup")
        self.assertEqual(self.job(site, held)["state"], "Idle")
        again = self.run_one(site, "again", self.other)
        self.assertEqual((lost, again), ("alpha.3", "alpha.4"))
        self.assertEqual(self.output(site, again), f"again by {self.other}\n")
        for ident, text in ((kept, "kept"), (lost, "lost")):
            self.assertEqual(self.output(site, ident), f"{text} by {self.account}\n")
        self.ok(site, "canceljob", held)


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Mistakes(Shared):
    def test_named_at_once(self):
        """What the user got wrong ends the job at once, with a sentence; nothing is deferred or tried again."""
        site = self.site("mistakes")
        site.write(f"JOBDIR {self.state}/jobs-mistakes\nADMIN1 root\nNODECFG[alpha01] PROCS=2 MEM=2G\n")
        site.start()
        for name, text, says in (
                ("interpreter", "#!/bin/bsah\necho\n", "the script's first line names /bin/bsah, which does not exist"),
                ("dos", "#!/bin/sh\r\necho\r\n", "the script has DOS line ends"),
                ("directory", f"#!{self.state}/gone/bin/python3\n", "gone/bin/python3, which does not exist"),
                ("plain", f"#!{site.config}\n", "which the account may not")):
            ident = self.msub(site, "-t", "5:00", self.script(name, text))
            job = self.wait_job(site, ident, "Failed", "Deferred", "Completed")
            self.assertEqual(job["state"], "Failed", job)
            self.assertEqual(job["reason_code"], "BadJob", job)
            self.assertIn(says, job["reason"])
            self.assertFalse(site.logged("start_failed", ident))


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class FullDisk(Shared):
    def setUp(self):
        self.disk = self.state / self._testMethodName
        if not small_disk(self.disk, "100m"):
            self.skipTest("no file system can be mounted here")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", str(self.disk)], check=True))
        self.site_ = self.site("full")
        self.site_.dir = self.disk / "state"
        self.addCleanup(self.site_.stop)

    def config(self, more=""):
        self.site_.write(f"JOBDIR {self.disk}/jobs\nADMIN1 root\nNODECFG[alpha01] PROCS=8 MEM=4G\n{more}")

    def gated(self, name, code):
        return self.script(name, f"#!/bin/sh\nuntil [ -e {self.shared}/{name}.gate ]; do sleep 0.05; done\nexit {code}\n")

    def fill(self):
        """A job fills the disk, and goes on trying."""
        script = self.script("fill", "#!/bin/sh\nwhile :; do cat /dev/zero 2>/dev/null; sleep 0.02; done\n")
        ident = self.msub(self.site_, "-t", "30:00", script)
        wait_for("the disk to be full", lambda: self.site_.logged("disk_full") and shutil.disk_usage(self.disk).free == 0,
                 60, self.site_.log)
        return ident

    def test_filled_by_a_job(self):
        """The others' ends are what they were; nothing new is taken, and why is said; the daemon stays, and can be
        started again; when there is room everything is as before."""
        site = self.site_
        self.config()
        site.start()
        good, bad = (self.msub(site, "-t", "30:00", self.gated(name, code), account=self.other)
                     for name, code in (("good", 0), ("bad", 3)))
        for ident in (good, bad):
            self.wait_job(site, ident, "Running")
        filler = self.fill()
        self.refused(site, "msub", "-t", "5:00", self.gated("new", 0), account=self.account, code=4,
                     says="no new work is taken: the file system of")
        (self.shared / "good.gate").touch()
        self.assertEqual(self.wait_job(site, good, "Completed", "Failed")["state"], "Completed")
        site.process.kill()
        site.start()
        (self.shared / "bad.gate").touch()
        self.assertEqual(self.wait_job(site, bad, "Completed", "Failed")["exit_code"], 3)
        self.assertEqual(self.job(site, filler)["state"], "Running")
        self.ok(site, "canceljob", filler)
        self.wait_job(site, filler, "Cancelled")
        (self.disk / "jobs" / filler / "work" / "stdout").unlink()
        wait_for("room", lambda: site.logged("disk_has_room"), 30, site.log)
        (self.shared / "new.gate").touch()
        self.wait_job(site, self.msub(site, "-t", "5:00", self.gated("new", 0)), "Completed")
        self.assertEqual((site.dir / "ballast").stat().st_blocks * 512, 16 << 20)

    def test_too_much_output(self):
        """JOBOUTPUTMAX: the job is ended and says so; the disk is not filled."""
        site = self.site_
        self.config("JOBOUTPUTMAX 20M\nKILLGRACE 1\n")
        site.start()
        script = self.script("chatty", "#!/bin/sh\nwhile :; do head -c 500000 /dev/zero; sleep 0.05; done\n")
        job = self.wait_job(site, self.msub(site, "-t", "30:00", script), "Failed", "Completed")
        self.assertEqual((job["state"], job["reason_code"]), ("Failed", "OutputLimit"), job)
        self.assertIn("grew past 20 MB", job["reason"])


@unittest.skipIf(os.geteuid() != 0, "needs to be root: jobs run as other accounts")
class Rights(Shared):
    """An administrator of the policy is not root."""
    def test_what_runs_is_not_changed(self):
        site = self.site("rights")
        admin = self.account
        site.write(f"JOBDIR {self.state}/jobs-rights\nADMIN1 root {admin}\nNODECFG[alpha01] PROCS=2 MEM=2G\n"
                   "GRIDCFG[known] MAXPROC=4\n")
        site.start()
        evil = self.script("evil", f"#!/bin/sh\nid > {self.shared}/who\n")
        before = self.ok(site, "showconfig")
        for key, value in (("NOTIFICATIONPROGRAM", evil), ("FEEDBACKPROGRAM", evil), ("CHECKPOINTHOOK", evil), ("SUPERVISE", evil), ("GRIDMAP", evil),
                           ("ADMIN1", "bob"), ("ADMIN3", "bob"), ("BANK", "127.0.0.1:1"), ("META", "127.0.0.1:1"),
                           ("GRIDCFG[evil]", "MAXPROC=9"), ("PEERCAP[evil]", "HOLDS=9"),
                           ("NOTIFICATIONACCOUNT", "root"), ("NOTIFICATIONURL", "http://127.0.0.1:1/"),
                           ("STAGEROOT", "/"), ("STAGEHOSTS", "127.0.0.1"), ("RMCFG[x]", f"BIN={self.shared}"),
                           ("RMCFG[x]", "USER=root"), ("STATDIR", "/etc")):
            with self.subTest(key=key):
                self.refused(site, "changeparam", key, value, account=admin, code=3, says="in the configuration file only")
        self.assertEqual(self.ok(site, "showconfig"), before)
        self.ok(site, "changeparam", "RESERVATIONDEPTH[0]", "3", account=admin)
        for key, value in (("GRIDCFG[known]", "MAXPROC=9"), ("gridcfg[DEFAULT]", "MAXPROC=8")):  # whom the file names
            self.ok(site, "changeparam", key, value, account=admin)

    def check(self, site):
        return subprocess.run([str(self.programs["nui-local"]), "--check", "--config", str(site.config)], text=True,
                              capture_output=True)

    def test_programs_are_roots(self):
        """What another account owns or may write, or a folder of it, is not run; what is run is nobody."""
        site = self.site("programs")
        place = self.state / "programs-hooks"
        place.mkdir(mode=0o755)
        hook = place / "hook"
        hook.write_text(f"#!/bin/sh\nid -un > {self.shared}/who.new; mv {self.shared}/who.new {self.shared}/who\n")
        hook.chmod(0o755)
        text = (f"JOBDIR {self.state}/jobs-programs\nADMIN1 root\nNODECFG[alpha01] PROCS=2 MEM=2G\n"
                f"NOTIFICATIONPROGRAM {hook}\n")
        site.write(text)
        uid = pwd.getpwnam(self.account).pw_uid
        for path in (hook, place):
            for spoil, mend, says in ((lambda: os.chown(path, uid, -1), lambda: os.chown(path, 0, -1), "is not root's"),
                                      (lambda: path.chmod(0o777), lambda: path.chmod(0o755), "can be written by others")):
                spoil()
                done = self.check(site)
                self.assertEqual(done.returncode, 1, path)
                self.assertIn(says, done.stderr)
                mend()
        self.assertEqual(self.check(site).returncode, 0)
        site.start()
        self.wait_job(site, self.msub(site, "-t", "5:00", self.script("fails", "#!/bin/sh\nexit 3\n")), "Failed")
        wait_for("the program", lambda: (self.shared / "who").exists(), 30, site.log)
        self.assertEqual((self.shared / "who").read_text(), "nobody\n")


if __name__ == "__main__":
    main()
