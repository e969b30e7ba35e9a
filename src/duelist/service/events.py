"""Events: plain JSON objects. What happened, to which arena, and when; they alone make the state.

| kind | what it says besides `arena` and `at` (milliseconds since 1970, UTC) |
|---|---|
| created | `spec`, `items` |
| added | `items` |
| retired, returned | `item` (number) |
| asked | `number`, `token`, `first`, `second` (item numbers), `flipped`, `line_up`, `stream`, `policy`, `version`,
  `probability`, `explored`, `drawn`, and `request` and `features` where they came with the ask |
| told | `number`, `outcome`, `voter` where there is one |
| undone | `number` |
| imported | `batch`, `votes`: [first, second, outcome] |
| key | `id`, `role`, `digest`, `label`, `scope`: no arena |
| revoked | `id`: no arena |
"""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]
