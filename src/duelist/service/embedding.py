"""Text to features. Any object with a `dim` and an `embed` will do; the one shipped needs no model and no network.

Features are computed once, when an item is added, and stored in the journal with it: replaying never embeds again, so an
embedder that changes or disappears cannot change what was learnt.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from duelist.core.checks import whole_number
from duelist.typing import FloatArray

_WORD = re.compile(r"\w+|[^\w\s]")


class Embedder(Protocol):
    """Turns texts into feature vectors."""

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Features (len(texts), dim), finite; the same text always gives the same row."""


@dataclass(frozen=True, kw_only=True)
class HashingEmbedder:
    """Words and pairs of neighbouring words, hashed into `dim` signed counts and scaled to length one.

    Each token adds +sqrt(count) or -sqrt(count) to one of `dim` places, both chosen by a hash of the token. Inner products of
    two rows estimate the overlap of the two texts without bias, because the signs of colliding tokens are independent.

    Example:
        >>> rows = HashingEmbedder(dim=64).embed(["a short answer", "a short answer", "something else entirely"])
        >>> round(float(rows[0] @ rows[1]), 6), bool(rows[0] @ rows[2] < 0.5)
        (1.0, True)

    Reference: Weinberger et al., Feature Hashing for Large Scale Multitask Learning, 2009.
    """

    dim: int = 64

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, at_least=2)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Features (len(texts), dim); a text without a single word gives zeros."""
        rows = np.zeros((len(texts), self.dim))
        for row, text in zip(rows, texts, strict=True):
            words = _WORD.findall(text.lower())
            tokens = Counter(words)
            tokens.update(f"{left} {right}" for left, right in itertools.pairwise(words))
            for token, count in tokens.items():
                code = int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little")
                sign = 1.0 if code & 1 else -1.0
                row[(code >> 1) % self.dim] += sign * count**0.5
            length = float(np.linalg.norm(row))
            if length > 0:
                row /= length
        return rows
