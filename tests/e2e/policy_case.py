"""PolicyCase: one live nui-local for a class, whose configuration each test has taken by a reload."""
import os
import signal

from onesite import SiteCase, wait_for


class PolicyCase(SiteCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = cls.state / "shared"
        cls.shared.mkdir(mode=0o711)
        cls.script = cls.shared / "job.sh"
        cls.script.write_text("#!/bin/sh\nread x < \"$1\"\nexit $2\n")
        cls.script.chmod(0o755)
        cls.pipes, cls.changed = [], set()
        cls.alpha = cls.site()
        cls.refusals = 0
        cls.alpha.write(f"JOBDIR {cls.state}/jobs\nADMIN1 root\nRMPOLLINTERVAL 2\n")
        cls.own = cls.alpha.config.read_text()
        cls.alpha.config.write_text(cls.own + "NODECFG[first] PROCS=1\n")

    def reload(self, text):
        count = len(self.alpha.logged("configuration_taken"))
        whole = self.alpha.config.with_suffix(".new")  # a reading of before may be under way
        whole.write_text(self.own + text)
        whole.rename(self.alpha.config)
        os.kill(self.alpha.process.pid(), signal.SIGHUP)

        def taken():
            refused = self.alpha.logged("configuration_refused")
            if len(refused) > self.refusals:
                type(self).refusals = len(refused)
                raise AssertionError(f"{refused[-1]}\n{text}")
            return len(self.alpha.logged("configuration_taken")) > count
        wait_for("the configuration", taken, 30, self.alpha.log)

    def tearDown(self):
        self.clear(self.alpha)
        if self.changed:
            self.ok(self.alpha, "mnodectl", "-m", "state=up", *self.changed)
            self.changed.clear()
        for pipe in self.pipes:
            os.close(pipe)
        self.pipes.clear()

    def msub(self, *args, account="games"):
        return self.ok(self.alpha, "msub", *args, account=account).strip()

    def job(self, ident):
        return self.data(self.alpha, "checkjob", ident)["job"]

    def wait_job(self, ident, state):
        wait_for(f"{ident} to be {state}", lambda: self.job(ident)["state"] == state, 60, self.alpha.log)

    def waiter(self, *args, **options):
        return self.msub("-t", "1:00:00", *args, "/usr/bin/sleep", "3600", **options)

    def where(self, ident):
        self.wait_job(ident, "Running")
        return "".join(r["node"] for r in self.data(self.alpha, "showres", "-n", ident))
