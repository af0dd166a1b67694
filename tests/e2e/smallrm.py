#!/usr/bin/python3 -B
"""A small resource manager for one machine, and its adapter for RMCFG TYPE=NATIVE in one file: `smallrm.py CALL …` is what
nui-local calls (SMALLRM names its directory). Its jobs are processes; it keeps no scheduler: a job waits until it is started.

In its directory: state (JSON, under a lock), nodes (JSON, which a test changes), journal (a line for each start), N.code (what
ended job N ended with), do.CALL (a shell script that is run first: how a test makes it misbehave)."""
import fcntl
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

PLACE = Path(os.environ.get("SMALLRM", "."))
KEPT_S = 3600  # what ended is told so long


class Refused(Exception):
    pass


def words_of(args):
    return dict(word.split("=", 1) for word in args)


def job_of(state, ident):
    if ident not in state["jobs"]:
        raise Refused(f"there is no job {ident}")
    return state["jobs"][ident]


def settle(state):
    """What ended since: its end and exit code."""
    for ident, job in state["jobs"].items():
        if job["state"] not in ("Running", "Suspended"):
            continue
        code = PLACE / f"{ident}.{job['run']}.code"
        if code.exists() and code.read_text().strip():
            job.update(state="Completed", end=int(code.stat().st_mtime), code=int(code.read_text()))
        elif not Path(f"/proc/{job['pid']}").exists():
            job.update(state="Completed", end=int(time.time()), code=137)


def clusterquery(_state, _args):
    nodes = json.loads((PLACE / "nodes").read_text())
    lines = [f"{name} " + ";".join(f"{k}={json.dumps(v) if k == 'CAT' else v}" for k, v in node.items())
             for name, node in nodes.items()]
    return f"COUNT={len(lines)}\n" + "\n".join(lines)


def line_of(ident, job):
    fields = {"STATE": job["state"], "UNAME": job["user"], "QUEUETIME": job["queued"], "TASKS": job["tasks"],
              "DPROCS": job["procs"], "WCLIMIT": job["limit"], "NAME": job["name"], "ACCOUNT": job.get("account")}
    if job.get("start"):
        fields.update(STARTTIME=job["start"], TASKLIST=":".join(job["nodes"]))
    if job["state"] in ("Completed", "Removed"):
        fields.update(COMPLETETIME=job["end"], EXITCODE=job.get("code", 0))
    return f"{ident} " + ";".join(f"{k}={v}" for k, v in fields.items() if v is not None)


def workloadquery(state, _args):
    recent = {i: j for i, j in state["jobs"].items() if time.time() - j.get("end", time.time()) < KEPT_S}
    lines = [line_of(ident, job) for ident, job in recent.items()]
    return f"COUNT={len(lines)}\n" + "\n".join(lines)


def jobsubmit(state, args):
    said = words_of(args)
    if os.geteuid() != pwd.getpwnam(said["UNAME"]).pw_uid:
        raise Refused("jobs are submitted by their own users only")
    return "JOBID=" + queue(state, said)


def queue(state, said):
    state["last"] += 1
    ident = str(state["last"])
    state["jobs"][ident] = {
        "state": "Idle", "user": said["UNAME"], "exec": said["EXEC"], "place": said.get("IWD", "/tmp"), "queued": int(time.time()),
        "tasks": int(said.get("TASKS", 1)), "procs": int(said.get("DPROCS", 1)), "limit": int(said.get("WCLIMIT", 600)),
        "name": said.get("NAME", "job"), "account": said.get("ACCOUNT"), "run": 0}
    return ident


