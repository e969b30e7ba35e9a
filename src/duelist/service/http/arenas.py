"""Routes: arenas and their items."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from duelist.service.arena.arena import ArenaSummary, ListedItem
from duelist.service.arena.commands import AddItems, SetRetired
from duelist.service.arena.items import with_ids
from duelist.service.commands import CreateArena
from duelist.service.http.answer_models import ArenaInfo, ArenaList, ItemInfo, ItemList
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
from duelist.service.http.requests import items_of, spec_of
from duelist.service.state import check_playable

router = APIRouter(prefix="/api/v1", tags=["arenas"])


@router.get("/arenas", responses=refusals())
def list_arenas(service: TheService, caller: TheCaller) -> ArenaList:
    """The arenas that the key opens."""
    found = service.store.read(
        lambda state: [arena.summary() for arena in state.arenas.values() if caller.scope in ("", arena.spec.id)]
    )
    return ArenaList(arenas=[arena_info(summary) for summary in found])


@router.post("/arenas", status_code=201, responses=refusals(400, 409, 503))
async def create_arena(service: TheService, _caller: Admin, body: NewArena) -> ArenaInfo:
    """Create an arena with at least two items."""
    spec = spec_of(body, service.settings.embedders)
    items = with_ids(await run_in_threadpool(items_of, body.items, spec, service.settings.embedders), taken=set())
    await run_in_threadpool(check_playable, spec, items)
    return arena_info(await service.commit(CreateArena(spec, items)))


@router.get("/arenas/{arena}", responses=refusals(404))
def get_arena(service: TheService, arena: VisitedArena) -> ArenaInfo:
    """One arena."""
    return arena_info(service.store.read(lambda state: state.arena(arena).summary()))


@router.get("/arenas/{arena}/items", responses=refusals(404))
def list_items(service: TheService, arena: ReadArena) -> ItemList:
    """All items of an arena, retired ones included."""
    return item_list(service.store.read(lambda state: state.arena(arena).listed_items()))


@router.post("/arenas/{arena}/items", status_code=201, responses=refusals(400, 404, 409, 503))
async def add_items(service: TheService, arena: AdminArena, body: NewItems) -> ItemList:
    """Add items while votes come in. Votes on pairs shown before still count."""
    items = await run_in_threadpool(items_of, body.items, service.arena(arena).spec, service.settings.embedders)
    return item_list(await service.commit(AddItems(arena, items)))


@router.patch("/arenas/{arena}/items/{item}", responses=refusals(400, 404, 409, 503))
async def change_item(service: TheService, arena: AdminArena, item: ItemPath, body: ItemChange) -> ItemInfo:
    """Retire an item, or bring it back. Nothing that was learnt is forgotten."""
    return item_info(await service.commit(SetRetired(arena, item, not body.active)))


def arena_info(summary: ArenaSummary) -> ArenaInfo:
    """What the service says about an arena."""
    return ArenaInfo(**summary._asdict())


def item_info(listed: ListedItem) -> ItemInfo:
    """What the service says about an item."""
    item, active = listed
    return ItemInfo(
        id=item.id, name=item.name, content=item.content, format=item.format, active=active, features=list(item.features)
    )


def item_list(listed: list[ListedItem]) -> ItemList:
    """What the service says about all items."""
    return ItemList(items=[item_info(each) for each in listed])
