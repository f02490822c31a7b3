"""Tests that ``info``, ``resume`` and ``sessions`` show the same context size.

If the size is an estimate, they also show the reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from resume_hooks.transcripts.context_size import (
    MISSING_BEGINNING_REASON,
    OUTPUTS_CLEARED_REASON,
    THINKING_UNCOUNTED_REASON,
)
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.tokens import ESTIMATED, MEASURED
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    assistant,
    progress,
    system,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli

PADDING_RECORD: Record = {
    "type": "file-history-snapshot",
    "messageId": "x",
    "snapshot": {"padding": "x" * 100_000},
}
OLD_CLIENT = "2.1.23"
"""The version of a client that cleared old outputs and wrote links to records that do not exist."""

# Number of tokens in the first request of these sessions, not counting the prompt.
FIRST_REQUEST_TOKENS = 30_000


def first_turn() -> list[Record]:
    """Return a first turn whose request has ``FIRST_REQUEST_TOKENS`` tokens plus those of the prompt."""
    return [
        user("read it", uuid="u1"),
        assistant("done", uuid="a1", parent="u1", ts=1, tokens=FIRST_REQUEST_TOKENS + 12),
    ]


def turn_after(parent: str) -> list[Record]:
    """Return a turn that follows the record ``parent``. Its request has 100,000 tokens."""
    return [
        user("and now?", uuid="u8", parent=parent, ts=80),
        assistant("done again", uuid="a8", parent="u8", ts=81, tokens=100_000),
    ]


def records_with_cleared_output() -> list[Record]:
    """Return a session with two outputs of about 40,000 tokens each, one of which the client has cleared."""
    output = "a line of output\n" * 9_400
    return [
        *first_turn(),
        tool_use("t1", uuid="a2", parent="a1", ts=2, tokens=FIRST_REQUEST_TOKENS + 20),
        tool_result("t1", output, uuid="u2", parent="a2", ts=3),
        tool_use("t2", uuid="a3", parent="u2", ts=4, tokens=FIRST_REQUEST_TOKENS + 40_040),
        tool_result("t2", output, uuid="u3", parent="a3", ts=5),
        assistant("read", uuid="a4", parent="u3", ts=6, tokens=FIRST_REQUEST_TOKENS + 80_080),
        system("microcompact_boundary", uuid="m", parent="a4", ts=7),
        user("go on", uuid="u5", parent="m", ts=8),
        assistant("going on", uuid="a5", parent="u5", ts=9, tokens=FIRST_REQUEST_TOKENS + 40_100),
    ]


def read_context_sizes_in_verbs(
    home: ConfigHome, cli: Cli, records: Sequence[Record]
) -> list[Record]:
    """Return the context sizes that ``info``, ``resume`` and ``sessions`` show for these records."""
    write_session(home.project(CWD), SESSION, records)
    info = json.loads(cli("info", SESSION, "--json").stdout)["data"]
    full = json.loads(cli("resume", SESSION, "--json").stdout)["data"]
    (row,) = json.loads(cli("sessions", "--all", "--json").stdout)["data"]["sessions"]
    return [each["context"] for each in (info, full, row)]


def records_of_old_client(records: Sequence[Record], padding_index: int = 0) -> list[Record]:
    """Return the records as an old client writes them, with optional padding."""
    rows = []
    for record in records:
        rows.append(record | {"version": OLD_CLIENT} if "version" in record else record)
    if padding_index:
        return [
            *rows[:padding_index],
            PADDING_RECORD,
            *rows[padding_index:-1],
            PADDING_RECORD,
            rows[-1],
        ]
    return rows


RECORDS_WITH_BROKEN_LINK = [
    *first_turn(),
    progress(uuid="p", parent="gone", ts=70),
    *turn_after("p"),
]


@pytest.mark.parametrize(
    "records",
    [
        RECORDS_WITH_BROKEN_LINK,
        records_of_old_client(RECORDS_WITH_BROKEN_LINK),
        records_of_old_client(RECORDS_WITH_BROKEN_LINK, 2),
        turn_after("gone"),
    ],
)
def test_records_before_a_broken_link_are_not_counted(
    config_home: ConfigHome, cli: Cli, records: list[Record]
) -> None:
    """The context size does not include records before a broken link, because a resume does not send them.

    The last request still included them.
    """
    told = read_context_sizes_in_verbs(config_home, cli, records)
    assert [(each["kind"], each["reason"]) for each in told] == [
        (ESTIMATED, MISSING_BEGINNING_REASON)
    ] * 3
    assert {each["tokens"] for each in told} == {FIRST_REQUEST_TOKENS + 12}
    shown = cli("info", SESSION).stdout.decode()
    assert f"about {FIRST_REQUEST_TOKENS + 12:,} tokens" in shown
    assert MISSING_BEGINNING_REASON in shown
    assert "~" in cli("sessions", "--all").stdout.decode()


def test_outputs_cleared_by_an_old_client_are_counted(config_home: ConfigHome, cli: Cli) -> None:
    """The context size includes outputs that an old client cleared, because a resume sends them again.

    The last request did not include them.
    """
    told = read_context_sizes_in_verbs(
        config_home, cli, records_of_old_client(records_with_cleared_output(), 7)
    )
    assert [(each["kind"], each["reason"]) for each in told] == [
        (ESTIMATED, OUTPUTS_CLEARED_REASON)
    ] * 3
    (tokens,) = {each["tokens"] for each in told}
    assert tokens == pytest.approx(FIRST_REQUEST_TOKENS + 80_100, abs=100)


def test_uncounted_thinking_makes_the_size_an_estimate(config_home: ConfigHome, cli: Cli) -> None:
    """If the last request did not count some of the thinking, the context size is an estimate.

    A resume may send this thinking. If the last request counted all thinking, the size is exact.
    """
    thought = {"type": "thinking", "thinking": "x" * 40_000, "signature": "s"}
    records = [
        *first_turn(),
        assistant([thought], uuid="a2", parent="a1", ts=2, tokens=FIRST_REQUEST_TOKENS + 30),
        user("and now?", uuid="u3", parent="a2", ts=3),
        assistant("done", uuid="a3", parent="u3", ts=4, tokens=FIRST_REQUEST_TOKENS + 10_050),
        user("and then?", uuid="u4", parent="a3", ts=5),
    ]
    for counted, kind, reason in (
        (FIRST_REQUEST_TOKENS + 10_070, MEASURED, ""),
        (FIRST_REQUEST_TOKENS + 70, ESTIMATED, THINKING_UNCOUNTED_REASON),
    ):
        last = assistant("done", uuid="a4", parent="u4", ts=6, tokens=counted)
        info, full, _ = read_context_sizes_in_verbs(config_home, cli, [*records, last])
        assert (info["kind"], info["reason"], info["tokens"]) == (kind, reason, counted)
        assert full == info
