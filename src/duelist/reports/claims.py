"""The paper's claims, judged by the data: every verdict is computed.

The paper prints no numbers, so its words need thresholds. They are stated here and in the report:

* "by a large margin": the best baseline's mean regret is at least 1.5 times that of FGTS.CDB, and the paired difference is
  clear (its 95 % t interval excludes zero).
* "comparable with UCB-based algorithms", the paper's conclusion: the mean is at most 1.1 times the best baseline's, or the
  paired difference is not clear.
* "the smallest standard deviation": smaller than that of every baseline in at least 95 % of bootstrap resamples of the trials;
  in at most 5 % it did not hold, and in between the trials do not decide.
* "robust in alpha": the worst alpha's mean regret is at most 1.5 times the best one's.
* "performs well without Feel-Good exploration": alpha = 0 costs at most 1.1 times alpha = 0.1.
* "no substantial impact compared to the warm-up": of the means with the ridge and with the warm-up, the larger is at most 1.5
  times the smaller, or the paired difference is not clear.

On the paper's grids a baseline counts as the paper tunes it: CoLSTIM by its perturbation, all others by their radius.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duelist.experiments.statistics import paired_difference, share_with_smallest_spread, summary
from duelist.experiments.sweep.series import GRIDS, PAPER_ALPHA, Series, environment_text, select

LARGE_MARGIN = 1.5
ROBUST_RATIO = 1.5
NO_COST_RATIO = 1.1
SUBSTANTIAL_RATIO = 1.5
CLEAR_SHARE = 0.95
COMPARABLE_RATIO = 1.1
# The grids whose baselines have the paper's ridge in place of a warm-up, and the policies of which the paper says it.
_RIDGE_GRIDS = ("paper_ridge", "paper_covariance")
_WARMED_UP = ("MaxInP", "MaxPairUCB")


@dataclass(frozen=True)
class Finding:
    """A claim in one environment: whether it held, or None where the trials do not decide, and the numbers that say so."""

    environment: str
    held: bool | None
    words: str


@dataclass(frozen=True)
class Verdict:
    """A claim under one set of conditions, over all environments."""

    claim: str
    conditions: str
    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> str:
        """The verdict over all environments: held, did not hold, not decided, or in how many it did which."""
        total = len(self.findings)
        counts = {
            "held": sum(finding.held is True for finding in self.findings),
            "not decided": sum(finding.held is None for finding in self.findings),
        }
        for outcome, count in counts.items():
            if count == total:
                return outcome
        parts = [f"{outcome} in {count}" for outcome, count in counts.items() if count]
        return f"{', '.join(parts)} of {total}" if parts else "did not hold"


def lower_mean_finding(environment: str, ours: Series, theirs: Series, whose: str, *, digits: int = 1) -> Finding:
    """Whether one mean regret is below another, by the paired 95 % t interval; `whose` says whose the other is."""
    difference = paired_difference(ours, theirs).t
    decided = difference.low > 0.0 or difference.high < 0.0
    return Finding(
        environment,
        difference.estimate < 0.0 if decided else None,
        f"{ours.final_regret.mean():.{digits}f} against {theirs.final_regret.mean():.{digits}f} {whose}; paired difference "
        f"{difference.estimate:+.1f} ({difference.low:+.1f} to {difference.high:+.1f})",
    )


def figure1_verdicts(series: Sequence[Series]) -> list[Verdict]:
    """Large margin and smallest spread: for each sampler of FGTS, against the baselines as tuned in each way."""
    everything = [one for one in series if one.tuned_as_in_the_paper]
    samplers = list(dict.fromkeys(one.label for one in everything if one.policy == "FGTS"))
    found = list(dict.fromkeys(one.grid for one in everything if one.grid))
    grids = [grid for grid in (*GRIDS, *sorted(set(found) - set(GRIDS))) if grid in found]
    verdicts = []
    judges = {
        "FGTS.CDB wins by a large margin": _margin,
        "FGTS.CDB is comparable with the baselines": _comparable,
        "FGTS.CDB has the smallest sd": _smallest_sd,
    }
    for claim, judge in judges.items():
        for grid in grids:
            for label in samplers:
                findings = []
                shown = next((one.title for one in select(everything, label=label) if one.not_converged), label)
                for own in select(everything, label=label):
                    others = select(everything, grid=grid, environment=own.environment)
                    findings.append(judge(own, others))
                verdicts.append(Verdict(claim, f"{shown}; baselines: {GRIDS.get(grid, grid)}", tuple(findings)))
    return verdicts


def warm_up_verdicts(series: Sequence[Series]) -> list[Verdict]:
    """A ridge of 0.001 against random rounds first: for each way to set the ridge, each policy and each length of warm-up."""
    verdicts = []
    for policy in _WARMED_UP:
        own = select(list(series), policy=policy)
        warmed = select(own, grid="warm_up")
        for grid in _RIDGE_GRIDS:
            for label in dict.fromkeys(one.label for one in warmed):
                pairs = [
                    (with_ridge, with_warm_up)
                    for with_ridge in select(own, grid=grid)
                    for with_warm_up in select(warmed, label=label, environment=with_ridge.environment)
                ]
                if pairs:
                    conditions = f"{pairs[0][0].label} against {label}"
                    verdicts.append(Verdict(_NO_IMPACT, conditions, tuple(_no_impact(*pair) for pair in pairs)))
    return verdicts


_NO_IMPACT = "A ridge of 0.001 does as well as a warm-up"


def figure2_verdicts(series: Sequence[Series]) -> list[Verdict]:
    """Robust in alpha, and whether the Feel-Good term is needed, for each sampler."""
    labels = list(dict.fromkeys(one.label for one in series))
    verdicts = []
    for claim, judge in (("FGTS.CDB is robust in alpha", _robust), ("FGTS.CDB does well at alpha = 0", _without)):
        for label in labels:
            own = select(list(series), label=label)
            failed = next((one.title for one in own if one.not_converged), label)
            places = list({str(one.environment): one.environment for one in own}.values())
            findings = [judge(select(own, environment=place)) for place in places]
            verdicts.append(Verdict(claim, failed, tuple(findings)))
    return verdicts


def _margin(own: Series, others: list[Series]) -> Finding:
    best = min(others, key=lambda other: other.final_regret.mean())
    ours, theirs = summary(own).mean, summary(best).mean
    difference = paired_difference(best, own).t
    ratio = theirs / ours if ours > 0 else float("inf")
    if difference.low > 0:
        sense = "clearly better" if ratio >= LARGE_MARGIN else "better, but not by a large margin"
    else:
        sense = "clearly worse" if difference.high < 0 else "not clearly different"
    words = (
        f"{ours:.0f} against {theirs:.0f} of {best.label} ({best.setting_text}), the best baseline, {ratio:.2f} times: "
        f"{sense}; "
        f"paired difference {difference.estimate:+.0f} ({difference.low:+.0f} to {difference.high:+.0f})"
    )
    return Finding(environment_text(own.environment), ratio >= LARGE_MARGIN and difference.low > 0, words)


def _comparable(own: Series, others: list[Series]) -> Finding:
    best = min(others, key=lambda other: other.final_regret.mean())
    ours, theirs = summary(own).mean, summary(best).mean
    difference = paired_difference(own, best).t
    ratio = ours / theirs if theirs > 0 else float("inf")
    words = (
        f"{ours:.0f} against {theirs:.0f} of {best.label} ({best.setting_text}), the best baseline: {ratio:.2f} times; paired "
        f"difference {difference.estimate:+.0f} ({difference.low:+.0f} to {difference.high:+.0f})"
    )
    return Finding(environment_text(own.environment), ratio <= COMPARABLE_RATIO or difference.low <= 0.0, words)


def _smallest_sd(own: Series, others: list[Series]) -> Finding:
    steadiest = min(others, key=lambda other: summary(other).sd)
    ours, theirs = summary(own).sd, summary(steadiest).sd
    share = share_with_smallest_spread(own, others)
    words = (
        f"sd {ours:.0f} against {theirs:.0f} of {steadiest.label}, the steadiest baseline; smallest in {share:.0%} of resamples"
    )
    held = True if share >= CLEAR_SHARE else False if share <= 1.0 - CLEAR_SHARE else None
    return Finding(environment_text(own.environment), held, words)


def _no_impact(with_ridge: Series, with_warm_up: Series) -> Finding:
    ours, theirs = summary(with_ridge).mean, summary(with_warm_up).mean
    difference = paired_difference(with_ridge, with_warm_up).t
    clear = difference.low > 0 or difference.high < 0
    substantial = clear and max(ours, theirs) > SUBSTANTIAL_RATIO * min(ours, theirs)
    sense = "clearly different" if clear else "not clearly different"
    words = (
        f"{ours:.0f} with the ridge ({with_ridge.setting_text}) against {theirs:.0f} with the warm-up "
        f"({with_warm_up.setting_text}): {sense}; paired difference {difference.estimate:+.0f} ({difference.low:+.0f} to "
        f"{difference.high:+.0f})"
    )
    return Finding(environment_text(with_ridge.environment), not substantial, words)


def _robust(own: list[Series]) -> Finding:
    means = {one.setting["alpha"]: summary(one).mean for one in own}
    best, worst = min(means, key=lambda a: means[a]), max(means, key=lambda a: means[a])
    ratio = means[worst] / means[best]
    # Up to which alpha nothing is lost beyond the threshold: more useful than yes or no over four decades.
    safe = [a for a in sorted(means) if all(means[b] <= ROBUST_RATIO * means[best] for b in means if b <= a)]
    listed = ", ".join(f"{alpha:g}: {mean:.0f}" for alpha, mean in means.items())
    words = f"mean regret by alpha {listed}; worst over best {ratio:.2f} (alpha {worst:g} over {best:g})"
    words += f"; within {ROBUST_RATIO:g} times the best up to alpha {max(safe):g}" if safe else ""
    return Finding(environment_text(own[0].environment), ratio <= ROBUST_RATIO, words)


def _without(own: list[Series]) -> Finding:
    (without,) = [one for one in own if one.setting["alpha"] == 0.0]
    (with_,) = [one for one in own if one.setting["alpha"] == PAPER_ALPHA]
    difference = paired_difference(without, with_).t
    ratio = summary(without).mean / summary(with_).mean
    words = (
        f"{summary(without).mean:.0f} at alpha 0 against {summary(with_).mean:.0f} at alpha {PAPER_ALPHA:g}; "
        f"paired difference {difference.estimate:+.0f} ({difference.low:+.0f} to {difference.high:+.0f})"
    )
    return Finding(environment_text(without.environment), ratio <= NO_COST_RATIO, words)
