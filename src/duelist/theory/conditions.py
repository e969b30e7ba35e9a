"""A bound is a number with the conditions under which it was proved, each checked on the numbers at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duelist.core.errors import InvalidInputError


class BoundDoesNotApplyError(InvalidInputError):
    """A bound was relied on where one of its conditions fails."""


@dataclass(frozen=True)
class Condition:
    """One condition of a bound.

    Attributes:
        name: the condition as a formula, for example "T >= d".
        holds: whether it does.
        numbers: the values that decided.
    """

    name: str
    holds: bool
    numbers: Mapping[str, float]

    def __str__(self) -> str:
        values = ", ".join(f"{symbol} = {value:g}" for symbol, value in self.numbers.items())
        return f"{self.name} {'holds' if self.holds else 'fails'} ({values})"


@dataclass(frozen=True)
class Bound:
    """A bound with its conditions. The value is that of the formula, whether or not the conditions hold.

    Attributes:
        name: of the bound in the paper.
        value: the number.
        conditions: every condition of its proof that numbers can check.
    """

    name: str
    value: float
    conditions: tuple[Condition, ...]

    @property
    def failing(self) -> tuple[Condition, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition in self.conditions if not condition.holds)

    @property
    def holds(self) -> bool:
        """Whether every condition holds."""
        return not self.failing

    def require(self) -> Bound:
        """Return this bound; an error that names the conditions which fail, if any do."""
        if self.failing:
            raise BoundDoesNotApplyError(
                f"the {self.name} must not be relied on here: {'; '.join(map(str, self.failing))}. Change those numbers, or "
                f"read .value for what the formula gives where nothing is proved."
            )
        return self

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.value:g}", *(f"  {condition}" for condition in self.conditions)]
        return "\n".join(lines)
