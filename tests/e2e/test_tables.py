"""Every table of Maui's commands at one step of one simulation, whole, against tests/data/e2e/tables.txt.

A change that is meant: NUI_TABLES=update python3 -B tests/e2e/test_tables.py, then read the difference."""
import os
import re
import shlex

from fixture import main
from onesite import ROOT, SiteCase
from test_commands import commands
from test_reports import job, stopped_at_an_hour

KEPT = ROOT / "tests" / "data" / "e2e" / "tables.txt"

# At 03:00, with eight processors on two nodes: cat has six, dan waits for eight, eve is held, fay's class
# has no room. What is done, then what is shown.
ACTS = """
setres -n bench -s +4:00:00 -d 1:00:00 -u ann:bob n1
sethold alpha.6
setspri 100 alpha.5
setqos hi alpha.7
changeparam USERCFG[ann] PRIORITY=7
mnodectl -m features=tape n2
mjobctl -m wclimit=2:00:00 alpha.7
setdeadline +30:00:00 alpha.7
schedctl -S --wait
"""
SHOWN = """
showq
showq -r
showq -i
showq -b
showres
showres -n
showres bench.0
showstart alpha.5
showstart 4@1:00:00
showstart -e all alpha.5
showbf
showbf -u ann -c batch
showbf -n 2
showbf -m 512
showbf -p DEFAULT
showstats
showstats -u
showstats -g
showstats -a
showstats -q
showstats -c
showstats -n
showgrid JOBCOUNT
showgrid AVGXFACTOR
showgrid MAXXFACTOR
showgrid AVGQTIME
showgrid AVGBYPASS
showgrid MAXBYPASS
showgrid PHREQUEST
showgrid PHRUN
showgrid WCACCURACY
showgrid BFCOUNT
showgrid BFPHRUN
showgrid JOBEFFICIENCY
showgrid QOSDELIVERED
showstate
showconfig
checkjob alpha.3
checkjob alpha.4
checkjob alpha.5
checkjob alpha.6
checkjob -v alpha.7
checknode n1
checknode n2
diagnose -a
diagnose -b
diagnose -c
diagnose -f
diagnose -g
diagnose -j
diagnose -m
diagnose -n
diagnose -p
diagnose -q
diagnose -Q
diagnose -r
diagnose -R
diagnose -s
diagnose -S
diagnose -t
diagnose -u
mjobctl -q priority alpha.5 alpha.7
showq -v
showq -r -v -p DEFAULT
showhold
showres -r
showres -s
showres -v
showres -n -g
showbf -S
showbf -A
checkjob -A alpha.3
checkjob -A alpha.6
checkjob -l SOFT alpha.5
checkjob -r bench.0 alpha.5
checkjob -n n1 alpha.5
diagnose -j -v
diagnose -q -l SOFT
diagnose -n -v
diagnose -p -v
diagnose -G
mdiag -j alpha.5
mrsvctl -l
mrsvctl -q bench.0
showstats -d
showstats -f
schedctl -l RESERVATIONDEPTH
mjobctl -q diag alpha.5
checknode GLOBAL
profiler
profiler -p user
profiler -m JOBCOUNT
schedctl
"""
LATER = """
releasehold alpha.6
canceljob alpha.4
runjob alpha.6
releaseres bench.0
canceljob alpha.7
resetstats
showstats
showq
"""


ELSEWHERE = {"msub": "e2e_local, by what becomes of the job", "showaudit": "e2e_stats: its times are the real ones"}


class Tables(SiteCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        log = cls.state / "log.trace"
        log.write_text("VERSION 230\n" + job("1", "ann", 8, 3600, 0, 1800) +
                       job("2", "bob", 4, 600, 0, 600, queue="short") + job("3", "ann", 2, 1200, 600, 300) +
                       job("4", "cat", 6, 7200, 900, 7200, account="other") +
                       job("5", "dan", 8, 3600, 1200, 60) + job("6", "eve", 4, 3600, 3300, 600) +
                       job("7", "fay", 4, 10800, 3400, 600))
        cls.alpha = stopped_at_an_hour(cls, log, "USERCFG[ann] FSTARGET=40 MAXPROC=10,12\nUSERCFG[fay] MAXJOB=1 QLIST=hi\n"
                                       "FSPOLICY DEDICATEDPS\nFSWEIGHT 1\nFSUSERWEIGHT 10\n")

    def said(self, line):
        done = self.alpha.nui(*shlex.split(line))
        text = done.stdout + "".join(f"! {part}\n" for part in done.stderr.splitlines())
        text = text.replace(str(self.state), "STATE")
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
        return text if done.returncode == 0 else f"{text}(exit code {done.returncode})\n"

    def test_none_is_forgotten(self):
        shown = {line.split()[0] for part in (ACTS, SHOWN, LATER) for line in part.split("\n") if line}
        self.assertEqual(set(commands("On a cluster")) - shown, set(ELSEWHERE))

    def test_whole_tables(self):
        lines = [line for part in (ACTS, SHOWN, LATER) for line in part.split("\n") if line]
        text = "".join(f"$ {line}\n{self.said(line)}" for line in lines)
        if os.environ.get("NUI_TABLES") == "update":
            KEPT.write_text(text)
        for want, got in zip(re.split(r"(?m)^(?=\$ )", KEPT.read_text()), re.split(r"(?m)^(?=\$ )", text)):
            with self.subTest(want.split("\n", 1)[0]):
                self.assertEqual(got, want)
        self.assertEqual(text.count("\n$ "), KEPT.read_text().count("\n$ "))


if __name__ == "__main__":
    main()
