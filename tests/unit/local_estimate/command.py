#!/usr/bin/env python3
"""`nui sim --estimates` as a person uses it: the file, the table, what is refused."""
import csv
import json
import os
import subprocess
import sys
import tempfile

nui, log = sys.argv[1:3]


def run(*args):
    return subprocess.run([nui, "sim", *args], text=True, capture_output=True)


with tempfile.TemporaryDirectory() as folder:
    config, out = os.path.join(folder, "maui.cfg"), os.path.join(folder, "out.csv")
    with open(config, "w", encoding="utf-8") as f:
        f.write("RESERVATIONBINDING LATE\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\n")
    base = ["-c", config, "-w", log, "--jobs", "1..400"]
    jobs = os.path.join(folder, "jobs.csv")
    done = run(*base, "--estimates", out, "--jobs-out", jobs, "--json")
    assert done.returncode == 0, done.stderr
    with open(out, encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 4 * 400, len(rows)
    with open(jobs, encoding="utf-8") as f:
        start = {r["job_id"]: float(r["start"]) for r in csv.DictReader(f)}
    said = {m["method"]: m for m in json.loads(done.stdout)}
    assert set(said) == {"limits", "priority", "history", "simulation"}, said
    for method, summary in said.items():
        mine = [r for r in rows if r["method"] == method]
        wait = [float(r["wait"]) for r in mine]
        for r in mine: # the file agrees with the simulation
            assert abs(float(r["asked"]) + float(r["wait"]) - start[r["job_id"]]) < 1.01, r
            assert (float(r["low95"]) <= float(r["low50"]) <= float(r["median"])
                    <= float(r["high50"]) <= float(r["high95"])), r
        error = sum(abs(float(r["median"]) - w) for r, w in zip(mine, wait)) / sum(wait)
        assert abs(error - summary["error_share"]) < .01, (method, error, summary)
        sure = [r for r in mine if r["certain"] == "yes"]
        assert all(float(r["wait"]) == 0 for r in sure) # certain is certain
    assert said["simulation"]["error_share"] < said["limits"]["error_share"] / 2, said
    again = run(*base, "--estimates", out + "2", "--json")
    with open(out, "rb") as a, open(out + "2", "rb") as b:
        assert a.read() == b.read(), "one seed, two answers"

    # a policy with limits, fairshare and two reservations deep: the copy of the core does it
    with open(config, "w", encoding="utf-8") as f:
        f.write("USERCFG[DEFAULT] MAXJOB=2\nRESERVATIONDEPTH[0] 2\n")
    done = run("-c", config, "-w", log, "--jobs", "1..40", "--estimates", out, "--json")
    assert done.returncode == 0, done.stderr

    for args, word in ((["--estimates", out, "--compare", config], "one policy"),
                       (["--estimates", "/nowhere/out.csv"], "/nowhere")):
        refused = run(*base, *args)
        assert refused.returncode != 0 and word in refused.stderr, refused.stderr
print("ok")
