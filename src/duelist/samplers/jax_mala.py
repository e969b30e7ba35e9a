"""MALA on the posterior of a differentiable reward: all steps of all chains of all lanes in one compiled JAX function.

The same steps and the same random numbers as `run_mala` on any potential, so both take the same path; here the loop is
compiled, with the gradient from automatic differentiation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.kernels.philox import RandomSource, mala_randomness
from duelist.posteriors.priors import Prior
from duelist.posteriors.rewards import RewardTerms, curvature_of, potential_of
from duelist.rewards.base import Reward, RewardNotFiniteError, require_jax
from duelist.samplers.adaptation import AdaptiveMALA, ChainInfo, ChainState, advance_state, refresh_whitener, start_at_prior


@stored("reward-mala-state", version=2, upgrade=nest(info=ChainInfo))
class RewardMALAState(ChainState):
    """State of `RewardMALA`, over the reward's parameters."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class RewardMALA(AdaptiveMALA):
    """Preconditioned MALA for differentiable rewards.

    Args:
        steps: steps each chain takes per round, from where it stood the round before.
    """

    def start(self, reward: Reward, prior: Prior, streams: Streams, *, dim: int) -> RewardMALAState:
        """Two chains per lane at draws from the prior."""
        require_jax()
        return RewardMALAState(*start_at_prior(prior, streams, chains=2, dim=reward.parameters(dim)))

    def advance(
        self,
        reward: Reward,
        terms: RewardTerms,
        state: RewardMALAState,
        streams: Streams,
        round_: int,
        *,
        rounds: int,
        attempt: int = 0,
        announce: Callable[[str], None],
    ) -> RewardMALAState:
        """Move every chain towards the potential of `rounds` duels; (round_, attempt) names the random numbers."""
        if rounds == 0:
            return state  # draws from the prior are draws from the posterior of no duels
        lanes, n_chains, size = state.position.shape
        with require_jax().enable_x64(True):
            if rounds >= 8:
                # Factorised outside of JAX: compiling that takes longer than all of them together.
                shape = _timed(_curvature(reward), announce)
                state = refresh_whitener(state, rounds, lambda: np.asarray(shape(state.position, terms)))
            noise, uniforms = np.empty((lanes, n_chains, self.steps, size)), np.empty((lanes, n_chains, self.steps))
            mala_randomness(noise, uniforms, RandomSource(streams.keys("reward mala"), round_, n_chains * attempt))
            run = _timed(_run(reward), announce)
            moved = run(state.position, np.exp(state.log_step), state.whitener, noise, uniforms, terms)
            position, acceptance, invalid = (np.asarray(part) for part in moved)
        if invalid.any() or not np.isfinite(state.whitener).all():
            raise RewardNotFiniteError(
                f"the posterior of the reward is not finite in lane {int(np.argmax(invalid.any(axis=1)))}: the reward or its "
                f"gradient returned NaN or infinity. Look for a logarithm, root or division that some theta makes invalid, "
                f"or keep theta in a smaller ball. Nothing was changed."
            )
        return advance_state(state, position, acceptance)


def _timed(compiled: Any, announce: Callable[[str], None]) -> Callable[..., Any]:
    """The compiled function, which tells before it compiles for new shapes and how long that took."""

    def call(*arguments: Any) -> Any:
        shapes = tuple(np.shape(part) for part in require_jax().tree_util.tree_leaves(arguments))
        if shapes in compiled.known_shapes:
            return compiled.function(*arguments)
        announce(f"compiling the {compiled.label} for {arguments[0].shape[-1]} parameters ...")
        started = time.perf_counter()
        result = require_jax().block_until_ready(compiled.function(*arguments))
        compiled.known_shapes.add(shapes)
        announce(f"compiled the {compiled.label} in {time.perf_counter() - started:.1f} s")
        return result

    return call


class _Compiled:
    """A compiled function and the shapes that it has been compiled for."""

    def __init__(self, label: str, function: Any) -> None:
        self.label, self.function = label, require_jax().jit(function)
        self.known_shapes: set[Any] = set()


@lru_cache(maxsize=32)
def _curvature(reward: Reward) -> _Compiled:
    """The mean curvature of a lane's chains."""
    jax = require_jax()
    of_chains = jax.vmap(curvature_of(reward), in_axes=(0, None))
    return _Compiled("curvature", jax.vmap(lambda position, terms: of_chains(position, terms).mean(axis=0)))


@lru_cache(maxsize=32)
def _run(reward: Reward) -> _Compiled:
    """All steps of all chains of all lanes: new positions, mean acceptance, and where the potential was not a number."""
    jax = require_jax()
    jnp = jax.numpy
    evaluate = jax.value_and_grad(potential_of(reward))

    def one_chain(
        start: Any, h: Any, noise: Any, uniforms: Any, chain: Any, whitener: Any, terms: RewardTerms
    ) -> tuple[Any, Any, Any]:
        def step(carry: Any, random: Any) -> tuple[Any, None]:
            theta, value, slope, accepted, invalid = carry
            xi, uniform = random
            move = h * xi - 0.5 * h * h * slope
            proposal = theta + whitener.T @ move
            new_value, gradient = evaluate(proposal, chain, terms)
            new_slope = whitener @ gradient
            back = (0.5 * h * h * new_slope - move) / h
            outside = jnp.isposinf(new_value)
            log_ratio = value - new_value + 0.5 * ((xi * xi).sum() - (back * back).sum())
            log_ratio = jnp.where(outside, -jnp.inf, log_ratio)
            invalid = invalid | (~outside & ~jnp.isfinite(new_value + new_slope.sum()))
            taken = jnp.log(uniform) < log_ratio
            kept = (jnp.where(taken, proposal, theta), jnp.where(taken, new_value, value), jnp.where(taken, new_slope, slope))
            return (*kept, accepted + jnp.exp(jnp.minimum(0.0, log_ratio)), invalid), None

        # Step 0 only evaluates: without noise, from an infinite potential, it proposes the start itself and takes it. The
        # gradient then stands once in the code to be compiled, which halves the wait.
        still = (jnp.zeros((1, len(start))), jnp.full(1, 0.5))
        random = (jnp.concatenate([still[0], noise]), jnp.concatenate([still[1], uniforms]))
        first = (start, jnp.asarray(jnp.inf), jnp.zeros_like(start), jnp.asarray(-1.0), jnp.asarray(False))
        (theta, value, _, accepted, invalid), _ = jax.lax.scan(step, first, random)
        return theta, accepted / len(uniforms), invalid | ~jnp.isfinite(value)

    def one_lane(position: Any, h: Any, whitener: Any, noise: Any, uniforms: Any, terms: RewardTerms) -> Any:
        over_chains = jax.vmap(one_chain, in_axes=(0, 0, 0, 0, 0, None, None))
        return over_chains(position, h, noise, uniforms, jnp.arange(2), whitener, terms)

    return _Compiled("sampler", jax.vmap(one_lane))
