"""Signatures: what a user signs with the key of his certificate, which never leaves this machine."""
from __future__ import annotations

import base64
import hashlib
import secrets
import time
from decimal import Decimal
from pathlib import Path
from typing import Iterable, Union

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from . import wire

MICRO = 1_000_000


def micro(amount: Union[Decimal, int, str]) -> int:
    """Credits as micro-credits. ValueError: finer than a micro-credit."""
    exact = Decimal(amount) * MICRO
    if exact != exact.to_integral_value():
        raise ValueError(f"{amount} is finer than a micro-credit")
    return int(exact)


class Identity:
    """A user's certificate and key, as nui-ca(1) issued them."""

    def __init__(self, chain: Iterable[x509.Certificate], key: Union[ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey]):
        self._chain = [cert.public_bytes(serialization.Encoding.DER) for cert in chain]
        self._key = key
        leaf = x509.load_der_x509_certificate(self._chain[0])
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = [uri for uri in names.get_values_for_type(x509.UniformResourceIdentifier) if uri.startswith("nui://")]
        if len(uris) != 1 or uris[0].count("/") != 4:
            raise ValueError("the certificate names no identity of a grid")
        self.uri: str = uris[0]
        self.grid: str = self.uri.split("/")[2]

    @classmethod
    def load(cls, cert: Union[str, Path], key: Union[str, Path]) -> "Identity":
        """From PEM files. OSError, ValueError: they cannot be read, or are none."""
        text = Path(cert).read_bytes()
        marker = b"-----END CERTIFICATE-----"
        chain = [x509.load_pem_x509_certificate(part + marker) for part in text.split(marker) if b"BEGIN CERTIFICATE" in part]
        if not chain:
            raise ValueError(f"{cert} holds no certificate")
        loaded = serialization.load_pem_private_key(Path(key).read_bytes(), None)
        if not isinstance(loaded, (ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey)):
            raise ValueError(f"{key} holds a key of a kind that this grid does not sign with")
        return cls(chain, loaded)

    def sign(self, domain: str, body: bytes) -> dict[str, object]:
        """An Envelope's fields: a detached signature over the domain, a zero byte and the body, and the chain."""
        data = domain.encode() + b"\0" + body
        signature = self._key.sign(data) if isinstance(self._key, ed25519.Ed25519PrivateKey) \
            else self._key.sign(data, ec.ECDSA(hashes.SHA256()))
        return {"body": body, "signature": signature, "chain": self._chain}

    def delegate(self, gate: str = "gate", *, lifetime: float = 12 * 3600, change: bool = True, jobs: int = 0,
                 max_cost: Union[Decimal, int, str] = 0, accounts: Iterable[str] = (), sites: Iterable[str] = ()) -> str:
        """A bearer token for that gate, as nui-delegate(1) makes it: a delegation and its secret. Keep it as a password.

        lifetime: seconds, at most 7 days. change: it may submit what you signed, cancel, hold. jobs: so many jobs the gate
        may sign itself, each for at most max_cost credits, on these accounts, at these sites (none: any).
        """
        secret, now = secrets.token_bytes(32), time.time_ns() // 1000
        body = wire.encode("GateDelegation", {
            "grid": self.grid, "gate": f"nui://{self.grid}/gate/{gate}", "series": secrets.token_bytes(12), "created_us": now,
            "expires_us": now + int(lifetime * MICRO), "change": change, "jobs_max": jobs, "cost_max_micro": micro(max_cost),
            "accounts": list(accounts), "sites": list(sites), "secret_hash": hashlib.sha256(secret).digest()})
        sealed = wire.encode("Envelope", self.sign("nui-gate-delegation-v1", body))
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (sealed, secret))
