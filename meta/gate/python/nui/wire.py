"""Messages of the grid's contract as bytes: just what signing needs. The contract itself, common.proto, is read for it, so
that there is no second list of fields."""
from __future__ import annotations

import re
from importlib import resources
from typing import Any

_VARINTS = {"int32", "int64", "uint32", "uint64", "bool"}


def _read() -> dict[str, dict[str, tuple[int, str, bool]]]:
    """message: {field: (number, type, repeated)}."""
    text = re.sub(r"//.*", "", (resources.files(__package__) / "common.proto").read_text())
    found = {}
    for name, body in re.findall(r"message (\w+) \{([^}]*)\}", text):
        found[name] = {field: (int(number), kind, bool(repeated))
                       for repeated, kind, field, number in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body)}
    return found


MESSAGES = _read()


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, kind: str, value: Any) -> bytes:
    if kind in _VARINTS:
        return _varint(number << 3) + _varint(int(value))
    data: bytes = value.encode() if kind == "string" else bytes(value) if kind == "bytes" else encode(kind, value)
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def encode(message: str, fields: dict[str, Any]) -> bytes:
    """A message of common.proto. KeyError: it has no such field."""
    known = MESSAGES[message]
    out = b""
    for name, value in sorted(fields.items(), key=lambda item: known[item[0]][0]):
        number, kind, repeated = known[name]
        if repeated:
            out += b"".join(_field(number, kind, one) for one in value)
        elif value is not None and (kind not in _VARINTS | {"string", "bytes"} or value):
            out += _field(number, kind, value)
    return out
