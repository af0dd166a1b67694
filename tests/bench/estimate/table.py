#!/usr/bin/env python3
"""table: how good start-time estimates are, as the tables of local/estimate/accuracy.md.

  table.py --nui NUI --page ACCURACY.md --check SECTION...    fails where the page says something else
  table.py --nui NUI --page ACCURACY.md --update SECTION...   puts it there
  table.py --nui NUI LOG...                                   of any logs, on stdout, with times

A section stands in the page between <!-- SECTION --> and <!-- end -->:
  made-up    the first 400 jobs of tests/data/local/made-up.swf
  campaigns  a log of campaigns.py, beside this file
  excerpts   the first jobs of each real log, where --traces has them (exit code 77 where it has not)
  real       the whole of them: minutes for each
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
POLICY = """NODEALLOCATIONPOLICY FIRSTAVAILABLE
QUEUETIMEWEIGHT 1
RESERVATIONDEPTH[0] 1
BACKFILLPOLICY FIRSTFIT
RESERVATIONBINDING %s
"""
HEAD = ["log", "binding", "method", "jobs", "mean wait s", "error", "≤ 1 min", "≤ 10 min", "certain",
        "in 50 %", "in 95 %", "in 50 % *", "in 95 % *", "width 50 %", "width 95 %"]
BOTH = ("EARLY", "LATE")
# section: bindings, jobs
SECTIONS = {"made-up": (BOTH, "1..400"), "campaigns": (("LATE",), "1..400"),
            "excerpts": (("LATE",), "1..500"), "real": (BOTH, None)}
SKIPPED = 77


def name_of(path):
    return re.sub(r"(\.swf)?(\.gz)?$", "", os.path.basename(path))


def rows_of(nui, log, binding, jobs=None, timed=False):
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "maui.cfg")
        with open(config, "w", encoding="utf-8") as f:
            f.write(POLICY % binding)
        out = subprocess.run([nui, "sim", "-c", config, "-w", log, "--json",
                              *(["--jobs", jobs] if jobs else []), "--estimates",
                              os.path.join(folder, "out.csv")], check=True, text=True,
                             capture_output=True).stdout
    rows = []
    for m in json.loads(out):
        row = [name_of(log), binding.lower(), m["method"], str(m["jobs"]),
               f"{m['mean_wait_s']:.0f}"]
        row += [f"{100 * m[k]:.1f} %" for k in ("error_share", "within_1m", "within_10m", "certain",
                                             "coverage_50", "coverage_95", "unsure_coverage_50",
                                             "unsure_coverage_95")]
        row += [f"{m[k]:.2f}" for k in ("width_50_share", "width_95_share")]
        rows.append(row + ([f"{m['ms_mean']:.2f}", f"{m['ms_max']:.0f}"] if timed else []))
    return rows


def table(nui, logs, bindings, jobs=None, timed=False):
    names = HEAD + (["ms mean", "ms most"] if timed else [])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for log in logs:
        for binding in bindings:
            lines += ["| " + " | ".join(r) + " |" for r in rows_of(nui, log, binding, jobs, timed)]
    return "\n".join(lines) + "\n"


def section(name, nui, traces, folder):
    bindings, jobs = SECTIONS[name]
    if name == "made-up":
        logs = [os.path.join(ROOT, "tests", "data", "local", "made-up.swf")]
    elif name == "campaigns":
        logs = [os.path.join(folder, "campaigns.swf")]
        with open(logs[0], "w", encoding="utf-8") as f:
            subprocess.run([sys.executable, os.path.join(HERE, "campaigns.py")], check=True, stdout=f)
    else:
        logs = sorted(glob.glob(os.path.join(traces, "*.swf.gz")))
        if not logs:
            print(f"skipped: {traces} has no logs")
            sys.exit(SKIPPED)
    return table(nui, logs, bindings, jobs)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--nui", required=True)
    p.add_argument("--page")
    p.add_argument("--traces", default=os.path.join(ROOT, "..", "shared", "traces"))
    p.add_argument("--check", nargs="+", choices=SECTIONS, default=[])
    p.add_argument("--update", nargs="+", choices=SECTIONS, default=[])
    p.add_argument("log", nargs="*")
    a = p.parse_args()
    if a.log:
        print(table(a.nui, a.log, BOTH, timed=True), end="", flush=True)
    if not a.check and not a.update:
        return 0
    with open(a.page, encoding="utf-8") as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as folder:
        for name in a.check + a.update:
            begin = f"<!-- {name} -->\n"
            if begin not in text:
                sys.exit(f"{a.page} has no section {name}")
            at = text.index(begin) + len(begin)
            upto = text.index("<!-- end -->", at)
            fresh = section(name, a.nui, a.traces, folder)
            if name in a.check and text[at:upto] != fresh:
                sys.exit(f"{a.page}: {name} is not what the program gives:\n{fresh}")
            text = text[:at] + fresh + text[upto:]
    if a.update:
        with open(a.page, "w", encoding="utf-8") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
