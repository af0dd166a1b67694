"""Jobs as they are written down: one component, or several that start at one moment."""
from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

from .signing import MICRO, micro

VALID_S = 30 * 86400  # so long a signature is good for a first start


@dataclass
class Component:
    """A part of a job that runs at one site.

    script: what is run there, with its #! line. walltime: seconds. memory: MB for each task. sites: where it may run; none:
    anywhere. offset: its start, seconds after the common moment. env: variables. gres: generic resources for each task.
    """
    script: Union[str, bytes]
    walltime: float = 3600
    tasks: int = 1
    procs_per_task: int = 1
    nodes: int = 0
    memory: int = 0
    name: str = "main"
    sites: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] = ()
    gres: Mapping[str, int] = field(default_factory=dict)
    job_class: str = ""
    qos: str = ""
    reservation: str = ""
    offset: float = 0

    def fields(self) -> dict[str, Any]:
        """As the contract's Component."""
        script = self.script.encode() if isinstance(self.script, str) else self.script
        return {"name": self.name, "sites": list(self.sites), "walltime_us": round(self.walltime * MICRO),
                "offset_us": round(self.offset * MICRO), "script": script, "args": list(self.args),
                "env": [f"{name}={value}" for name, value in self.env.items()], "class": self.job_class, "qos": self.qos,
                "reservation": self.reservation,
                "reqs": [{"tasks": self.tasks, "procs_per_task": self.procs_per_task, "nodes": self.nodes,
                          "memory_mb": self.memory, "features": list(self.features),
                          "gres": [{"name": name, "count": count} for name, count in self.gres.items()]}]}


@dataclass
class Job:
    """What is submitted. Several components are co-allocated: all start at one moment, or none.

    account: who pays. max_cost: credits, the most that all its runs may cost together; none: twice the dearest estimate
    when you sign it, the delegation's most when the gate does. not_before, deadline: moments as seconds since 1970.
    key: a name for this request: what was submitted under it before is the answer (of you, for ever; of the gate, for
    the token).
    """
    components: Sequence[Component]
    name: str = ""
    account: str = ""
    max_cost: Optional[Union[Decimal, int, str]] = None
    not_before: float = 0
    deadline: float = 0
    key: str = ""

    @classmethod
    def script(cls, script: Union[str, bytes], *, account: str = "", name: str = "",
               max_cost: Optional[Union[Decimal, int, str]] = None, key: str = "", **component: Any) -> "Job":
        """A job of one component: Component's fields by name."""
        return cls([Component(script, **component)], name=name, account=account, max_cost=max_cost, key=key)

    @classmethod
    def script_file(cls, path: Union[str, Path], **more: Any) -> "Job":
        """As script, from a file."""
        return cls.script(Path(path).read_bytes(), name=more.pop("name", Path(path).name), **more)

    def fields(self) -> dict[str, Any]:
        """As the contract's Job, without what whoever signs it fills in."""
        return {"name": self.name, "account": self.account, "components": [part.fields() for part in self.components],
                "not_before_us": round(self.not_before * MICRO), "deadline_us": round(self.deadline * MICRO),
                "cost_max_micro": 0 if self.max_cost is None else micro(self.max_cost)}

    def signed_fields(self, grid: str, submitter: str, question: bool = False) -> dict[str, Any]:
        """All of it, to be signed by its submitter. The uuid is the request's: a key has one for ever."""
        now = time.time_ns() // 1000
        space = uuid.uuid5(uuid.NAMESPACE_URL, submitter)
        ident = uuid.uuid5(space, self.key) if self.key and not question else uuid.uuid4()
        return {**self.fields(), "grid": grid, "submitter": submitter, "uuid": ident.bytes, "created_us": now,
                "expires_us": now + VALID_S * MICRO, "question": question}
