"""Use a Nui grid from Python, through its gate (nui-gate(8)).

    import nui
    me = nui.Identity.load("cert.pem", "key.pem")
    grid = nui.Client("http://127.0.0.1:8480", me.delegate("gate"), identity=me)
    job = grid.submit(nui.Job.script("#!/bin/sh\\nhostname\\n", tasks=4, walltime=600, account="phys"))
    print(grid.wait(job).state, grid.output(job).decode())

Durations are seconds, memory is MB, amounts are credits (decimal.Decimal; one is a processor-second at rate 1), moments are
datetime.datetime in UTC. What is refused raises a NuiError with the sentence of whoever refused.
"""
from .client import Client
from .errors import Conflict, Denied, Invalid, NotFound, NuiError, Unavailable
from .job import Component, Job
from .signing import Identity
from .status import Balance, Candidate, ComponentStatus, Status

__all__ = ["Balance", "Candidate", "Client", "Component", "ComponentStatus", "Conflict", "Denied", "Identity", "Invalid", "Job",
           "NotFound", "NuiError", "Status", "Unavailable"]
