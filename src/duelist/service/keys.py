"""API keys: random, shown once, kept only as a digest.

A key has 256 random bits, so a plain SHA-256 of it cannot be searched; slow password hashing would only slow the service.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Literal

Role = Literal["vote", "read", "admin"]
_PREFIX = "duel_"


@dataclass(frozen=True)
class Key:
    """What the service knows of a key.

    Attributes:
        id: its public name.
        role: "vote" may ask and tell; "read" may see what the votes say and change nothing; "admin" may do everything.
        digest: SHA-256 of the secret, hexadecimal.
        label: what it is for.
        scope: the one arena it opens; empty for all.
        created_at: milliseconds since 1970.
        voter: whose answers come through it, whatever name a request says; empty where requests say so.
        quota: most answers through it; 0 for no limit.
    """

    id: str
    role: Role
    digest: str
    label: str
    scope: str
    created_at: int
    voter: str = ""
    quota: int = 0

    @property
    def is_master(self) -> bool:
        """Whether the key may administer the whole service."""
        return self.role == "admin" and not self.scope


def new_secret() -> str:
    """A fresh secret. It exists in the clear only in the answer to the request that made it."""
    return _PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def new_key(secret: str, *, role: Role, label: str, scope: str, at: int) -> Key:
    """The record of a secret."""
    return Key(secrets.token_hex(6), role, digest_of(secret), label, scope, at)
