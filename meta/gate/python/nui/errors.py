"""What goes wrong, by what can be done about it."""
from __future__ import annotations


class NuiError(Exception):
    """Refused, or failed. `status` is HTTP's (0: the gate was not reached), `detail` the sentence of whoever refused."""

    def __init__(self, status: int, detail: str):
        super().__init__(detail)
        self.status, self.detail = status, detail


class Invalid(NuiError):
    """The request can never be had like this (400, 413, 422, 501)."""


class Denied(NuiError):
    """Who asks may not do it: no good token (401), or one that does not allow it (403)."""


class NotFound(NuiError):
    """There is no such thing, or it is somebody else's (404)."""


class Conflict(NuiError):
    """Not as things are: it has ended, there are no funds, the key was used (409)."""


class Unavailable(NuiError):
    """Try again: too many requests (429), something does not answer (503, 504), or the gate was not reached (0)."""


def error_of(status: int, detail: str) -> NuiError:
    """The right one of them."""
    kinds = {401: Denied, 403: Denied, 404: NotFound, 409: Conflict, 429: Unavailable, 503: Unavailable, 504: Unavailable,
             0: Unavailable}
    return kinds.get(status, Invalid if 400 <= status < 500 or status == 501 else NuiError)(status, detail)
