"""An arena of real answers to a support question, and a crowd that votes on them over HTTP.

The crowd is simulated: everybody has a taste of their own around a common one, some find two answers equal, some skip. Halfway
a better answer joins. The service never sees the tastes; at the end its leaderboard is held against them.

Run: python examples/support_answers.py                                    with a service of its own, votes in memory
     python examples/support_answers.py --url http://127.0.0.1:8000 --key duel_...      with a service that runs already
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from duelist.service import Ask, Client, ServiceSettings, local_service

# What the crowd likes on average, in log-odds. Hidden from the service.
TASTE = {
    "diagnose-first": 1.0,
    "quick-list": 0.8,
    "hibernate": 1.3,
    "explains": 0.4,
    "buy-new": -1.2,
    "vague": -1.6,
    "asks-back": -0.2,
    "too-long": -0.9,
    "both-ways": 2.0,
}


class Person:
    """Somebody who votes: the common taste, changed a little."""

    def __init__(self, number: int) -> None:
        self.name = f"person-{number}"
        self._mood = random.Random(number)
        self._taste = {item: value + self._mood.gauss(0.0, 0.4) for item, value in TASTE.items()}

    def opinion(self, ask: Ask) -> str:
        """What this person says about a pair."""
        if self._mood.random() < 0.03:
            return "skip"
        left, right = self._taste[ask.left], self._taste[ask.right]
        if max(left, right) < -0.8:
            return "both_bad"
        if abs(left - right) < 0.1:
            return "tie"
        return "left" if self._mood.random() < 1.0 / (1.0 + math.exp(right - left)) else "right"


def vote(client: Client, arena: str, people: list[Person], times: int) -> None:
    """Everybody votes so many times, several at once."""

    def sitting(person: Person) -> None:
        for _ in range(times):
            ask = client.ask(arena)
            client.tell(ask, person.opinion(ask), voter=person.name)  # type: ignore[arg-type]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(sitting, people))


def show(client: Client, arena: str, heading: str) -> list[str]:
    """Print the leaderboard and return the items, best first."""
    print(f"\n{heading}")
    print(f"{'':24}{'strength':>9}  {'95 % interval':>16}  {'best with':>9}  {'shown':>5}")
    rows = client.leaderboard(arena)
    for row in rows:
        interval = f"{row['low']:.2f} to {row['high']:.2f}"
        best = "over 99 %" if row["probability_best"] > 0.995 else f"{100 * row['probability_best']:.0f} %"
        print(f"{row['name']:24}{row['utility']:9.2f}  {interval:>16}  {best:>9}  {row['shown']:>5}")
    return [row["item"] for row in rows]


@contextlib.contextmanager
def service(url: str | None, key: str | None) -> Iterator[Client]:
    """A client of the service at that address, or of one that lives as long as the block."""
    if url and key:
        with Client(url, key) as client:
            yield client
    else:
        with local_service(settings=ServiceSettings(rate=1e5, burst=100_000)) as local, local.client() as client:
            yield client


def run(url: str | None = None, key: str | None = None, *, people: int = 40, votes: int = 12) -> list[str]:
    """Run the example and return the final order of the items."""
    content = json.loads((Path(__file__).parent / "support_answers.json").read_text(encoding="utf-8"))
    crowd = [Person(number) for number in range(people)]
    with service(url, key) as client:
        answers = [{**answer, "format": "markdown"} for answer in content["answers"]]
        arena = client.create_arena(content["name"], answers, question=content["question"], undo_seconds=0)
        vote(client, arena, crowd, votes)
        show(client, arena, f"After {people * votes} votes")
        client.add_items(arena, [{**content["late"], "format": "markdown"}])
        vote(client, arena, crowd, votes)
        heading = f"After {2 * people * votes} votes, half of them with a late answer among the candidates"
        order = show(client, arena, heading)
        ask = client.ask(arena)
        print(f"\nWhy the next pair? {client.explain(ask)['words']}")
    truth = sorted(TASTE, key=lambda item: -TASTE[item])
    print(f"\nThe crowd's own order: {', '.join(truth)}")
    print(f"Found at the top:      {', '.join(order[:3])}")
    return order


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--key")
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--votes", type=int, default=12, help="of each person, before and after the late answer")
    options = parser.parse_args()
    run(options.url, options.key, people=options.people, votes=options.votes)


if __name__ == "__main__":
    main()
