"""Routes: arenas and their items."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from duelist.service.arena import Arena
from duelist.service.building import features_of, items_of, spec_of
from duelist.service.doors import Admin, AdminArena, ItemPath, TheCaller, TheService, VotedArena, refusals
from duelist.service.events import Event
from duelist.service.hall import Hall, try_out
from duelist.service.schemas import ArenaInfo, ArenaList, ItemChange, ItemInfo, ItemList, NewArena, NewItems

router = APIRouter(prefix="/api/v1", tags=["arenas"])


@router.get("/arenas", responses=refusals())
def list_arenas(service: TheService, caller: TheCaller) -> ArenaList:
    """The arenas that the key opens."""
    shown = service.ledger.read(
        lambda hall: [arena_info(arena) for arena in hall.arenas.values() if caller.scope in ("", arena.spec.id)]
    )
    return ArenaList(arenas=shown)


@router.post("/arenas", status_code=201, responses=refusals(400, 409, 503))
async def create_arena(service: TheService, _caller: Admin, body: NewArena) -> ArenaInfo:
    """Create an arena with at least two items."""
    spec = spec_of(body, service.settings.embedders)
    rows = await run_in_threadpool(features_of, body.items, spec, service.settings.embedders)
    items = items_of(body.items, rows, taken=set())
    await run_in_threadpool(try_out, spec, items)
    return await service.happen(
        lambda hall, at: hall.create(spec, items, at=at), lambda hall, _event: arena_info(hall.arenas[spec.id])
    )


@router.get("/arenas/{arena}", responses=refusals(404))
def get_arena(service: TheService, arena: VotedArena) -> ArenaInfo:
    """One arena."""
    return service.ledger.read(lambda hall: arena_info(hall.arena(arena)))


@router.get("/arenas/{arena}/items", responses=refusals(404))
def list_items(service: TheService, arena: AdminArena) -> ItemList:
    """All items of an arena, retired ones included."""
    return service.ledger.read(lambda hall: item_list(hall.arena(arena)))


@router.post("/arenas/{arena}/items", status_code=201, responses=refusals(400, 404, 409, 503))
async def add_items(service: TheService, arena: AdminArena, body: NewItems) -> ItemList:
    """Add items while votes come in. Votes on pairs shown before still count."""
    rows = await run_in_threadpool(features_of, body.items, service.arena(arena).spec, service.settings.embedders)

    def decide(hall: Hall, at: int) -> Event:
        found = hall.arena(arena)
        return found.add(items_of(body.items, rows, taken=set(found.table.numbers)), at=at)

    return await service.happen(decide, lambda hall, _event: item_list(hall.arena(arena)))


@router.patch("/arenas/{arena}/items/{item}", responses=refusals(400, 404, 409, 503))
async def change_item(service: TheService, arena: AdminArena, item: ItemPath, body: ItemChange) -> ItemInfo:
    """Retire an item, or bring it back. Nothing that was learnt is forgotten."""

    def outcome(hall: Hall, _event: Event | None) -> ItemInfo:
        return item_info(hall.arena(arena), hall.arena(arena).number_of(item))

    return await service.happen(lambda hall, at: hall.arena(arena).set_retired(item, retired=not body.active, at=at), outcome)


def arena_info(arena: Arena) -> ArenaInfo:
    """What the service says about an arena."""
    spec = arena.spec
    return ArenaInfo(
        id=spec.id,
        name=spec.name,
        question=spec.question,
        features=spec.features,
        dim=arena.player.dim,
        embedder=spec.embedder,
        policy=str(spec.policy["kind"]),
        items=len(arena.table.items),
        active_items=len(arena.table.active),
        asks=len(arena.log),
        votes=arena.n_votes,
        ties=spec.ties,
        undo_seconds=spec.undo_ms / 1000,
        seed=spec.seed,
    )


def item_info(arena: Arena, number: int) -> ItemInfo:
    """What the service says about an item."""
    item = arena.table.items[number]
    return ItemInfo(
        id=item.id,
        name=item.name,
        content=item.content,
        format=item.format,
        active=number not in arena.table.retired,
        features=list(item.features),
    )


def item_list(arena: Arena) -> ItemList:
    """What the service says about all items."""
    return ItemList(items=[item_info(arena, number) for number in range(len(arena.table.items))])
