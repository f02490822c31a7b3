"""Helpers of the tests of trims: build a conversation, write it to a config home, and trim it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from resume_hooks.derive.child.rewrite_chain import ChainRewrite
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import SessionScan, TrimPlan
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.records import Record, parse_record
from tests import builders
from tests.builders import SESSION, ConfigHome

LONG_OUTPUT = "long output line\n" * 100
"""This text of 1,700 characters is above every threshold in these tests."""


class Chain:
    """A conversation in which each record is written one second after the previous record."""

    def __init__(self) -> None:
        self.rows: list[Record] = []

    def _make_next_fields(self) -> dict[str, Any]:
        number = len(self.rows)
        return {"uuid": f"c{number}", "parent": f"c{number - 1}" if number else None, "ts": number}

    def ask(self, content: str | list[Record] = "question", **record_fields: Any) -> Chain:
        """Append a prompt."""
        self.rows.append(builders.user(content, **self._make_next_fields(), **record_fields))
        return self

    def answer(self, content: str | list[Record] = "done", **record_fields: Any) -> Chain:
        """Append an answer of the model."""
        self.rows.append(builders.assistant(content, **self._make_next_fields(), **record_fields))
        return self

    def call(self, call_id: str, tool: str = "Read", /, **tool_input: Any) -> Chain:
        """Append a call without its result."""
        return self.answer([builders.call(call_id, tool, **tool_input)])

    def result(self, call_id: str, content: Any = LONG_OUTPUT, **block_fields: Any) -> Chain:
        """Append a result without its call. ``block_fields`` has additional fields of the result block."""
        self.rows.append(
            builders.user(
                [builders.result(call_id, content, **block_fields)], **self._make_next_fields()
            )
        )
        return self

    def call_with_result(
        self,
        call_id: str,
        tool: str = "Read",
        content: Any = LONG_OUTPUT,
        /,
        *,
        is_error: bool = False,
        **tool_input: Any,
    ) -> Chain:
        """Append a call with its result."""
        more = {"is_error": True} if is_error else {}
        return self.call(call_id, tool, **tool_input).result(call_id, content, **more)

    def attach(self, **fields: Any) -> Chain:
        """Append an attachment."""
        self.rows.append(
            builders.chain_record(
                "attachment", session_id=SESSION, **self._make_next_fields(), **fields
            )
        )
        return self

    def add_short_turns(self, turn_count: int) -> Chain:
        """Append short turns, so that earlier content is not recent."""
        for number in range(turn_count):
            self.ask(f"next {number}").answer(f"done {number}")
        return self


def write_project_session(
    home: ConfigHome, rows: Iterable[Record | bytes] | Chain, session_id: str = SESSION
) -> Path:
    """Write a session's file in the tests' project."""
    records = rows.rows if isinstance(rows, Chain) else rows
    return Path(builders.write_session(home.project(), session_id, records))


def scan_file(path: Path) -> SessionScan:
    """Scan a file as a trim does."""
    return plan.scan_session(session_file(str(path)))


def get_chain_rewrite(trim_plan: TrimPlan) -> ChainRewrite:
    """Return the rewritten chain of a planned child."""
    assert isinstance(trim_plan.body, ChainRewrite)
    return trim_plan.body


def plan_trim_of_file(home: ConfigHome, path: Path, **options: Any) -> TrimPlan:
    """Plan a trim with these options. By default, no turn is protected and any saving is enough."""
    how = Options(**{"keep_recent": 0, "min_savings": 0, **options})
    return plan.plan_trim(scan_file(path), home.where, how)


def trim_file(home: ConfigHome, path: Path, **options: Any) -> Path:
    """Trim a file with these options and return the path of the child."""
    decided = plan_trim_of_file(home, path, **options)
    receipt = write_child(decided, home.where)
    assert receipt.written
    assert receipt.checks
    assert all(check.ok for check in receipt.checks)
    return Path(decided.draft.path)


def read_file_records(path: Path) -> list[Record]:
    """Return the records of a file."""
    with path.open("rb") as stream:
        return [
            record for line in read_lines(stream) if (record := parse_record(line.body)) is not None
        ]


def read_records_by_uuid(path: Path) -> dict[str, Record]:
    """Return those records of a file that have a uuid, by their uuids."""
    return {row["uuid"]: row for row in read_file_records(path) if "uuid" in row}


def get_value_at(row: Any, address: tuple[str | int, ...]) -> Any:
    """Return the value at an address in a record. The address is a path of keys and indexes."""
    for key in address:
        row = row[key]
    return row
