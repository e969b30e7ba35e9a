"""The names of classes in files and journals: the one module that knows what is written on disk.

A file never holds a module path. It holds a short name and a version, such as `fgts-state/2`, so a module can move and a class
can be renamed without anybody's data noticing. Three things make a stored class:

1. `@stored("fgts-state", version=2, upgrade=...)` above the class. The name never changes; the version grows when fields do.
2. A line in `HOMES`, so that a name in a file finds its class in a process that has not imported it yet. Only classes of
   duelist need one; a class of your own is known once its module is imported.
3. Where the version has grown: `upgrade=`, a function of the older version and its fields, by name, that returns today's
   fields. `nest` makes the one that is needed most.

Version 0.1.0 wrote module paths. `WRITTEN_BY_0_1` says which names those became. Never remove a line of it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from duelist.core.errors import InvalidInputError, SavedStateError

Class = TypeVar("Class", bound=type)

# Where each stored class is today: this may change at will.
HOMES: dict[str, str] = {
    "ball-actions": "duelist.actions.ball:BallActions",
    "beat-the-mean-memory": "duelist.policies.algorithms.matrix.beat_the_mean:BeatTheMeanMemory",
    "bilinear-map": "duelist.features:BilinearMap",
    "box-actions": "duelist.actions.box:BoxActions",
    "ccb-memory": "duelist.policies.algorithms.matrix.ccb:CCBMemory",
    "chain-info": "duelist.samplers.adaptation:ChainInfo",
    "colstim-settings": "duelist.policies.algorithms.confidence.colstim:CoLSTIMSettings",
    "colstim-state": "duelist.policies.algorithms.confidence.colstim:CoLSTIMState",
    "cppl-settings": "duelist.policies.algorithms.slates.cppl:CPPLSettings",
    "cppl-state": "duelist.policies.algorithms.slates.cppl:CPPLState",
    "curvature": "duelist.samplers.curvature:Curvature",
    "duel-table": "duelist.history.duel_table:DuelTable",
    "ellipsoid-actions": "duelist.actions.ellipsoid:EllipsoidActions",
    "expansion": "duelist.samplers.expansion:Expansion",
    "feel-good-settings": "duelist.policies.parts.feel_good:FeelGoodSettings",
    "fgts-state": "duelist.policies.algorithms.sampling.fgts:FGTSState",
    "finite-actions": "duelist.actions.finite:FiniteActions",
    "finite-models-state": "duelist.policies.algorithms.sampling.finite_models:FiniteModelsState",
    "fit-info": "duelist.policies.parts.confidence:FitInfo",
    "foresight-arms": "duelist.policies.algorithms.sampling.foresight:OfferedArms",
    "foresight-info": "duelist.policies.algorithms.sampling.foresight:ForesightInfo",
    "foresight-scales": "duelist.policies.parts.prior_scale:ScaleFits",
    "foresight-settings": "duelist.policies.algorithms.sampling.foresight:ForesightSettings",
    "foresight-state": "duelist.policies.algorithms.sampling.foresight:ForesightState",
    "generic-mala-state": "duelist.samplers.generic_mala:GenericMALAState",
    "history": "duelist.history.history:History",
    "interleaved-filter-memory": "duelist.policies.algorithms.matrix.interleaved_filter:InterleavedFilterMemory",
    "known-arms": "duelist.policies.parts.known_arms:KnownArms",
    "langevin-state": "duelist.samplers.langevin:LangevinState",
    "laplace-info": "duelist.samplers.gaussian:LaplaceInfo",
    "laplace-state": "duelist.samplers.gaussian:LaplaceState",
    "last-duel": "duelist.history.last_duel:LastDuel",
    "layered-info": "duelist.policies.parts.layers:LayeredInfo",
    "layered-settings": "duelist.policies.parts.layers:LayeredSettings",
    "layered-state": "duelist.policies.parts.layers:LayeredState",
    "listwise-fgts-state": "duelist.policies.algorithms.slates.listwise_fgts:ListwiseFGTSState",
    "m-aupo-settings": "duelist.policies.algorithms.slates.m_aupo:MAUPOSettings",
    "m-aupo-state": "duelist.policies.algorithms.slates.m_aupo:MAUPOState",
    "mala-info": "duelist.samplers.mala:MALAInfo",
    "mala-state": "duelist.samplers.mala:MALAState",
    "matrix-state": "duelist.policies.parts.matrix_policy:MatrixState",
    "max-min-lcb-state": "duelist.policies.algorithms.nonlinear.maxminlcb:MaxMinLCBState",
    "ndb-state": "duelist.policies.algorithms.nonlinear.ndb:NDBState",
    "nonlinear-fgts-state": "duelist.policies.algorithms.nonlinear.nonlinear_fgts:NonlinearFGTSState",
    "online-state": "duelist.samplers.gaussian:OnlineState",
    "pair-table": "duelist.policies.parts.pair_table:PairTable",
    "peaks": "duelist.samplers.peaks:PeakState",
    "polya-gamma-info": "duelist.samplers.polya_gamma:PolyaGammaInfo",
    "polya-gamma-state": "duelist.samplers.polya_gamma:PolyaGammaState",
    "polytope-actions": "duelist.actions.polytope:PolytopeActions",
    "popbo-state": "duelist.policies.algorithms.nonlinear.popbo:POPBOState",
    "principal-components": "duelist.features:PrincipalComponents",
    "product-actions": "duelist.actions.product:ProductActions",
    "product-map": "duelist.features:ProductMap",
    "random-fourier": "duelist.features:RandomFourier",
    "reward-mala-state": "duelist.samplers.jax_mala:RewardMALAState",
    "rmed-memory": "duelist.policies.algorithms.matrix.rmed:RMEDMemory",
    "rucb-memory": "duelist.policies.algorithms.matrix.rucb:RUCBMemory",
    "scb-memory": "duelist.policies.algorithms.matrix.scb:SCBMemory",
    "self-sparring-memory": "duelist.policies.algorithms.matrix.self_sparring:SelfSparringMemory",
    "sgld-cv-state": "duelist.samplers.langevin:SGLDCVState",
    "slate-table": "duelist.history.slates:SlateTable",
    "sphere-actions": "duelist.actions.ball:SphereActions",
    "stepping": "duelist.samplers.adaptation:ChainState",
    "sure-wins": "duelist.policies.parts.sure_wins:SureWins",
    "ucb-settings": "duelist.policies.parts.confidence:UCBSettings",
    "ucb-state": "duelist.policies.parts.confidence:UCBState",
    "unadjusted-state": "duelist.samplers.langevin:UnadjustedState",
    "uniform-state": "duelist.policies.algorithms.uniform:UniformState",
    "versatile-db-memory": "duelist.policies.algorithms.matrix.versatile_db:VersatileDBMemory",
}

# What version 0.1.0 wrote, as name and version. These strings are in users' files: they never change.
WRITTEN_BY_0_1: dict[str, str] = {
    "duelist.core.actions:FiniteActions": "finite-actions/1",
    "duelist.core.ball_actions:BallActions": "ball-actions/1",
    "duelist.core.ball_actions:SphereActions": "sphere-actions/1",
    "duelist.core.box_actions:BoxActions": "box-actions/1",
    "duelist.core.ellipsoid_actions:EllipsoidActions": "ellipsoid-actions/1",
    "duelist.core.history:History": "history/1",
    "duelist.core.last_duel:LastDuel": "last-duel/1",
    "duelist.core.polytope_actions:PolytopeActions": "polytope-actions/1",
    "duelist.core.product_actions:ProductActions": "product-actions/1",
    "duelist.core.slates:SlateTable": "slate-table/1",
    "duelist.policies.colstim:CoLSTIMState": "colstim-state/1",
    "duelist.policies.fgts:FGTSState": "fgts-state/1",
    "duelist.policies.finite_models:FiniteModelsState": "finite-models-state/1",
    "duelist.policies.foresight:ForesightState": "foresight-state/1",
    "duelist.policies.layers:LayeredState": "layered-state/1",
    "duelist.policies.listwise_fgts:ListwiseFGTSState": "listwise-fgts-state/1",
    "duelist.policies.nonlinear_fgts:NonlinearFGTSState": "nonlinear-fgts-state/1",
    "duelist.policies.ucb:UCBState": "ucb-state/1",
    "duelist.policies.uniform:UniformState": "uniform-state/1",
    "duelist.rewards.duel_table:DuelTable": "duel-table/1",
    "duelist.samplers.curvature:Curvature": "curvature/1",
    "duelist.samplers.expansion:Expansion": "expansion/1",
    "duelist.samplers.langevin:LangevinChains": "langevin-state/1",
    "duelist.samplers.laplace:LaplaceChains": "laplace-state/1",
    "duelist.samplers.mala:MALAChains": "mala-state/1",
    "duelist.samplers.online:OnlineChains": "online-state/1",
    "duelist.samplers.polya_gamma:PolyaGammaChains": "polya-gamma-state/1",
    "duelist.samplers.reward_mala:RewardChains": "reward-mala-state/1",
    "duelist.samplers.sgld_cv:SGLDCVChains": "sgld-cv-state/1",
    "duelist.samplers.stepping:Stepping": "stepping/1",
    "duelist.samplers.unadjusted:UnadjustedChains": "unadjusted-state/1",
    "duelist.samplers.walking:WalkingChains": "generic-mala-state/1",
}


class StoredName(NamedTuple):
    """What a class is called on disk."""

    name: str
    version: int

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


Fields = dict[str, Any]
Upgrade = Callable[[int, Fields], Fields]

_NAMES: dict[type, StoredName] = {}
_UPGRADES: dict[type, Upgrade] = {}
_CLASSES: dict[str, type] = {}


def stored(name: str, version: int = 1, *, upgrade: Upgrade | None = None) -> Callable[[Class], Class]:
    """Give a class the name under which its values are written.

    Args:
        name: what files call it, for good.
        version: grows when the fields change.
        upgrade: turns the fields of an older version into today's; needed from version 2 on.

    Example:
        >>> @stored("doctest-counter")
        ... class Counter(NamedTuple):
        ...     count: int
        >>> str(name_of(Counter))
        'doctest-counter/1'
    """
    if (version > 1) != (upgrade is not None):
        raise InvalidInputError(
            f"the stored name {name!r} has version {version}, which {'needs an' if version > 1 else 'has nothing to'} upgrade. "
            f"Give upgrade= from version 2 on."
        )

    def register(kind: Class) -> Class:
        known = _CLASSES.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
            raise InvalidInputError(
                f"the stored name {name!r} belongs to {known.__module__}.{known.__qualname__}; got it for "
                f"{kind.__module__}.{kind.__qualname__} as well. Each class needs a name of its own."
            )
        _CLASSES[name] = kind
        _NAMES[kind] = StoredName(name, version)
        if upgrade is not None:
            _UPGRADES[kind] = upgrade
        return kind

    return register


def nest(**parts: type) -> Upgrade:
    """The `upgrade` of a class whose version 1 was flat: the fields of each NamedTuple in `parts` move into a value of it.

    Example:
        >>> class Settings(NamedTuple):
        ...     radius: float
        >>> nest(settings=Settings)(1, {"theta": 0.5, "radius": 2.0})
        {'theta': 0.5, 'settings': Settings(radius=2.0)}
    """

    def upgrade(version: int, fields: Fields) -> Fields:  # noqa: ARG001 - there is one older version
        for name, kind in parts.items():
            inner = {field: fields[field] for field in kind._fields}  # type: ignore[attr-defined]
            fields = {field: value for field, value in fields.items() if field not in inner} | {name: kind(**inner)}
        return fields

    return upgrade


def upgrade_fields(kind: type, version: int, fields: Fields) -> Fields:
    """The fields of a value that was written in that version, as today's class wants them."""
    known = _NAMES.get(kind)
    return fields if known is None or version == known.version else _UPGRADES[kind](version, fields)


