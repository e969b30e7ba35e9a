"""Embeddings of models made of embeddings of prompts, by what each model scored in each category of an offline part.

A model's embedding is sum_m w_m xi_m: xi_m the mean embedding of the offline prompts of category m, and w_m a weight made of
the model's mean score s_m and mean cost c_m there. `WEIGHTINGS` are four ways to make it. The features of a prompt x and a
model a are the products x_i a_i, so that a policy with all weights 1 asks how much the prompt looks like the categories in
which the model is good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.typing import FloatArray

WEIGHTINGS = ("perf", "perf-cost", "excel-perf-cost", "excel-mask")
TOP = 3  # models that excel in a category
_SHRINKAGE = 0.1
Labels = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class CategoryDirections:
    """A linear map in which prompts of one category are near each other and the categories apart: linear discriminants.

    The map is x -> (x - mean) @ directions. Within a category its coordinates have variance 1 and are uncorrelated.

    Args:
        mean: (n,) of the embeddings that it was fitted on.
        directions: (n, n_categories - 1), or fewer where embeddings are short.
    """

    mean: FloatArray
    directions: FloatArray

    @classmethod
    def fit(cls, embeddings: FloatArray, categories: Labels) -> CategoryDirections:
        """The directions of embeddings (n, dim) with a category each."""
        names = np.unique(categories.astype(str))
        if len(names) < 2:
            raise InvalidInputError(f"embeddings are calibrated by category, and need at least 2; got {len(names)}.")
        centres = category_means(embeddings, categories, names)
        rows = np.searchsorted(names, categories.astype(str))
        inside = embeddings - centres[rows]
        scatter = inside.T @ inside / len(inside)
        # Shrunk towards a sphere: there may be fewer prompts than numbers in an embedding.
        scatter = (1.0 - _SHRINKAGE) * scatter + _SHRINKAGE * np.trace(scatter) / len(scatter) * np.eye(len(scatter))
        values, axes = np.linalg.eigh(scatter)
        whiten = axes / np.sqrt(values)
        mean = embeddings.mean(axis=0)
        shares = np.bincount(rows) / len(rows)
        _, sizes, apart = np.linalg.svd((np.sqrt(shares)[:, None] * (centres - mean)) @ whiten, full_matrices=False)
        n_directions = min(len(names) - 1, int((sizes > 1e-9 * sizes[0]).sum()))
        return cls(mean=mean, directions=np.ascontiguousarray(whiten @ apart[:n_directions].T))

    def __call__(self, embeddings: FloatArray) -> FloatArray:
        """(n, n_directions) of embeddings (n, dim)."""
        return np.asarray((embeddings - self.mean) @ self.directions)


def category_means(values: FloatArray, categories: Labels, names: Labels) -> FloatArray:
    """(n_categories, k) means of the rows of each category."""
    return np.stack([values[categories.astype(str) == name].mean(axis=0) for name in names])


def category_weights(weighting: str, scores: FloatArray, costs: FloatArray, cost_weight: float) -> FloatArray:
    """(K, n_categories) weights of the categories in each model's embedding.

    * `perf`: the mean score.
    * `perf-cost`: the mean score minus cost_weight times the mean cost.
    * `excel-perf-cost`: the same in the categories in which the model is one of the `TOP` best by it, elsewhere 0.
    * `excel-mask`: 1 in these categories, elsewhere 0.

    Args:
        weighting: one of `WEIGHTINGS`.
        scores: (K, n_categories) means.
        costs: (K, n_categories) means.
        cost_weight: what a cost of 1 takes from the utility.

    Example:
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.3], [0.3, 0.2], [0.1, 0.4]])
        >>> category_weights("excel-mask", scores, np.zeros((4, 2)), 0.0).tolist()
        [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 1.0]]
    """
    one_of("weighting", weighting, WEIGHTINGS)
    if weighting == "perf":
        return scores
    utilities = scores - cost_weight * costs
    if weighting == "perf-cost":
        return utilities
    places = np.argsort(np.argsort(-utilities, axis=0, kind="stable"), axis=0)
    excels = places < TOP
    return np.where(excels, 1.0 if weighting == "excel-mask" else utilities, 0.0)
