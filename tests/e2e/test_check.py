"""nui-local --check: unknown parameters, contradictions, names that nothing defines."""
import os
import re
import subprocess

from fixture import ROOT, main
from onesite import SiteCase, wait_for

GOOD = """NODECFG[n[01-04]] PROCS=2
FSPOLICY DEDICATEDPS
USERCFG[john] QLIST=hi:lo QDEF=hi FSTARGET=10.0 PRIORITY=5
QOSCFG[hi] PRIORITY=10
QOSCFG[lo] PRIORITY=1
CREDWEIGHT 1
USERWEIGHT 1
QOSWEIGHT 1
RESERVATIONQOSLIST[0] hi
"""


class Check(SiteCase):
    def check(self, text):
        site = self.site("checked")
        site.write(text, gridmap=False)
        done = subprocess.run([site.programs["nui-local"], "--config", site.config, "--check"],
                              capture_output=True, text=True, timeout=600)
        return done.returncode, done.stderr, site

    def test_good(self):
        code, words, site = self.check(GOOD)
        self.assertEqual((code, words), (0, ""))

    def test_warnings(self):
        """Taken, and said, each with its line."""
        for line, says in (
                ("GROUPCFG[bio] QLIST=hi:typo", "GROUPCFG[bio] QLIST: QoS typo is not defined (QOSCFG[typo])"),
                ("GROUPCFG[bio] QDEF=typo", "QDEF: QoS typo is not defined"),
                ("GROUPCFG[bio] QLIST=hi QDEF=lo", "GROUPCFG[bio] QDEF: lo is not in its QLIST"),
                ("RESERVATIONQOSLIST[1] hi typo", "QoS typo is not defined"),
                ("FSPOLICY NONE", "USERCFG[john] FSTARGET: has no effect: FSPOLICY is NONE"),
                ("USERWEIGHT 0", "USERCFG[john] PRIORITY: has no effect: USERWEIGHT is 0"),
                ("CREDWEIGHT 0", "QOSCFG[hi] PRIORITY: has no effect: CREDWEIGHT is 0"),
                ("RESERVATIONPOLICY NEVER\nRESERVATIONDEPTH[0] 3", "RESERVATIONPOLICY is NEVER"),
                ("BACKFILLPOLICY NONE\nRESERVATIONDEPTH[0] 3", "BACKFILLPOLICY is NONE"),
                ("SRCFG[x] HOSTLIST=node07 PERIOD=DAY", "SRCFG[x] HOSTLIST: no node is called node07"),
                ("SRCFG[x] HOSTLIST=n0[12] ACCOUNTLIST=phys", "account phys is not defined")):
            code, words, _ = self.check(GOOD + line + "\n")
            self.assertEqual(code, 0, words)
            self.assertIn(says, words, line)
            self.assertRegex(words, r"checked\.cfg: line \d+: ")

    def test_errors(self):
        for line, says in (
                ("RESERVATIONDEPHT[0] 2", "line 24: unknown parameter RESERVATIONDEPHT, did you mean "
                                          "RESERVATIONDEPTH?"),
                ("USERCFG[john] MAXJBO=2", "did you mean MAXJOB?"),
                ("USERCFG[john] MAXJOB=5,3", "MAXJOB"),
                ("BACKFILLPOLICY SOMETIMES", "BACKFILLPOLICY"),
                ("NODECFG[n01] PROCS=1", "node n01 is configured twice")):
            code, words, _ = self.check(GOOD + line + "\n")
            self.assertEqual((code, len(words.splitlines())), (1, 1), f"{line}: {words}")
            self.assertIn(says if not says.startswith("line") else says.split(": ", 1)[1], words, line)

    def test_maui_files(self):
        """Files as Maui's sites have them, mistakes and all, are taken as a policy; each line that means something else
        here, or nothing, is told (NUI_TABLES=update writes what is told); refused-*: what must not be passed over."""
        folder = ROOT / "tests" / "data" / "maui"
        files = sorted(folder.glob("*.cfg"))
        self.assertGreaterEqual(len(files), 8)
        for file in files:
            done = subprocess.run([self.site("any").programs["nui-local"], "--config", file.name, "--check"], cwd=folder,
                                  capture_output=True, text=True, timeout=600)
            report = file.with_suffix(".report")
            if os.environ.get("NUI_TABLES") == "update":
                report.write_text(done.stderr + done.stdout)
            self.assertEqual(done.returncode, file.name.startswith("refused-"), done.stderr)
            self.assertEqual(done.stderr + done.stdout, report.read_text(), file)
            lines = [int(n) for n in re.findall(r"\.cfg: line (\d+): ", done.stderr)]
            faults = int((re.findall(r"is refused: (\d+) fault", done.stderr) or [0])[0])
            for told in (lines[:len(lines) - faults], lines[len(lines) - faults:]):
                self.assertEqual(told, sorted(told), "in the order of the file, faults last")
            self.assertNotIn("that Nui does not have", done.stderr)

    def test_maui_files_of_a_site(self):
        """The same files are a site's with six lines more: nothing that was told of them is a fault then, but what would
        be dangerous; MAUIFILE is of the file, and neither of what was changed by hand nor of our own lines' values."""
        head = ("MAUIFILE TRUE\nSTATEDIR state\nSOCKET sock\nADMIN1 root\nNODECFG[own[1-4]] PROCS=2 FEATURES=ib\n"
                "NODECFG[helix-bm[1-4],desk[2-4],compute-0-[1-9],compute-1-[0-9]] PROCS=8\n")  # hosts of classes have to be there
        tried = 0
        for file in sorted((ROOT / "tests" / "data" / "maui").glob("*.cfg")):
            text = file.read_text(encoding="latin-1")
            if file.name.startswith("refused-") or re.search(r"SIMULATION|^SIM", text, re.M):
                continue
            copy = self.state / file.name
            copy.write_text(head + "".join(line for line in text.splitlines(True) if not re.match(
                "(?i)RMCFG(?!.* TYPE=(PBS|LL|SGE).*[^\\\\]$)", line.rstrip("\r\n"))), encoding="latin-1")
            done = subprocess.run([self.site("any").programs["nui-local"], "--config", copy, "--check"], capture_output=True,
                                  text=True, timeout=600)
            self.assertEqual(done.returncode, 0, f"{file.name}: {done.stderr}")
            tried += 1
        self.assertGreater(tried, 25)
        self.assertGreater(self.simulated(), 35)
        file = self.state / "strict.cfg"
        for line, code in (("MAUIFILE FALSE\nFSDETPH 3", 1), ("MAUIFILE TRUE\nFSDETPH 3", 0), ("MAUIFILE MAYBE", 1),
                           ("MAUIFILE TRUE\nUSERCFG[a] MAXJOB=many", 1),
                           ("MAUIFILE TRUE\nNODESETPOLICY ONEOF\nNODESETATTRIBUTE FEATURE\nNODESETLIST wide", 0),
                           ("CLASSCFG[big] HOSTLIST=gone1", 1), ("MAUIFILE TRUE\nCLASSCFG[big] HOSTLIST=gone1", 0),
                           ("MAUIFILE TRUE\nCLASSCFG[big] DEFAULT.FEATURES=wide", 0)):
            file.write_text(head.split("\n", 1)[1] + line + "\n")
            done = subprocess.run([self.site("any").programs["nui-local"], "--config", file, "--check"], capture_output=True,
                                  text=True, timeout=600)
            self.assertEqual(done.returncode, code, f"{line}: {done.stderr}")

    def simulated(self):
        """How many of them nui sim takes as its policy, and runs: what names others than its eight nodes is told and left out;
        which is refused is a switch as a speed, a frame as a node set."""
        files = [f for f in sorted((ROOT / "tests" / "data" / "maui").glob("*.cfg")) if not f.name.startswith("refused-")]
        for file in files:
            copy = self.state / "simulated.cfg"
            copy.write_text("MAUIFILE TRUE\n" + file.read_text(encoding="latin-1"), encoding="latin-1")
            done = subprocess.run([self.site("any").programs["nui"], "sim", "-c", copy, "-w", "model:lublin:5", "-N", "8"],
                                  capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 1 if file.stem in ("examples", "sp-ll") else 0, f"{file.name}: {done.stderr}")
        return len(files)

    def test_maui_names(self):
        """Every parameter of Maui's is known: it works, or is told with what there is in its place; each is in a man page."""
        names = (ROOT / "tests" / "data" / "maui" / "parameters.txt").read_text().split()
        self.assertGreaterEqual(len(names), 354)
        self.assertEqual(len(names), len(set(names)))
        file = self.state / "names.cfg"
        file.write_text("".join(f"{name} x\n" for name in names))
        done = subprocess.run([self.site("names").programs["nui-local"], "--config", file, "--check"], capture_output=True,
                              text=True, timeout=600)
        self.assertEqual([line for line in done.stderr.splitlines() if "neither Maui" in line or "unknown" in line], [])
        pages = set("".join((ROOT / "local" / "man" / page).read_text()
                            for page in ("maui.cfg.5", "nui-local.8")).replace('"', " ").replace(",", " ").replace("[", " ").split())
        self.assertEqual([name for name in names if name not in pages], [])

    def test_maui_limits_are_kept(self):
        """What would let somebody do more is refused with its line; everything else of a Maui file is told."""
        file = self.state / "limits.cfg"
        for line, fault in (("USERCFG[a] MAXJOB=many", "MAXJOB"), ("CLASSCFG[a] MAXPROC[USER]=x", "MAXPROC"),
                            ("GROUPCFG[a] QLIST=hi lo", None), ("SYSTEMMAXJOBPROC lots", "SYSTEMMAXJOBPROC"),
                            ("SRCFG[x] HOSTLIST=n1 TIMELIMIT=short", "TIMELIMIT"), ("USERCFG[a] PRIORITY=high", None),
                            ("BACKFILLPOLICY SOMETIMES", None), ("ADMIN1 ALL", None), ("USERCFG MAXJOB=3", None),
                            ("FSTARGET=30", None), ("LOGLEVEL[0] 3", None), ("= 3", None), ("FSDEPTH seven", None)):
            file.write_text("RMPOLLINTERVAL 30\n" + line + "\n")
            done = subprocess.run([self.site("limits").programs["nui-local"], "--config", file, "--check"],
                                  capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 1 if fault else 0, f"{line}: {done.stderr}")
            self.assertIn("limits.cfg: line 2: " if line != "LOGLEVEL[0] 3" else "", done.stderr, line)
            self.assertIn(fault or "", done.stderr, line)

    def test_all_faults(self):
        """One run tells everything: each fault with its line, then what a daemon's file lacks."""
        code, words, site = self.check(GOOD)
        text = site.config.read_text().replace("CA ", "#CA ")
        site.config.write_text(text + "FSDEPTH many\nUSERCFG[john] MAXJOB=x MAXPROC=y\nRMCFG[base] TYPE=LSF\n"
                               "ADMIN1 ALL\nFOOBAR 1\n")
        done = subprocess.run([site.programs["nui-local"], "--config", site.config, "--check"], capture_output=True,
                              text=True, timeout=600)
        lines = done.stderr.splitlines()
        for says in ("FSDEPTH: ", "USERCFG[john]: MAXJOB: ", "USERCFG[john]: MAXPROC: ",
                     "RMCFG[base]: TYPE: LSF: there is no adapter", "ADMIN1: ALL stands alone",
                     "FOOBAR: neither Maui nor Nui has such a parameter"):
            self.assertEqual(len([line for line in lines if says in line and "cfg: line " in line]), 1, (says, lines))
        self.assertIn("CA is missing", lines[-2])
        self.assertIn("is refused: 6 faults", lines[-1])
        self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_start_and_reload(self):
        """The same words in the log of a start, and of a reload; a bad file changes nothing."""
        site = self.site("live", "alpha")
        site.write(GOOD + "GROUPCFG[bio] QLIST=typo\n", gridmap=False)
        site.start()
        self.assertTrue(site.logged("GROUPCFG[bio] QLIST: QoS typo is not defined"))
        text = site.config.read_text()
        site.config.write_text(text.replace("typo", "other"))
        wait_for("the reload", lambda: site.logged("QoS other is not defined"), 30, site.log)
        site.config.write_text(text + "QUEUETIMEWIEGHT 3\n")
        wait_for("the refusal", lambda: site.logged("configuration_refused", "did you mean QUEUETIMEWEIGHT"),
                 30, site.log)
        self.ok(site, "showq")


if __name__ == "__main__":
    main()
