"""Tests of the Agent SDK's contracts for stores.

They cover NUL, surrogates, duplicates, parallel writers and other users.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from resume_hooks.team import PostgresSessionStore
from tests.parts.team.conftest import Machine
from tests.parts.team.server import Connection

KEY: Any = {"project_key": "-src-app", "session_id": "s"}
ODD = [
    {"type": "user", "uuid": "a\x00\ud800", "text": "nul \x00, lone \udfff, large", "n": 2**70},
    {"type": "mode", "mode": "plan"},
    {"type": "assistant", "uuid": "b", "text": "é \u2028"},
]


def test_the_store_fulfills_the_sdks_contracts(alice: Machine, root: Connection) -> None:
    """Each runs on an empty store."""
    # takes a second to import, which each worker would need
    from claude_agent_sdk.testing import run_session_store_conformance

    def empty_store() -> Any:
        root.execute("truncate team.sdk_part cascade")
        return PostgresSessionStore("alice")

    asyncio.run(run_session_store_conformance(empty_store))


def test_the_store_returns_any_text_unchanged(alice: Machine, mallory: Machine) -> None:
    """A uuid counts once, parallel writers lose no entry, and other users see none."""

    async def run() -> None:
        store = PostgresSessionStore("alice")
        await store.append(KEY, [*ODD, ODD[0]])
        await store.append(KEY, ODD)
        assert await store.load(KEY) == [*ODD, ODD[1]]
        batches = [
            [{"type": "x", "uuid": f"{writer}-{n}"} for n in range(5)] for writer in range(8)
        ]
        await asyncio.gather(*(store.append(KEY, batch) for batch in batches))
        found = await store.load(KEY)
        assert found is not None
        assert len(found) == 4 + 40
        for batch in batches:
            assert [entry for entry in found if entry in batch] == batch
        other = PostgresSessionStore("mallory")
        assert (await other.load(KEY), await other.list_sessions(KEY["project_key"])) == (None, [])
        await other.delete(KEY)
        await other.append(KEY, [{"type": "mine"}])
        assert len(await store.load(KEY) or []) == 44

    asyncio.run(run())


def test_the_store_accepts_only_a_service_name() -> None:
    """A password is refused."""
    with pytest.raises(Exception, match="never by an address or a password"):
        PostgresSessionStore("host=x password=y")