def name_of(kind: type) -> StoredName:
    """The stored name of a class; a class without one cannot be written."""
    if kind not in _NAMES:
        raise InvalidInputError(
            f"{kind.__module__}.{kind.__qualname__} has no name for files, so it cannot be saved. Put "
            f'@stored("a-name-of-its-own") from duelist.core above it: the name stays when the class moves.'
        )
    return _NAMES[kind]


def class_of(written: str) -> tuple[type, int]:
    """The class that a name in a file stands for, and the version that was written."""
    written = WRITTEN_BY_0_1.get(written, written)
    if ":" in written:
        return _class_at(written), 1
    name, _, version = written.partition("/")
    if name not in _CLASSES and name in HOMES:
        importlib.import_module(HOMES[name].partition(":")[0])
    if name not in _CLASSES:
        raise SavedStateError(
            f"the saved state needs the class {name!r}, which this process does not know. Import the module that defines it."
        )
    kind, known = _CLASSES[name], _NAMES[_CLASSES[name]].version
    if int(version) > known:
        raise SavedStateError(
            f"the saved state holds {written!r}, and this duelist reads {name!r} up to version {known}. Read it with the "
            f"version that wrote it."
        )
    return kind, int(version)


def _class_at(path: str) -> type:
    """A class of the user's own, named by its module as version 0.1.0 did it."""
    module_name, _, qualified = path.partition(":")
    if module_name.partition(".")[0] == "duelist" or module_name not in sys.modules:
        raise SavedStateError(f"the saved state needs {path}, which is not part of duelist. Import {module_name} first.")
    found: Any = sys.modules[module_name]
    for part in qualified.split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        raise SavedStateError(f"{path} is not a class, so a saved state may not name it.")
    return found
