"""From the models of requests to the values of the domain: features from texts, a policy from its description."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from duelist.core.checks import finite_array
from duelist.core.errors import DuelistError
from duelist.policies.codec import make, to_mapping
from duelist.policies.registry import POLICIES, registered_policy
from duelist.preferences.ties import TIE_MODELS
from duelist.service.arena.admin_commands import NewPrompt as AddedPrompt
from duelist.service.arena.contexts import Content, Context, Message, Prompt
from duelist.service.arena.goals import ArenaGoal, Evidence
from duelist.service.arena.items import Item, slug
from duelist.service.arena.spec import ArenaSpec, FeatureKind
from duelist.service.dataset_files import rows_of_file
from duelist.service.embedding import Embedder
from duelist.service.errors import RefusedError, UnavailableError
from duelist.service.http.fields import LARGEST_FEATURE, MAX_CHOICES, MAX_DIM
from duelist.service.http.question_models import MAX_PROMPTS_AT_ONCE, FullPrompt, NewDataset, NewGoal, NewPrompt
from duelist.service.http.request_models import NewArena, NewAsk, NewItem, PolicyChoice
from duelist.version import __version__

_log = logging.getLogger("duelist.service")
_DEFAULT_EMBEDDER = "hashing"
_NOT_SETTINGS = ("kind", "prior")


def spec_of(request: NewArena, embedders: dict[str, Embedder]) -> ArenaSpec:
    """The settings of the arena that a request describes."""
    embedder = ""
    dim = request.dim or 0
    if request.dataset is not None and request.features != "identity":
        raise RefusedError('an arena with a dataset has items that share nothing: leave features out, or say "identity".')
    if request.features in ("given", "request"):
        if request.dim is None:
            raise RefusedError(f'an arena with features "{request.features}" needs dim, the length of a feature vector.')
    elif request.dim is not None:
        raise RefusedError(f'dim must be left out for features "{request.features}": it is known without.')
    if request.features == "text":
        embedder = request.embedder or _DEFAULT_EMBEDDER
        dim = _embedder(embedder, embedders).dim
    elif request.embedder is not None:
        raise RefusedError(f'embedder must be left out for features "{request.features}".')
    return ArenaSpec(
        id=request.id or f"{slug(request.name, 40).lower() or 'arena'}-{secrets.token_hex(3)}",
        name=request.name,
        question=request.question,
        features=request.features,
        dim=dim,
        embedder=embedder,
        policy=_policy_of(request.policy or fitting_policy(request.goal)),
        seed=request.seed,
        undo_ms=round(1000 * request.undo_seconds),
        version=__version__,
        ties=request.ties,
        exploration=request.exploration,
        blind=request.blind,
        voter_quota=request.voter_quota,
        prompt=None if request.prompt is None else prompt_of(request.prompt).to_plain(),
    )


def fitting_policy(goal: NewGoal | None) -> PolicyChoice:
    """The policy for an arena that names none: one that asks what the goal needs."""
    if goal is None or goal.evidence != "model" or goal.kind not in ("best", "top"):
        return PolicyChoice()
    return PolicyChoice(name="BestArm", settings={"k": goal.k or 1, "delta": goal.delta})


def goal_of(request: NewGoal, features: FeatureKind) -> ArenaGoal:
    """The goal that a request describes, for an arena whose items have features of this kind."""
    evidence: Evidence = request.evidence or ("model" if features in ("given", "text") else "pairs")
    names = {"challenger": request.challenger or "", "champion": request.champion or ""}
    return ArenaGoal(kind=request.kind, delta=request.delta, k=request.k or 1, evidence=evidence, **names)


def prompt_of(request: str | FullPrompt) -> Prompt:
    """The prompt that a request describes; text is just that."""
    if isinstance(request, str):
        return Prompt("text", request)
    messages = tuple(Message(one.role, one.content) for one in request.messages or ())
    return Prompt(request.format, request.content or "", messages)


def context_of(request: NewAsk) -> Context | None:
    """What an ask brings along; None where that is nothing."""
    if request.prompt is None and request.candidates is None:
        return None
    candidates = None
    if request.candidates is not None:
        candidates = {one.item: None if one.content is None else Content(one.content, one.format) for one in request.candidates}
    return Context(None if request.prompt is None else prompt_of(request.prompt), candidates)


def prompts_of(request: NewDataset) -> list[AddedPrompt]:
    """The prompts of a data set, read from the text of a file where they came as one."""
    rows = request.prompts
    if rows is None:
        rows = [_checked(place, row) for place, row in rows_of_file(request.text or "", request.file or "jsonl")]
        if len(rows) > MAX_PROMPTS_AT_ONCE:
            raise RefusedError(f"at most {MAX_PROMPTS_AT_ONCE} prompts may come at once; got {len(rows)}. Send them in parts.")
    return [
        AddedPrompt(
            Prompt("markdown", row.prompt) if isinstance(row.prompt, str) else prompt_of(row.prompt),
            {
                item: Content(one, "markdown") if isinstance(one, str) else Content(one.content, one.format)
                for item, one in row.answers.items()
            },
        )
        for row in rows
    ]


def _checked(place: str, row: dict[str, Any]) -> NewPrompt:
    try:
        return NewPrompt.model_validate_json(json.dumps(row))
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise RefusedError(f"{place} of the file: {where}: {fault['msg']}. Nothing was added.") from None


def items_of(requests: Sequence[NewItem], spec: ArenaSpec, embedders: dict[str, Embedder]) -> list[Item]:
    """The items that a request describes, with an empty id where it names none. An embedder may be slow: let no vote wait."""
    rows = _features_of(requests, spec, embedders)
    return [
        Item(request.id or "", request.name, request.content or request.name, request.format, row)
        for request, row in zip(requests, rows, strict=True)
    ]


def _features_of(requests: Sequence[NewItem], spec: ArenaSpec, embedders: dict[str, Embedder]) -> list[tuple[float, ...]]:
    rows: list[tuple[float, ...]] = []
    for request in requests:
        if spec.features != "given" and request.features is not None:
            raise RefusedError(
                f'items must come without features in an arena with features "{spec.features}"; {request.name!r} has some.'
            )
        if spec.features == "given" and len(request.features or ()) != spec.dim:
            raise RefusedError(f"item {request.name!r} needs {spec.dim} features; got {len(request.features or ())}.")
        rows.append(tuple(request.features or ()))
    if spec.features == "text":
        return _embedded([request.content or request.name for request in requests], spec, embedders)
    return rows


def _embedded(texts: list[str], spec: ArenaSpec, embedders: dict[str, Embedder]) -> list[tuple[float, ...]]:
    name, embedder = spec.embedder, _embedder(spec.embedder, embedders)
    try:
        made = finite_array("the embedder's features", embedder.embed(texts), "(n_texts, dim)", 2)
    except Exception as error:  # it may be a model, or a request to another service: anything can go wrong there
        _log.exception("embedder %r failed", name)
        raise UnavailableError(f"embedder {name!r} failed ({type(error).__name__}); nothing was added. Try again.") from error
    if made.shape != (len(texts), spec.dim):
        raise RefusedError(f"embedder {name!r} was to give ({len(texts)}, {spec.dim}) features; it gave {made.shape}.")
    if abs(made).max(initial=0.0) > LARGEST_FEATURE:
        raise RefusedError(f"embedder {name!r} gave a feature beyond {LARGEST_FEATURE:g}; scale its output.")
    return [tuple(row) for row in made.tolist()]


def _policy_of(choice: PolicyChoice) -> dict[str, object]:
    try:
        chosen = registered_policy(choice.name)
        if chosen.extra:
            raise RefusedError(f"{chosen.__name__} learns a reward that is not linear; an arena ranks items by a linear one.")
        for name in _NOT_SETTINGS:
            if name in choice.settings:
                raise RefusedError(f"{name} is not a setting: choose the policy by its name, and its prior by prior_scale.")
        settings: dict[str, object] = {**choice.settings}
        if settings.get("ties") in TIE_MODELS:
            settings["ties"] = {"kind": settings["ties"]}
        if choice.prior_scale is not None:
            settings["prior"] = {"kind": "Gaussian", "scale": choice.prior_scale}
        policy = make(chosen, settings)
        if getattr(policy, "choices", 2) > MAX_CHOICES:
            raise RefusedError(f"choices must be at most {MAX_CHOICES}, so that people can look at all; got {policy.choices}.")
        return to_mapping(policy)
    except (DuelistError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, RefusedError):
            raise
        known = ", ".join(name for name, one in POLICIES.items() if not one.extra)
        raise RefusedError(f"policy {choice.name!r} cannot be made: {error} Known policies: {known}.") from error


def _embedder(name: str, embedders: dict[str, Embedder]) -> Embedder:
    if name not in embedders:
        raise RefusedError(f"this service has no embedder {name!r}; it has {', '.join(sorted(embedders))}.")
    embedder = embedders[name]
    if embedder.dim > MAX_DIM:
        raise RefusedError(f"embedder {name!r} makes {embedder.dim} features; arenas take at most {MAX_DIM}.")
    return embedder
