"""Tests that prompts, compactions, trims, rewinds, untrims and handoffs may occur in any order.

The simulated compaction by a plugin has the form that client 2.1.330 writes. It repeats the kept
messages with new ids and with timestamps of their own. New messages have timestamps shortly before
that of the compaction's boundary.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from resume_hooks import clock
from resume_hooks.derive import agents, untrim
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import in_client, plan
from resume_hooks.derive.trim.in_client import ShownMessage
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.errors import NothingToHandOff, NothingToTrim
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.outline import make_outline
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts import records
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    Record,
    assistant,
    boundary,
    line,
    summary,
    system,
    tool_result,
    tool_use,
    user,
)
from tests.corpus import FOREIGN_EXPORT_NAME
from tests.needs import corpus_sessions

STEP_NAMES = ("prompt", "compact", "trim here", "trim", "rewind", "untrim", "handoff")
LONG_OUTPUT = "a line of output\n" * 400
PLACEHOLDER_PHRASE = "suppressed - "


class SimulatedClient:
    """A stand-in for the client that writes to a session's file as the client does."""

    def __init__(self, home: str, initial_session: Path | None = None) -> None:
        self.where = Where({"HOME": home, "CLAUDE_CONFIG_DIR": f"{home}/.claude"})
        self.path = Path(self.where.projects, "-home-user-proj", f"{SESSION}.jsonl")
        self.path.parent.mkdir(parents=True)
        self.path.write_bytes(
            initial_session.read_bytes().rstrip(b"\n") + b"\n" if initial_session else b""
        )
        self.typed: list[str] = []
        self.clock = 0.0
        self.parent: str | None = (
            scan_transcript(str(self.path)).chain[-1].uuid if initial_session else None
        )

    def wait_for_next_instant(self) -> float:
        """Wait briefly, and return the current time.

        Because of the wait, a child's prompts are written later than the child itself.
        """
        time.sleep(0.002)
        self.clock = time.time()
        return self.clock

    def append_record(self, record: Record) -> None:
        """Append a record after the last one."""
        with self.path.open("ab") as stream:
            stream.write(line(record) + b"\n")
        self.parent = record["uuid"]

    def next_record_fields(self) -> dict[str, Any]:
        """Return the fields of the next record: its uuid, parent, time and session."""
        at = self.wait_for_next_instant()
        uuid = str(uuid4())
        return {
            "uuid": uuid,
            "parent": self.parent,
            "ts": clock.timestamp_from_epoch(at),
            "session_id": self.path.stem,
        }

    def prompt(self) -> None:
        """Append a turn with a tool call."""
        number = len(self.typed) + 1
        self.typed.append(f"take step {number}")
        self.append_record(user(self.typed[-1], **self.next_record_fields()))
        self.append_record(
            tool_use(
                f"call{number}",
                tool_input={"file_path": f"/x{number}"},
                **self.next_record_fields(),
            )
        )
        self.append_record(
            tool_result(f"call{number}", f"{number}\n{LONG_OUTPUT}", **self.next_record_fields())
        )
        self.append_record(
            assistant(f"Step {number} is done.", tokens=90_000, **self.next_record_fields())
        )

    def append_steps(self, steps: list[str]) -> None:
        """Append four turns, and then call the methods that the steps name."""
        for step in ["prompt"] * 4 + steps:
            getattr(self, step.replace(" ", "_"))()

    def list_session_files(self) -> list[str]:
        """Return the paths of the session and of its descendants."""
        return [str(path) for path in self.path.parent.glob("*.jsonl")]

    def compact(self) -> None:
        """Compact the session as the client does."""
        self.append_record(
            {**boundary(before=self.parent, **self.next_record_fields()), "parentUuid": None}
        )
        self.append_record(summary(f"So far {len(self.typed)} steps.", **self.next_record_fields()))

    def trim_here(self) -> None:
        """Trim the session in place as the client does: the engine only plans the trim."""
        scanned = plan.scan_session(session_file(str(self.path)))
        nodes = [node for node in scanned.transcript.chain if node.is_message]
        shown = [
            ShownMessage(node.uuid, node.kind, tuple(node.call_ids), tuple(node.answered_call_ids))
            for node in nodes
        ]
        decided = in_client.plan_trim_in_client(scanned, shown, Options(), self.where)
        if decided.decision.savings.tokens < Options().min_savings:
            return
        rows = {
            row["uuid"]: row
            for text in self.path.read_bytes().splitlines()
            if isinstance(row := json.loads(text), dict) and "uuid" in row
        }
        self.append_record(
            {**boundary(before=self.parent, **self.next_record_fields()), "parentUuid": None}
        )
        made = clock.timestamp_from_epoch(self.clock - 0.001)
        for each in decided.kept_and_joined_indexes:
            kept = isinstance(each, int)
            for at in [each] if isinstance(each, int) else each:
                row = json.loads(json.dumps(rows[nodes[at].uuid]))
                spot = self.next_record_fields()
                row |= {"uuid": spot["uuid"], "parentUuid": spot["parent"]}
                row["timestamp"] = row["timestamp"] if kept else made
                if row["type"] == "assistant":
                    row["message"]["id"] = f"msg_{spot['uuid'][:8]}"
                for block in (
                    row["message"]["content"] if isinstance(row["message"]["content"], list) else []
                ):
                    if block["type"] == "tool_result":
                        block["content"] = decided.new_results.get(
                            block["tool_use_id"], block["content"]
                        )
                self.append_record(row)

    def rewind(self) -> None:
        """Go back to the point before the last prompt, if there is a prompt, and append a turn."""
        chain = scan_transcript(str(self.path)).chain
        last = next((node for node in reversed(chain) if node.is_prompt), None)
        if last is not None and last.parent_uuid is not None:
            self.parent = last.parent_uuid
        self.prompt()

    def open_child(self, path: str) -> None:
        """Continue in the child at ``path``."""
        self.path = Path(path)
        self.parent = scan_transcript(path).chain[-1].uuid

    def trim(self) -> None:
        """Trim the session to a child if that saves enough, and continue in the child."""
        try:
            decided = plan.plan_trim(
                plan.scan_session(session_file(str(self.path))), self.where, Options()
            )
        except NothingToTrim:
            return
        if decided.decision.savings.tokens >= Options().min_savings:
            self.open_child(write_child(decided, self.where).file)

    def untrim(self) -> None:
        """Restore all trimmed content in a child and continue in the child, if any content was trimmed."""
        decided = untrim.plan_untrim(scan_trimmed_session(session_file(str(self.path))), self.where)
        if not decided.is_child_unneeded:
            self.open_child(write_child(decided, self.where).file)

    def handoff(self) -> None:
        """Hand the session off and continue in the child, if the session has a prompt."""
        session = session_file(str(self.path))
        try:
            decided = agents.plan_fresh_child(
                session, self.where, kind="handoff", next_step="go on"
            )
        except NothingToHandOff:
            return
        self.open_child(write_child(decided, self.where).file)


