"""Tests that a long text at a session's start reaches the model completely.

Each line arrives once and in order.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING
from resume_hooks.transcripts.attachments import list_hook_texts
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.metadata_records import LATER_PART_PREFIX
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import remove_module, text_of_request
from tests.e2e.test_session_start import (
    QUIET_ENV,
    clear_session,
    compact_session,
    hand_off,
    kinds_of_recorded_links,
    send_prompt_and_read_request,
    start_session,
    waiting_handoffs,
)

OPENING_CHARACTER_COUNT = 36_000  # Number of characters of a long opening.


def make_opening_lines(label: str) -> list[str]:
    """Return different lines that have at least ``OPENING_CHARACTER_COUNT`` characters in total."""
    line = "{} line {:04} of what was said before, «with quotes \\ and more» ..."
    lines: list[str] = []
    while sum(map(len, lines)) < OPENING_CHARACTER_COUNT:
        lines.append(line.format(label, len(lines)))
    return lines


HOOK_LOG_NAME = "parts-that-ran"
"""Name of a log file in the home. Each hook that sends a part of a text appends the part's number.
"""

OPENING_LINES, COMPACTION_LINES = make_opening_lines("carried"), make_opening_lines("given")


@pytest.fixture
def plugin(plugin: Path) -> Path:
    """Return the plugin without its module, prepared to send a long text after a compaction."""
    module = plugin / "src" / "resume_hooks" / "hooks" / "after_compaction.py"
    text = "\n".join(
        ["Facts about this session from before it was compacted:", "", *COMPACTION_LINES]
    )
    module.write_text(
        f"{module.read_text()}\n\ndef describe_lost_facts(*_given: object) -> str:\n    return {text!r}\n"
    )
    script = plugin / "hooks" / "part"
    script.write_text(f'echo "$part" >>"$HOME/{HOOK_LOG_NAME}"\n{script.read_text()}')
    return remove_module(plugin)


def lengthen_opening_of_waiting_handoff(home: ClientHome) -> None:
    """Add many lines to the opening of the waiting handoff, before the next step."""
    (name,) = waiting_handoffs(home)
    path = home.config / "resume-hooks" / "pending" / name
    note = json.loads(path.read_text())
    before, step, after = note["opening"].rpartition(f"\n\n{NEXT_STEP_HEADING}")
    path.write_text(
        json.dumps({**note, "opening": "\n".join([before, *OPENING_LINES]) + step + after})
    )


def has_lines_once_in_order(text: str, lines: list[str]) -> bool:
    """Check whether ``text`` contains every line once and in order."""
    places = [text.find(line) for line in lines]
    return [text.count(line) for line in lines] == [1] * len(lines) and places == sorted(places)


def count_openings(file: Path) -> int:
    """Return the number of texts that hooks have added at starts of the session in ``file``."""
    rows = file.read_bytes().splitlines()
    return sum(len(list_hook_texts(json.loads(row))) for row in rows if row)


def test_a_long_opening_is_sent_whole(
    every_client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """A text of 36,000 characters is sent completely after ``/clear``, a compaction and a resume.

    The text is sent in several parts, which the engine reads as one text. The session has the title
    of its handoff.
    """
    with Tui(every_client, home, api) as tui:
        parent = start_session(tui, plugin)
        child = hand_off(tui, parent)
        lengthen_opening_of_waiting_handoff(home)
        ran = home.root / HOOK_LOG_NAME
        assert not ran.exists(), "a startup costs nothing"
        clear_session(tui)
        assert sorted(ran.read_text().split()) == ["1", "2", "3"]
        said = send_prompt_and_read_request(tui, "go on BETA")
        assert has_lines_once_in_order(said, OPENING_LINES)
        assert (
            said.count("started by /clear"),
            said.count(NEXT_STEP_HEADING),
            said.count(LATER_PART_PREFIX),
        ) == (1, 1, 3)
        assert kinds_of_recorded_links(home) == ["handoff", "handoff"]
        (fresh,) = (path for path in home.sessions() if path not in {parent, child})
        (told,) = [
            text
            for row in fresh.read_bytes().splitlines()
            for text in list_hook_texts(json.loads(row))
        ]
        assert has_lines_once_in_order(told, OPENING_LINES)
        assert "fix the tests" in HeadTail(str(fresh)).title
        compact_session(tui)
        said = send_prompt_and_read_request(tui, "go on GAMMA")
        assert has_lines_once_in_order(said, COMPACTION_LINES)
        assert said.count(LATER_PART_PREFIX) == 3
        compact_session(tui)
        assert wait_until(lambda: count_openings(fresh) == 3), "the screen shows the first one, too"
        tui.wait_until_idle()
        assert has_lines_once_in_order(
            send_prompt_and_read_request(tui, "go on DELTA"), COMPACTION_LINES
        ), "what an earlier compaction left is not in the way"
        assert list((home.config / "resume-hooks" / "pending").glob("parts-*-[123]")) == []
    api.clear_requests()
    done = run_print(
        every_client,
        home,
        api,
        "go on EPSILON",
        resume=fresh.stem,
        plugin_dir=plugin,
        extra_env=QUIET_ENV,
    )
    assert done.returncode == 0, done.stderr
    assert has_lines_once_in_order(text_of_request(api.main_requests()[-1]), COMPACTION_LINES)
