"""Events: what happened, to which arena, and when. They alone make the state.

An event has a kind and a body, a JSON object. The names below are on disk since 0.1.0 and stay, also where the code has a
better word: `line_up` is the number of a roster.

| kind | the body, besides `arena` and `at` (milliseconds since 1970, UTC) |
|---|---|
| created | `spec`, `items` |
| added | `items` |
| retired, returned | `item` (number) |
| asked | `number`, `token`, `first`, `second` (item numbers), `flipped`, `line_up`, `stream` (generation of the lane, asks in
  it before this one), `policy`, `version`, `probability`, `explored` (null where unknown), `drawn`, and `request` and
  `features` where they came with the ask |
| told | `number`, `outcome`, `voter` where there is one |
| undone | `number` |
| imported | `batch`, `votes`: [first, second, outcome] |
| key | `id`, `role`, `digest`, `label`, `scope`: no arena |
| revoked | `id`: no arena |
"""

from __future__ import annotations

from typing import Any

from duelist.journal.base import Event as Event

Body = dict[str, Any]