def read_outputs_by_call(path: Path, *, only_live: bool = True) -> dict[str, str]:
    """Return the output of each call in the live conversation.

    If ``only_live`` is false, calls in the rest of the file are included.
    """
    chain = {node.uuid for node in scan_transcript(str(path)).chain}
    rows = [
        row for text in path.read_bytes().splitlines() if isinstance(row := json.loads(text), dict)
    ]
    return {
        records.call_id(block): records.result_text(block)
        for row in rows
        if not only_live or row.get("uuid") in chain
        for block in records.list_results(row)
    }


def list_initial_sessions() -> list[Path | None]:
    """Return None for an empty session, and the paths of small real sessions."""
    small = [
        path
        for path in corpus_sessions()
        if path.stat().st_size < 100_000 and path.name != FOREIGN_EXPORT_NAME
    ]
    return [
        None,
        *(
            path
            for path in small
            if any(node.is_message for node in scan_transcript(str(path)).chain)
        ),
    ]


given_session_and_steps = given(
    st.sampled_from(list_initial_sessions()),
    st.lists(st.sampled_from(STEP_NAMES), min_size=1, max_size=6),
)
"""Supplies an initial session and a list of steps."""


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@example(None, ["trim here", "prompt", "trim"])
@given_session_and_steps
def test_each_turn_appears_once_after_any_steps(
    initial_session: Path | None, steps: list[str]
) -> None:
    """After any sequence of steps, each outline and digest mentions a turn at most once.

    A search finds each turn once, and an untrim restores every result.
    """
    with tempfile.TemporaryDirectory() as home:
        client = SimulatedClient(home, initial_session)
        whole = read_outputs_by_call(client.path, only_live=False)
        client.append_steps(steps)
        sessions = [session_file(path) for path in client.list_session_files()]
        outlines = [
            Counter(turn.first_words for turn in make_outline(one).turns) for one in sessions
        ]
        assert all(max(each[text] for text in client.typed) <= 1 for each in outlines)
        assert all(any(text in each for each in outlines) for text in client.typed)
        hits = search_index(['"take step"'], Scope(role="user"), client.where, max_hits=50).hits
        assert len(hits) == len(client.typed)
        for entries in build_digest(session_file(str(client.path)), client.where).sections.values():
            assert max(Counter(entry.text for entry in entries).values(), default=0) <= 1
        client.untrim()
        whole |= {
            f"call{number}": f"{number}\n{LONG_OUTPUT}"
            for number in range(1, len(client.typed) + 1)
        }
        changed = {
            call: text
            for call, text in read_outputs_by_call(client.path).items()
            if text != whole.get(call, text)
        }
        assert {
            call: text for call, text in changed.items() if whole[call] or text != "(nothing)"
        } == {}


def test_an_untrim_uses_the_size_stated_by_a_trim_in_place(tmp_path: Path) -> None:
    """An untrim uses the size that the message after a trim in place states.

    The client must have counted no tokens since the trim.
    """
    client = SimulatedClient(str(tmp_path))
    client.append_steps(["trim here"])
    rows = [json.loads(text) for text in client.path.read_bytes().splitlines()]
    begun = next(at for at, row in enumerate(rows) if row.get("subtype") == "compact_boundary")
    for row in rows[begun:]:
        row.get("message", {}).pop("usage", None)
    client.path.write_bytes(b"".join(line(row) + b"\n" for row in rows))
    remark = "resume-hooks: 90,000 tokens before, about 61,234 now."
    client.append_record(system("informational", content=remark, **client.next_record_fields()))
    session = session_file(str(client.path))
    decided = untrim.plan_untrim(scan_trimmed_session(session), client.where)
    assert (decided.sizes.tokens_before, decided.sizes.tokens_after) == (61_234, 90_000)
    assert plan.scan_session(session).context.tokens == 61_234