def jobstart(state, args):
    ident, nodes, user = args[0], args[1].split(","), args[2]
    job = job_of(state, ident)
    if job["state"] != "Idle" or job["user"] != user:
        raise Refused(f"job {ident} of {job['user']} is {job['state']}")
    job["run"] += 1
    code = PLACE / f"{ident}.{job['run']}.code"
    become = []
    if os.geteuid() == 0:
        account = pwd.getpwnam(user)
        become = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--init-groups", "--"]
    begun = subprocess.Popen(["/bin/sh", "-c", 'code=$1; shift; "$@"; echo $? >"$code.new"; mv "$code.new" "$code"', "sh", str(code), *become,
                              "timeout", "-k", "5", str(job["limit"]), job["exec"]],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             cwd=job["place"], start_new_session=True)
    job.update(state="Running", nodes=nodes, pid=begun.pid, start=int(time.time()))
    with (PLACE / "journal").open("a") as journal:
        journal.write(f"{ident} {job['name']} {','.join(nodes)}\n")
    return ""


def each_below(pid):
    found = [pid]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[3]) == pid:  # of its session
                found.append(int(stat.parent.name))
        except (OSError, ValueError):
            continue
    return set(found)


def signal_all(job, *numbers, but_first=False):
    for number in numbers:
        for pid in each_below(job["pid"]) - ({job["pid"]} if but_first else set()):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def jobcancel(state, args):
    job = job_of(state, args[0])
    if job["state"] in ("Running", "Suspended"):
        signal_all(job, signal.SIGCONT, signal.SIGTERM, but_first=True)
    elif job["state"] not in ("Completed", "Removed"):
        job.update(state="Removed", end=int(time.time()))
    return ""


def jobrequeue(state, args):
    job = job_of(state, args[0])
    if job["state"] in ("Running", "Suspended"):
        signal_all(job, signal.SIGKILL)
        job.update(state="Idle", start=None)
    return ""


def jobsuspend(state, args):
    job = job_of(state, args[0])
    if job["state"] != "Running":
        raise Refused(f"job {args[0]} is {job['state']}")
    signal_all(job, signal.SIGSTOP)
    job["state"] = "Suspended"
    return ""


def jobresume(state, args):
    job = job_of(state, args[0])
    if job["state"] != "Suspended":
        raise Refused(f"job {args[0]} is {job['state']}")
    signal_all(job, signal.SIGCONT)
    job["state"] = "Running"
    return ""


def jobmodify(state, args):
    """-j ID --set hold=user|system, or --clear hold."""
    job = job_of(state, args[1])
    if job["state"] not in ("Idle", "UserHold", "SystemHold"):
        raise Refused(f"job {args[1]} is {job['state']}")
    job["state"] = {"hold=user": "UserHold", "hold=system": "SystemHold", "hold": "Idle"}[args[3]]
    return ""


CALLS = {call.__name__: call for call in (clusterquery, workloadquery, jobsubmit, jobstart, jobcancel, jobrequeue, jobsuspend,
                                          jobresume, jobmodify)}
# what its own users do: smallrm.py queue UNAME=… EXEC=…
CALLS["queue"] = lambda state, args: "JOBID=" + queue(state, words_of(args))


def main(call, *args):
    os.umask(0)
    act = PLACE / f"do.{call}"
    if act.exists():
        subprocess.run(["/bin/sh", "-c", act.read_text(), "sh", *args], check=False)
        if (PLACE / f"only.{call}").exists():
            return 0
    with (PLACE / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = PLACE / "state"
        state = json.loads(path.read_text()) if path.exists() else {"last": 0, "jobs": {}}
        settle(state)
        try:
            said = CALLS[call](state, args)
        except Refused as why:
            print(f"SC=-1 RESPONSE={why}")
            return 1
        new = PLACE / f"state.{os.getpid()}"
        new.write_text(json.dumps(state, indent=1))
        new.chmod(0o666)
        new.rename(path)
    after = PLACE / f"after.{call}"
    if after.exists():
        subprocess.run(["/bin/sh", "-c", after.read_text()], check=False)
    print(f"SC=0 {said}" + ("" if "COUNT=" in said else " RESPONSE=done"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
