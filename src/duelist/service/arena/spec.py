"""The settings of an arena: its name, its question, how items become features, and the policy that chooses the pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from duelist.service.arena.contexts import Prompt
from duelist.service.arena.outcomes import Outcome

TieKind = Literal["half", "ignored"]
FeatureKind = Literal["identity", "given", "text", "request"]
# An arena of items without features starts with this dimension, which doubles when there are more items.
_LEAST_DIM = 8


@dataclass(frozen=True, kw_only=True)
class ArenaSpec:
    """The settings of an arena, fixed when it is created.

    Attributes:
        id: its name in addresses.
        name: its title.
        question: what voters are asked.
        features: "identity" for items that share nothing, "given" for features sent with each item, "text" for features made
            from the content by an embedder, "request" for features sent with each ask.
        dim: length of a feature vector; 0 for "identity", whose dimension follows the number of items.
        embedder: name of the embedder of a "text" arena, else empty.
        policy: the policy as `duelist.policies.codec` writes it.
        seed: names all random numbers of the arena.
        undo_ms: how long a voter may take back an answer. Answers are learnt when that time is over.
        version: the duelist that created the arena.
        ties: "half" where a tie is learnt, as half a win each way or as the policy's model of ties says, "ignored" where it is
            only counted. Arenas from before
            this choice existed have no such setting and ignore ties, as they always did.
        exploration: probability with which any two items are shown instead of the policy's pair, so that every pair has a known
            probability.
        blind: whether voters are told nothing of items but their contents: an ask names them by handles of its own. Arenas from
            before this choice existed tell the ids.
        voter_quota: most answers of one voter; 0 for no limit.
        prompt: what the candidates answer where an ask does not say so, as `Prompt.to_plain` writes it; None for nothing.
    """

    id: str
    name: str
    question: str
    features: FeatureKind
    dim: int
    embedder: str
    policy: dict[str, Any]
    seed: int
    undo_ms: int
    version: str
    ties: TieKind = "ignored"
    exploration: float = 0.0
    blind: bool = False
    voter_quota: int = 0
    prompt: dict[str, Any] | None = None

    @property
    def asked_about(self) -> Prompt | None:
        """What the candidates answer where an ask does not say so."""
        return None if self.prompt is None else Prompt.from_plain(self.prompt)

    @property
    def learnt_outcomes(self) -> tuple[Outcome, ...]:
        """The answers that the policy learns."""
        named = (Outcome.FIRST, Outcome.SECOND, Outcome.RANKED)
        return (*named, Outcome.TIE) if self.ties == "half" else named

    def dim_for(self, n_items: int) -> int:
        """The dimension that the policy needs for that many items."""
        if self.features != "identity":
            return self.dim
        dim = _LEAST_DIM
        while dim < n_items:
            dim *= 2
        return dim
