"""The real data, where they are: installed, or in the folder that DUELIST_DATA names. Where they are not, nothing is collected.

Counts are those of the data sets' own documentation and of the files, by other tools.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from duelist.datasets import Comparisons, MissingDataError, load


class Facts(NamedTuple):
    """What is known of a data set: the file of it, comparisons, items, ties, voters, and of chosen places how often each."""

    file: str
    comparisons: int
    items: int
    ties: int
    voters: int | None
    places: tuple[int, ...]


FACTS = {
    "train": Facts("train_data.csv.gz", 2929, 1785, 0, 235, (1474, 1455)),
    "electricity": Facts("electricity.csv.gz", 4308, 35, 0, 361, ()),
    "swissmetro": Facts("swissmetro.csv.gz", 10_719, 0, 0, 1191, (1423, 6216, 3080)),
    "car": Facts("car.csv.gz", 4654, 21_873, 0, 4654, (887, 269, 1345, 349, 1499, 305)),
    "cems": Facts("CEMS.rda", 4454, 6, 487, 303, (2595, 1372)),
    "football": Facts("football.RData", 1900, 29, 505, None, ()),
    "flatlizards": Facts("flatlizards.rda", 100, 77, 0, None, ()),
    "sound-quality": Facts("SoundQuality.rda", 21_924, 8, 0, 40, (7487, 14_437)),
    "first-names": Facts("FirstNames.rda", 2880, 6, 0, 192, (1455, 1425)),
    "llmfao": Facts("llmfao.csv", 8931, 59, 3471, 124, (2911, 2549)),
}


def find(name: str) -> Comparisons | None:
    with contextlib.suppress(MissingDataError):
        return load(name)
    path = Path(os.environ.get("DUELIST_DATA", ""), FACTS[name].file)
    return load(name, path) if "DUELIST_DATA" in os.environ and path.exists() else None


FOUND = {name: log for name in FACTS if (log := find(name)) is not None}

if FOUND:

    @pytest.mark.parametrize("name", FOUND)
    def test_the_real_data_have_the_counts_that_are_known_of_them(name: str) -> None:
        log, facts = FOUND[name], FACTS[name]
        assert (len(log), log.n_voters, int((log.chosen < 0).sum())) == (facts.comparisons, facts.voters, facts.ties)
        if facts.items:
            assert len(log.items) == facts.items
        if facts.places:
            assert tuple(int((log.chosen == place).sum()) for place in range(log.most_options)) == facts.places


if "train" in FOUND:

    def test_train_is_fitted_as_by_a_plain_logistic_regression() -> None:
        """Weights per 1,000 cents, per hour, per change and per class; log loss and accuracy, all from another tool."""
        log = FOUND["train"]
        assert log.features is not None
        theta = log.replay(ridge=1e-6).theta
        weights = theta / log.features.std(axis=0) * [1000, 60, 1, 1]
        np.testing.assert_allclose(weights, [-1.48, -1.72, -0.33, -0.95], atol=0.01)
        pairs = log.pairs()
        gaps = (log.scaled_features[pairs.first] - log.scaled_features[pairs.second]) @ theta
        assert np.log1p(np.exp(-gaps * pairs.outcomes)).mean() == pytest.approx(0.589, abs=0.001)
        assert (np.sign(gaps) == pairs.outcomes).mean() == pytest.approx(0.70, abs=0.005)
