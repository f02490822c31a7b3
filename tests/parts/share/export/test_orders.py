"""An export of the whole file has each call once, whatever was done to a session."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, settings

from resume_hooks.parts.share.export.select_records import WHOLE, conversation
from resume_hooks.sessions.locate import session_file
from tests.derive.test_orders import Client, of_any_order


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@example(None, ["trim here", "prompt", "trim"])
@of_any_order
def test_each_call_stands_once(begun: Path | None, steps: list[str]) -> None:
    """Also where a trim in place wrote it a second time."""
    with tempfile.TemporaryDirectory() as home:
        client = Client(home, begun)
        client.play(steps)
        for path in client.sessions():
            calls = [call for row in conversation(session_file(path), WHOLE, set()).rows for call in row.calls]
            assert len(calls) == len(set(calls))
