"""Choosing the best value of a tuned parameter, on instances that the test never sees."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from duelist.experiments.blocks import Cell
from duelist.experiments.spec import Spec


def best_values(spec: Spec, cell: Cell, part: pa.Table) -> dict[str, float]:
    """Grid name -> the value with the smallest mean (or median) final regret on the tuning instances.

    Of values that tie exactly the smallest is taken.
    """
    policy = spec.policies[cell.policy]
    final = part.column("final_regret").to_numpy().reshape(len(cell.points), len(cell.trials))
    measure = np.median if spec.tuning.criterion == "median" else np.mean
    score = {point[policy.tuned]: float(measure(row)) for point, row in zip(cell.points, final, strict=True)}
    return {name: min(values, key=lambda value: (score[value], value)) for name, values in policy.tune[policy.tuned].items()}
