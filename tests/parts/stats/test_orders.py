"""Statistics count each turn once, whatever was done to a session."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, settings

from resume_hooks.parts.stats.count import count
from tests.derive.test_orders import Client, of_any_order


def turns(path: str) -> int:
    """The turns that statistics count."""
    return sum(day.turns for day in count(path).days.values())


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@example(None, ["trim here", "prompt", "trim"])
@of_any_order
def test_each_turn_counts_once(begun: Path | None, steps: list[str]) -> None:
    """Over all sessions that came of it."""
    with tempfile.TemporaryDirectory() as home:
        client = Client(home, begun)
        said = turns(str(client.path))
        client.play(steps)
        assert sum(turns(path) for path in client.sessions()) == said + len(client.typed)
