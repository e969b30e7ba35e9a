"""Routes: arenas and their items."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from duelist.service.arena.admin_commands import resolve_prompts
from duelist.service.arena.goals import ArenaGoal
from duelist.service.arena.item_commands import AddItems, SetRetired
from duelist.service.arena.items import with_ids
from duelist.service.arena.summary import ArenaSummary, ListedItem
from duelist.service.commands import CreateArena
from duelist.service.errors import RefusedError
from duelist.service.http.answer_models import ArenaInfo, ArenaList, GoalInfo, ItemInfo, ItemList
from duelist.service.http.dependencies import (
    Admin,
    AdminArena,
    ItemPath,
    ReadArena,
    TheCaller,
    TheService,
    VisitedArena,
    refusals,
)
from duelist.service.http.request_models import ItemChange, NewArena, NewItems
from duelist.service.http.requests import goal_of, items_of, prompts_of, spec_of
from duelist.service.sessions import Caller
from duelist.service.state import check_playable

router = APIRouter(prefix="/api/v1", tags=["arenas"])


@router.get("/arenas", responses=refusals())
def list_arenas(service: TheService, caller: TheCaller) -> ArenaList:
    """The arenas that the key opens."""
    found = service.store.read(
        lambda state: [arena.summary() for arena in state.arenas.values() if caller.scope in ("", arena.spec.id)]
    )
    return ArenaList(arenas=[arena_info(summary, caller) for summary in found])


@router.post("/arenas", status_code=201, responses=refusals(400, 409, 503))
async def create_arena(service: TheService, caller: Admin, body: NewArena) -> ArenaInfo:
    """Create an arena with at least two items, or with a dataset that names them."""
    spec = spec_of(body, service.settings.embedders)
    prompts = [] if body.dataset is None else await run_in_threadpool(prompts_of, body.dataset)
    named = with_ids(await run_in_threadpool(items_of, body.items or [], spec, service.settings.embedders), taken=set())
    items = [*named, *resolve_prompts(prompts, named)[1]]
    if len(items) < 2:
        raise RefusedError(f"an arena needs at least two items: a duel needs two candidates. Got {len(items)}.")
    await run_in_threadpool(check_playable, spec, items)
    goal = None if body.goal is None else goal_of(body.goal, spec.features)
    return arena_info(await service.commit(CreateArena(spec, items, prompts=prompts, goal=goal), by=caller))


@router.get("/arenas/{arena}", responses=refusals(404))
def get_arena(service: TheService, caller: TheCaller, arena: VisitedArena) -> ArenaInfo:
    """One arena."""
    return arena_info(service.store.read(lambda state: state.arena(arena).summary()), caller)


@router.get("/arenas/{arena}/items", responses=refusals(404))
def list_items(service: TheService, arena: ReadArena) -> ItemList:
    """All items of an arena, retired ones included."""
    return item_list(service.store.read(lambda state: state.arena(arena).listed_items()))


@router.post("/arenas/{arena}/items", status_code=201, responses=refusals(400, 404, 409, 503))
async def add_items(service: TheService, caller: TheCaller, arena: AdminArena, body: NewItems) -> ItemList:
    """Add items while votes come in. Votes on pairs shown before still count."""
    items = await run_in_threadpool(items_of, body.items, service.arena(arena).spec, service.settings.embedders)
    return item_list(await service.commit(AddItems(arena, items), by=caller))


@router.patch("/arenas/{arena}/items/{item}", responses=refusals(400, 404, 409, 503))
async def change_item(service: TheService, caller: TheCaller, arena: AdminArena, item: ItemPath, body: ItemChange) -> ItemInfo:
    """Retire an item, or bring it back. Nothing that was learnt is forgotten."""
    return item_info(await service.commit(SetRetired(arena, item, not body.active), by=caller))


def arena_info(summary: ArenaSummary, caller: Caller | None = None) -> ArenaInfo:
    """What the service says about an arena. Voters are not told the goal, which may name items."""
    is_hidden = summary.goal is None or (caller is not None and caller.role == "vote")
    return ArenaInfo(**{**summary._asdict(), "goal": None if is_hidden or summary.goal is None else goal_info(summary.goal)})


def goal_info(goal: ArenaGoal) -> GoalInfo:
    """What the service says about a goal."""
    return GoalInfo(**goal.to_plain())


def item_info(listed: ListedItem) -> ItemInfo:
    """What the service says about an item."""
    item, active = listed
    return ItemInfo(
        id=item.id, name=item.name, content=item.content, format=item.format, active=active, features=list(item.features)
    )


def item_list(listed: list[ListedItem]) -> ItemList:
    """What the service says about all items."""
    return ItemList(items=[item_info(each) for each in listed])
