"""Tests of the session store for the Agent SDK.

The tests cover the SDK's conformance suite, NUL characters, surrogates, duplicates, parallel
writers and other users.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from resume_hooks.team import PostgresSessionStore
from tests.parts.team.conftest import Machine
from tests.parts.team.server import Connection

STORE_KEY: Any = {"project_key": "-src-app", "session_id": "s"}
ODD_ENTRIES = [
    {"type": "user", "uuid": "a\x00\ud800", "text": "nul \x00, lone \udfff, large", "n": 2**70},
    {"type": "mode", "mode": "plan"},
    {"type": "assistant", "uuid": "b", "text": "é \u2028"},
]


def test_the_store_fulfills_the_sdks_contracts(alice: Machine, root: Connection) -> None:
    """The store passes the conformance suite of the Agent SDK."""
    # Imported here because the import takes a second, which only this test needs.
    from claude_agent_sdk.testing import run_session_store_conformance

    def make_empty_store() -> Any:
        root.execute("truncate team.sdk_part cascade")
        return PostgresSessionStore("alice")

    asyncio.run(run_session_store_conformance(make_empty_store))


def test_the_store_returns_any_text_unchanged(alice: Machine, mallory: Machine) -> None:
    """The store returns entries with NUL characters and surrogates unchanged.

    If several entries have the same uuid, the store keeps only the first. The store loses no
    entries of parallel writers. Other users can neither read nor delete the entries.
    """

    async def use_store() -> None:
        store = PostgresSessionStore("alice")
        await store.append(STORE_KEY, [*ODD_ENTRIES, ODD_ENTRIES[0]])
        await store.append(STORE_KEY, ODD_ENTRIES)
        assert await store.load(STORE_KEY) == [*ODD_ENTRIES, ODD_ENTRIES[1]]
        batches = [
            [{"type": "x", "uuid": f"{writer}-{n}"} for n in range(5)] for writer in range(8)
        ]
        await asyncio.gather(*(store.append(STORE_KEY, batch) for batch in batches))
        found = await store.load(STORE_KEY)
        assert found is not None
        assert len(found) == 4 + 40
        for batch in batches:
            assert [entry for entry in found if entry in batch] == batch
        other = PostgresSessionStore("mallory")
        assert (
            await other.load(STORE_KEY),
            await other.list_sessions(STORE_KEY["project_key"]),
        ) == (None, [])
        await other.delete(STORE_KEY)
        await other.append(STORE_KEY, [{"type": "mine"}])
        assert len(await store.load(STORE_KEY) or []) == 44

    asyncio.run(use_store())


def test_the_store_accepts_only_a_service_name() -> None:
    """The store refuses an address with a password."""
    with pytest.raises(Exception, match="never an address or a password"):
        PostgresSessionStore("host=x password=y")
