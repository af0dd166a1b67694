"""What the grid answers, typed."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, Mapping, Optional, Sequence

STATES = ("pending", "queued", "reserved", "running", "completed", "failed", "cancelled", "refused")
ENDED = STATES[4:]


def moment(text: str) -> Optional[datetime]:
    """Of microseconds since 1970; 0 is none."""
    return datetime.fromtimestamp(int(text) / 1e6, timezone.utc) if int(text) else None


def credits_of(text: str) -> Decimal:
    """Of micro-credits."""
    return Decimal(text) / 1_000_000


@dataclass(frozen=True)
class ComponentStatus:
    """A component: where it is, and how it ended (exit_code: 128 + signal when killed; none: it did not end)."""
    name: str
    site: str
    exit_code: Optional[int]


@dataclass(frozen=True)
class Status:
    """A job. state: one of STATES. reason: a code for programs; text: a sentence. start: actual, or agreed or expected
    (start_is_estimate). price: credits, upper bound where it is placed."""
    id: str
    state: str
    reason: str
    text: str
    name: str
    account: str
    submitted: Optional[datetime]
    start: Optional[datetime]
    end: Optional[datetime]
    start_is_estimate: bool
    price: Decimal
    components: Sequence[ComponentStatus]

    @property
    def ended(self) -> bool:
        """Nothing will change any more."""
        return self.state in ENDED

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> "Status":
        """From the gate's answer."""
        reason, state = json.get("reason") or {}, json["state"].replace("GRID_", "").lower()
        parts = [ComponentStatus(part["name"], part["site"],
                                 int(part["job"]["exit_code"]) if part.get("job") and moment(part["job"]["end_us"]) else None)
                 for part in json["components"]]
        return cls(json["grid_job_id"], state, reason.get("code", ""), reason.get("text", ""), json["name"], json["account"],
                   moment(json["submit_us"]), moment(json["start_us"]), moment(json["end_us"]), json["start_is_estimate"],
                   credits_of(json["price_micro"]), parts)


@dataclass(frozen=True)
class Candidate:
    """One way to run a job: a site for each component. start: expected; latest: guaranteed if reserved now. price: credits,
    for the whole walltime. reason: why it is not feasible, or not sooner."""
    sites: Sequence[str]
    feasible: bool
    reason: str
    start: Optional[datetime]
    latest: Optional[datetime]
    completion: Optional[datetime]
    price: Decimal
    funded: bool
    account: str

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> "Candidate":
        """From the gate's answer."""
        return cls(json["sites"], json["feasible"], (json.get("reason") or {}).get("text", ""), moment(json["start_us"]),
                   moment(json["latest_us"]), moment(json["completion_us"]), credits_of(json["price_micro"]), json["funded"],
                   json["account"])


@dataclass(frozen=True)
class Balance:
    """An account; all amounts in credits: granted, settled (charged), held by jobs, available."""
    account: str
    project: str
    granted: Decimal
    settled: Decimal
    held: Decimal
    available: Decimal

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> "Balance":
        """From the gate's answer."""
        def amount(name: str) -> Decimal:
            return Decimal(json[f"{name}_wide"]) if json[f"{name}_wide"] else credits_of(json[f"{name}_micro"])
        return cls(json["account"], json["project"], *(amount(name) for name in ("granted", "settled", "held", "available")))
