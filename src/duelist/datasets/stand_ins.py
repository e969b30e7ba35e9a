"""Made-up tables with the shape of RouterBench and of MixInstruct, for where the files are not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from duelist.core.checks import one_of, whole_number
from duelist.datasets.routing import ScoreTable
from duelist.typing import FloatArray, IntArray

EMBEDDING_DIM = 64
N_MODELS = 11
_NUISANCE = 6  # directions of an embedding in which prompts differ most and which say nothing about models


class _Shape(NamedTuple):
    """What is known of a table of scores.

    Attributes:
        categories: names, the share of prompts of each, and how long a prompt of it is.
        priced: whether answers have costs, and better models cost more.
        special: how much a model's ability differs from category to category.
        binary: whether an answer is right or wrong; else its score is a number.
    """

    categories: tuple[tuple[str, float, float], ...]
    priced: bool
    special: float
    binary: bool


# Benchmarks and sources by about their shares. Scores of MixInstruct differ more from prompt to prompt than by source.
STAND_INS = {
    "routerbench": _Shape(
        (
            ("mmlu", 0.38, 1.0), ("hellaswag", 0.25, 1.2), ("grade-school-math", 0.15, 1.6), ("arc", 0.08, 0.8),
            ("winogrande", 0.07, 0.6), ("mbpp", 0.05, 2.0), ("mtbench", 0.02, 3.0),
        ),
        priced=True, special=0.9, binary=True,
    ),
    "mix-instruct": _Shape(
        (("unified_chip2", 0.45, 1.0), ("gpt4all", 0.3, 1.5), ("dolly_15k", 0.15, 1.2), ("itwgpt4", 0.1, 2.0)),
        priced=False, special=0.5, binary=False,
    ),
}  # fmt: skip


def make_stand_in(name: str, n_prompts: int, seed: int) -> ScoreTable:
    """A table of eleven models with embeddings of its prompts, in the shape of a published one. Nothing in it was measured.

    A model has an ability in every category: one part for all, which grows with its price where there are prices, and one of
    its own. A prompt has a difficulty. The score is right or wrong, with log-odds ability - difficulty; or, in the shape of
    MixInstruct, ability - difficulty with noise. An embedding has 64 numbers: a centre per category, six loud directions that
    say nothing, a faint one of the difficulty, and noise.

    Args:
        name: "routerbench" or "mix-instruct".
        n_prompts: how many.
        seed: of all random numbers.

    Example:
        >>> table = make_stand_in("routerbench", 50, seed=0)
        >>> table.scores.shape, sorted(set(table.scores.ravel().tolist()))
        ((50, 11), [0.0, 1.0])
    """
    shape = STAND_INS[one_of("name", name, STAND_INS)]
    whole_number("n_prompts", n_prompts, at_least=2)
    rng = np.random.default_rng([whole_number("seed", seed), *name.encode()])
    names, shares, lengths = zip(*shape.categories, strict=True)
    kinds = rng.choice(len(names), size=n_prompts, p=shares)
    difficulty = rng.standard_normal(n_prompts)
    prices = np.logspace(-2.0, 0.0, N_MODELS)  # the dearest is a hundred times the cheapest
    general = np.linspace(-1.0, 1.0, N_MODELS) + 0.4 * rng.standard_normal(N_MODELS)
    ability = general[:, None] + shape.special * rng.standard_normal((N_MODELS, len(names)))
    merit = 0.5 + ability[:, kinds].T - difficulty[:, None]
    if shape.binary:
        scores = (rng.random(merit.shape) < expit(merit)).astype(np.float64)
    else:
        scores = 0.25 * merit + 0.3 * rng.standard_normal(merit.shape)
    length = np.array(lengths)[kinds] * rng.lognormal(0.0, 0.5, n_prompts)
    return ScoreTable(
        name=name,
        models=tuple(f"model-{place:02d}" for place in range(N_MODELS)),
        prompts=(),
        categories=np.array(names, dtype=object)[kinds],
        scores=scores,
        costs=length[:, None] * prices if shape.priced else None,
        embeddings=_embed(kinds, difficulty, rng),
    )


def _embed(kinds: IntArray, difficulty: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(n, 64) embeddings of prompts of these categories and difficulties."""
    centres = 0.6 * rng.standard_normal((kinds.max() + 1, EMBEDDING_DIM))
    faint = rng.standard_normal(EMBEDDING_DIM) / np.sqrt(EMBEDDING_DIM)
    loud = rng.standard_normal((_NUISANCE, EMBEDDING_DIM)) / np.sqrt(EMBEDDING_DIM)
    nuisance = 6.0 * rng.standard_normal((len(kinds), _NUISANCE)) @ loud
    return np.asarray(
        centres[kinds] + nuisance + difficulty[:, None] * faint + rng.standard_normal((len(kinds), EMBEDDING_DIM))
    )
