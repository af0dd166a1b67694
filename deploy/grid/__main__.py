"""deploy/quickstart after the build: start (with the tour, the first time), stop, status, clean."""
import os
import sys
import traceback
from pathlib import Path

from .base import ROOT, Failure
from .grid import Grid
from .tour import Tour

BUILD = ROOT / "build" / "release"


def state_directory():
    if os.environ.get("NUI_QUICKSTART_DIR"):
        return Path(os.environ["NUI_QUICKSTART_DIR"]).absolute()
    if os.geteuid() == 0 and not all(p.stat().st_mode & 0o001 for p in (ROOT, *ROOT.parents)):
        return Path("/var/tmp/nui-quickstart")
    return ROOT / "build" / "grid"


def print_status(grid):
    running = grid.running()
    for name in ("postgresql", *grid.daemons):
        process = grid.postgres.process if name == "postgresql" else grid.daemons[name].process
        log = grid.postgres.log if name == "postgresql" else grid.daemons[name].log
        where = f"127.0.0.1:{grid.ports[name]}, pid {process.pid()}" if name in running else "-"
        print(f"{name:<11} {'up' if name in running else 'down':<5} {where:<29} {log}")
    return 0 if len(running) == 1 + len(grid.daemons) else 1


def slurm_words(grid):
    """For those who want to be a user of the site's own Slurm."""
    return "".join(f"export SLURM_CONF={s.conf}     # sinfo -a, squeue -a, sbatch -A phys … at {name}\n   "
                   for name, s in grid.slurm.items())


def gridengine_words(grid):
    """The same for a Grid Engine."""
    return "".join(f"export {' '.join(e.adapter_env().split(';'))}     # qstat -f, qsub -A phys … at {name}\n   "
                   for name, e in grid.gridengine.items())


def gate_words(grid):
    """For programs: the door's address, and what opens it."""
    return "".join(f"curl -H \"Authorization: Bearer $(nui delegate)\" http://127.0.0.1:{grid.ports['http-' + g]}/api/v1/facility\n   "
                   for g in grid.gates)


def start(state, once, slurm, gridengine, tour):
    code = 1
    made = Grid(state, None) if (state / "grid.json").exists() else None
    for name, wanted, there in (("Slurm", slurm, made and made.slurm), ("Grid Engine", gridengine, made and made.gridengine)):
        if made and bool(there) != wanted:
            raise Failure(f"{state} holds a grid {'without' if wanted else 'with'} a {name}: remove it with "
                          f"deploy/quickstart clean, or choose another directory with NUI_QUICKSTART_DIR")
    grid = Grid(state, BUILD, slurm={"alpha": {}} if slurm else {}, gate=True, store=True,
                gridengine=["beta"] if gridengine else [])
    print(f"== state directory: {state}")
    try:
        grid.stop()  # an earlier run's, so that what was just built is what runs
        Tour(grid).go(tour or once)
        code = 0
    except Failure as failure:
        print(f"quickstart: FAILED: {failure}", file=sys.stderr)
    except KeyboardInterrupt:
        print("quickstart: interrupted", file=sys.stderr)
        code = 130
    except Exception as surprise:  # a fault of this program: say so in one sentence, too
        log = ROOT / "build" / "logs" / "quickstart.log"
        log.write_text(traceback.format_exc())
        print(f"quickstart: FAILED: {type(surprise).__name__}: {surprise}; its log is {log}",
              file=sys.stderr)
    finally:
        if once:
            grid.stop()
            print("== the grid is stopped")
    if once or code:
        if grid.running():
            print(f"quickstart: what did start is left running; logs: {grid.layout.log}; "
                  f"stop it with: ./deploy/quickstart stop", file=sys.stderr)
        return code
    programs = grid.programs["nui"].parent
    print(f"""
== The grid is running. To use it:
   export PATH={programs}:$PATH
   export NUI_CONFIG={grid.layout.config('alice')}     # or bob, {', '.join(n for k, n in grid.identities()[-2:])}
   {slurm_words(grid)}{gridengine_words(grid)}nui sites; nui balance; nui submit {ROOT}/deploy/samples/hello.sh; nui jobs; nui help
   {gate_words(grid)}files to try --stage-in and --stage-out with: file://{grid.layout.store}/moons.csv, file://{grid.layout.store}/results/
   logs: {grid.layout.log}
   ./deploy/quickstart status | stop | clean""")
    return 0


def main(command, once=False, slurm=False, gridengine=False, tour=False):
    state = state_directory()
    try:
        if command == "start":
            return start(state, once, slurm, gridengine, tour)
        if not (state / "grid.json").exists():
            print(f"nothing was started in {state}")
            return 1 if command == "status" else 0
        grid = Grid(state, None)
        if command == "status":
            return print_status(grid)
        if command == "clean":
            grid.clean()
            print(f"stopped, and {state} removed")
        else:
            forced = grid.stop()
            print("stopped" + (f" (these had to be killed: {', '.join(forced)})" if forced else ""))
        return 0
    except Failure as failure:
        print(f"quickstart: FAILED: {failure}", file=sys.stderr)
        return 1


sys.exit(main(sys.argv[1], **{word: f"--{word}" in sys.argv[2:] for word in ("once", "slurm", "gridengine", "tour")}))
