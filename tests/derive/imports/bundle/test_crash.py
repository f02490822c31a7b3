"""Crashes: an import that was killed is finished by running it again, whole and once."""

from __future__ import annotations

from tests.builders import session_id
from tests.crashes import crashed

ONE = session_id(1)


def test_an_import_killed_at_every_step() -> None:
    """The next brings the session in under its own id, with what lay beside it; nothing else is left."""
    tries = crashed("tests.derive.imports.bundle.crashing")
    assert sum(found["killed"] for found in tries) > 10
    beside = [f"{ONE}/tool-results/one", f"{ONE}/tool-results/two"]
    for found in tries:
        assert found["sessions"] == [ONE]
        assert found["files"] == sorted([*beside, f"{ONE}.jsonl"])
