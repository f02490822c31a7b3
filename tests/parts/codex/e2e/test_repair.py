"""Tests that the real Codex resumes a session that it refused before the session was repaired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.maintenance.fsck.repair import plan_repair_of_any_agent
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import resolve_locator
from tests.parts.codex import rollouts
from tests.parts.codex.e2e.client import NEWEST, OLDEST_VERSION, PROVIDER_NAME, CodexHome
from tests.parts.codex.e2e.responses import join_input_texts

TALK_LINES = [
    rollouts.message_line("user", "find the needle", 1),
    rollouts.message_line("assistant", "in the hay", 2),
]
FORK_HISTORY_BASE = {
    "thread_id": rollouts.OTHER_THREAD_ID,
    "end_ordinal_exclusive": 4,
    "end_byte_offset": 900,
}
BROKEN_THREADS: dict[str, tuple[str, list[Any]]] = {
    "first-line-foreign": (
        NEWEST,
        [{"type": "mine"}, rollouts.meta_line(model_provider=PROVIDER_NAME), *TALK_LINES],
    ),
    "first-line-short": (
        "",
        [
            rollouts.rollout_line("session_meta", {"id": rollouts.THREAD_ID, "cwd": "/"}),
            *TALK_LINES,
        ],
    ),
    "base-gone": (
        NEWEST,
        rollouts.number_lines(
            [
                rollouts.meta_line(
                    history_mode="paginated",
                    history_base=FORK_HISTORY_BASE,
                    model_provider=PROVIDER_NAME,
                ),
                *TALK_LINES,
            ],
            4,
        ),
    ),
    "utf8-bad": (
        OLDEST_VERSION,
        [
            rollouts.meta_line(model_provider=PROVIDER_NAME),
            b'{"timestamp":"x","type":"event_msg","payload":{"x":"\xff"}}',
            *TALK_LINES,
        ],
    ),
}


@pytest.mark.parametrize("code", BROKEN_THREADS)
def test_codex_resumes_a_repaired_thread(
    code: str, every_codex: CodexHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex resumes a repaired thread with its readable items, and the original is unchanged.

    Before the repair, the clients to which the defect applies refuse the thread.
    """
    client = every_codex
    for key, folder in (
        ("HOME", client.root),
        ("CODEX_HOME", client.codex),
        ("CLAUDE_CONFIG_DIR", client.root / "c"),
    ):
        monkeypatch.setenv(key, str(folder))
    only, lines = BROKEN_THREADS[code]
    path = rollouts.write_rollout(client.codex, lines)
    before = Path(path).read_bytes()
    if only in {"", client.version}:
        with pytest.raises(AssertionError, match="asked nothing"):
            client.resume(rollouts.THREAD_ID)
    path.write_bytes(before)
    decided = plan_repair_of_any_agent(
        resolve_locator(rollouts.THREAD_ID, "/", Where(), allow_other_agents=True), Where()
    )
    assert [group.kind.code for group in decided.report.groups] == [code]
    sent = join_input_texts(client.resume(write_child(decided.child, Where()).session_id))
    assert "find the needle" in sent
    assert "in the hay" in sent
    assert path.read_bytes() == before
