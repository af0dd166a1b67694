#!/usr/bin/env python3
"""table: how good start-time estimates are, as rows of markdown.

  table.py --nui NUI LOG...                     the table of local/estimate/accuracy.md, on stdout
  table.py --nui NUI --check ACCURACY.md LOG    fails where the page's table of this log is another
  table.py --nui NUI --update ACCURACY.md LOG   puts it there

A log's table stands in the page between <!-- NAME --> and <!-- end -->. Times of answers are only in
the first form: they differ from run to run.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

POLICY = """NODEALLOCATIONPOLICY FIRSTAVAILABLE
QUEUETIMEWEIGHT 1
RESERVATIONDEPTH[0] 1
BACKFILLPOLICY FIRSTFIT
RESERVATIONBINDING %s
"""
HEAD = ["log", "binding", "method", "jobs", "mean wait s", "error", "≤ 1 min", "≤ 10 min", "certain",
        "in 50 %", "in 95 %", "in 50 % *", "in 95 % *", "width 50 %", "width 95 %"]


def name_of(path):
    return re.sub(r"(\.swf)?(\.gz)?$", "", os.path.basename(path))


PAGE_JOBS = "1..400"  # of the log in the page: enough to notice a change


def rows_of(nui, log, binding, timed):
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "maui.cfg")
        with open(config, "w", encoding="utf-8") as f:
            f.write(POLICY % binding)
        out = subprocess.run([nui, "sim", "-c", config, "-w", log, "--json",
                              *([] if timed else ["--jobs", PAGE_JOBS]), "--estimates",
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


def table(nui, log, timed=False, bindings=("EARLY", "LATE"), head=True):
    names = HEAD + (["ms mean", "ms most"] if timed else [])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)] if head else []
    for binding in bindings:
        lines += ["| " + " | ".join(r) + " |" for r in rows_of(nui, log, binding, timed)]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--nui", required=True)
    p.add_argument("--check")
    p.add_argument("--update")
    p.add_argument("log", nargs="+")
    a = p.parse_args()
    page = a.check or a.update
    if not page:
        for i, log in enumerate(a.log):
            print(table(a.nui, log, True, head=i == 0), end="", flush=True)
        return 0
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for log in a.log:
        begin, end = f"<!-- {name_of(log)} -->\n", "<!-- end -->"
        if begin not in text:
            sys.exit(f"{page} has no table of {name_of(log)}")
        at = text.index(begin) + len(begin)
        upto = text.index(end, at)
        fresh = table(a.nui, log)
        if a.check and text[at:upto] != fresh:
            sys.exit(f"{page}: the table of {name_of(log)} is not what the program gives:\n{fresh}")
        text = text[:at] + fresh + text[upto:]
    if a.update:
        with open(page, "w", encoding="utf-8") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
