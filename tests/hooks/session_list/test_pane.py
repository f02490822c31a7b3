"""Tests of the session pane: its list, its search hits, its previews and its keys."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks.client_module import answer_module_request
from resume_hooks.hooks.session_list import pane
from resume_hooks.hooks.session_list.pane import (
    HITS_STEP,
    INPUT_FIELD_LINE_COUNT,
    NAMES_STEP,
    PREVIEW_STEP,
)
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    assistant,
    attachment,
    boundary,
    conversation,
    custom_title,
    session_id,
    summary,
    user,
    write_running_client_file,
    write_session,
)

COLUMN_COUNT = 78
PANE_EVENT = {"screen": True, "session_id": SESSION, "columns": COLUMN_COUNT, "lines": 20}
TITLES = {1: "Fix the parser", 2: "Write the docs", 3: "Mend the pool"}


@pytest.fixture(autouse=True)
def project(config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create three sessions, newest last, and return the folder that contains their transcripts."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    for number, title in TITLES.items():
        rows = [
            *conversation(2, session_id=session_id(number)),
            custom_title(title, session_id(number)),
        ]
        path = write_session(
            config_home.project(),
            session_id(number),
            [{**row, "cwd": str(tmp_path)} if "cwd" in row else row for row in rows],
        )
        os.utime(path, (1_800_000_000 + number,) * 2)
    return Path(config_home.project())


def ask_pane(
    project: Path, words: str = "", step: str = NAMES_STEP, **fields: object
) -> dict[str, Any]:
    """Return the engine's reply to the module's request for the pane.

    The request comes from a session of the project that has no transcript yet.
    """
    event = {**PANE_EVENT, "args": f"--all {words}", "step": step, **fields}
    reply = answer_module_request(
        "pane", {**event, "transcript_path": str(project / f"{SESSION}.jsonl")}
    )
    json.dumps(reply)
    return reply


def listed_ids(reply: dict[str, Any]) -> list[str]:
    """Return the ids of the sessions in a reply."""
    return [row[0] for row in reply["rows"]]


def test_the_pane_loads_names_then_messages_then_the_preview(project: Path) -> None:
    """The pane loads its content in steps: matching titles, then matching messages, then a preview.

    Each reply names the next step. If the user has typed no words, the pane does not search
    messages. Every line fits the pane.
    """
    whole = ask_pane(project)
    assert listed_ids(whole) == [session_id(3), session_id(2), session_id(1)]
    assert (whole["at"], whole["next"]) == (session_id(3), PREVIEW_STEP)
    docs = ask_pane(project, "docs")
    assert (listed_ids(docs), docs["next"], "1 of 3" in docs["head"]) == (
        [session_id(2)],
        HITS_STEP,
        True,
    )
    assert listed_ids(ask_pane(project, "answer")) == []
    said = ask_pane(project, "answer 3", HITS_STEP)
    assert set(listed_ids(said)) <= {session_id(number) for number in TITLES}
    assert said["rows"]
    assert said["next"] == PREVIEW_STEP
    shown = ask_pane(project, step=PREVIEW_STEP, at=session_id(2))
    assert shown["preview"][0].startswith(session_id(2))
    assert any("prompt 2" in line for line in shown["preview"])
    lines = [line for row in [*whole["rows"], *said["rows"]] for line in (*row[1], *row[2])]
    assert all(len(line) <= COLUMN_COUNT for line in [*shown["preview"], *lines])


def test_a_hit_shows_its_speaker_and_opens_at_its_message(project: Path) -> None:
    """A hit's row shows who wrote the message, and opening the hit shows a page that starts there.

    The row has two lines: the title with the speaker, then the message. The page keys move to the
    text before or after that message.
    """
    rows = {row[0]: row for row in ask_pane(project, "answer 3", HITS_STEP)["rows"]}
    _, plain, marked, hit = rows[session_id(2)]
    assert (len(plain), marked[0][:2], plain[0][:2]) == (2, "> ", "  ")
    assert "the model · turn 2" in plain[0]
    assert "answer 3" in plain[1]
    first = ask_pane(project, "answer 3", "page", at=session_id(2), lines=6, page=0, **hit)
    assert [way[1] for way in first["ways"]][first["way"]] == "read on"
    assert "  answer 3" in first["lines_read"]
    assert len(first["lines_read"]) == 6 - 2
    helps = {word: what for word, _, what in first["ways"]}
    assert helps["fork"].endswith(f" · {TITLES[2]}"), "a small page has no line for the title"
    assert helps["on"].startswith("the text after")
    back = ask_pane(project, "answer 3", "page", at=session_id(2), lines=6, page=-1, **hit)
    assert (back["page"], any("prompt" in line for line in back["lines_read"])) == (-1, True)
    assert "way" not in back, "which way is marked stays as it was"
    ends = [
        ask_pane(project, "answer 3", "page", at=session_id(2), lines=6, page=far, **hit)
        for far in (-90, 90)
    ]
    assert [-90 < end["page"] < 90 and end["lines_read"] != [] for end in ends] == [True, True]


def test_a_short_pane_shows_one_line_per_row(project: Path) -> None:
    """In a pane with few lines, each row is one line, and the marked row's text is shown beside the list.

    That text starts with the speaker and the turn.
    """
    hits = ask_pane(project, "answer 3", HITS_STEP, side=28, lines=6)
    assert hits["most"] == 6
    for _, plain, marked, hit, text in hits["rows"]:
        assert (len(plain), len(marked)) == (1, 1)
        assert {len(plain[0]), len(marked[0])} == {COLUMN_COUNT - 28}
        assert hit["reference"]
        assert text[0].startswith("the model · turn 2")
        assert "answer 3" in " ".join(text[1:])
        assert len(text) <= 3
        assert max(map(len, text)) < 28
    rows = {row[0]: row for row in ask_pane(project, side=28, lines=6)["rows"]}
    assert rows[session_id(2)][4] == ["first prompt: prompt 0"]


def test_a_page_and_the_rows_show_only_messages(project: Path) -> None:
    """Neither a page nor a row shows text that the client added, such as ``<ide_opened_file>``."""
    opened = "<ide_opened_file>The user opened /a/b.toml</ide_opened_file>"
    own = session_id(4)
    rows = [
        user(f"{opened}dig the well", uuid="p", session_id=own),
        attachment("a long listing", uuid="a", parent="p", session_id=own),
        assistant("the well is dug", uuid="m", parent="a", session_id=own),
    ]
    write_session(project, own, rows)
    (row,) = ask_pane(project, "well", HITS_STEP)["rows"]
    assert row[1][0].strip().startswith("dig the well")
    assert "ide_opened_file" not in "".join(row[1])
    page = ask_pane(project, "well", "page", at=own, page=0, **row[3])
    text = "\n".join(page["lines_read"])
    assert "the well is dug" in text
    assert "dig the well" in text
    assert "attachment" not in text
    assert "the client added" not in text


def test_a_session_without_a_hit_opens_with_its_outline(project: Path) -> None:
    """The page of a session without a hit shows its prompts and marks the action "resume".

    The action "undo compaction" is not offered, because the session was never compacted.
    """
    shown = ask_pane(project, step="page", at=session_id(2), page=0)
    assert [way[1] for way in shown["ways"]][shown["way"]] == "resume"
    assert any("prompt 2" in line for line in shown["lines_read"])
    assert "undo compaction" not in [way[1] for way in shown["ways"]]


def test_a_session_that_another_window_has_open_is_forked(
    project: Path, config_home: ConfigHome
) -> None:
    """If another window has the session open, the marked action is "fork".

    The action "resume" is still offered, with a warning. For the session in this window, "resume"
    stays the marked action.
    """
    write_running_client_file(config_home.config, session_id(2))
    shown = ask_pane(project, step="page", at=session_id(2), page=0)
    ways = {way[1]: way[2] for way in shown["ways"]}
    assert [*ways][shown["way"]] == "fork"
    assert ways["resume"].startswith("loses turns: another window has the session open")
    assert ways["fork"] == "opens a copy, because another window has this session open"
    own = ask_pane(project, step="page", at=session_id(2), page=0, session_id=session_id(2))
    assert own["ways"][own["way"]][1:] == ("resume", "continues this session")
    other = ask_pane(project, step="page", at=session_id(1), page=0)
    assert other["ways"][other["way"]][1] == "resume"


@pytest.mark.parametrize(("columns", "rows"), [(48, 1), (47, 2), (16, 4)])
def test_the_actions_wrap_in_a_narrow_pane(project: Path, columns: int, rows: int) -> None:
    """In a narrow pane, the list of actions takes more lines, and fewer lines of text fit on the page.

    The actions are ``read on read back resume hand off fork list``.
    """
    write_session(project, session_id(2), conversation(40, session_id=session_id(2)))
    shown = ask_pane(project, step="page", at=session_id(2), page=0, columns=columns, lines=9)
    assert len(shown["lines_read"]) == 9 - INPUT_FIELD_LINE_COUNT - rows


def test_the_page_of_a_deleted_session_reports_the_deletion(project: Path) -> None:
    """The page of a hit whose session was deleted reports the deletion instead of raising an error."""
    _, _, _, hit = ask_pane(project, "answer 2", HITS_STEP)["rows"][0]
    for number in TITLES:
        (project / f"{session_id(number)}.jsonl").unlink()
    shown = ask_pane(project, "answer 2", "page", at=session_id(2), page=0, **hit)
    assert "no longer exists" in shown["head"] or "No session" in shown["head"]


def test_the_reply_has_more_rows_than_a_small_pane(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply has more rows than the pane shows, so that the user can scroll without a new request.

    ``edges`` contains the ids of the rows at which the client's module must request more.
    """
    whole = ask_pane(project, lines=6)
    assert (listed_ids(whole), whole["most"], whole["edges"]) == (
        [session_id(number) for number in (3, 2, 1)],
        5,
        [],
    )
    monkeypatch.setattr(pane, "MAX_ROWS_AROUND_MARKED_ROW", 1)
    first = ask_pane(project, lines=6)
    assert (listed_ids(first), first["edges"], first["again"]) == (
        [session_id(3), session_id(2)],
        [session_id(2)],
        NAMES_STEP,
    )
    last = ask_pane(project, lines=6, at=session_id(1))
    assert (listed_ids(last), last["edges"], last["at"]) == (
        [session_id(2), session_id(1)],
        [session_id(2)],
        session_id(1),
    )
    assert ask_pane(project, lines=6, step=PREVIEW_STEP, at=session_id(2))["preview"] == []


def test_keys_open_fork_or_hand_off_a_session(project: Path) -> None:
    """Keys in the pane open the chosen session, or make a fork or handoff of it and open that child.

    If the action of a key is impossible, the reply gives the reason.
    """
    opened = ask_pane(project, at=session_id(2), key="open")
    assert (opened["open"], opened["fill"]) == (session_id(2), "")
    assert f"claude --resume {session_id(2)}" in opened["by_hand"]
    for key, mark in (("fork", '"forkedFrom"'), ("handoff", '"continuation_type":"handoff"')):
        child = project / f"{ask_pane(project, at=session_id(2), key=key)['open']}.jsonl"
        assert mark in child.read_text()
    assert "was never compacted" in ask_pane(project, at=session_id(2), key="undo")["head"]
    assert (
        "that you are in"
        in ask_pane(project, at=session_id(2), key="open", session_id=session_id(2))["text"]
    )
    (project / f"{session_id(1)}.jsonl").unlink()
    for at in (session_id(1), "", "../x"):
        assert set(ask_pane(project, at=at, key="open")) == {"head", "next"}


def test_the_pane_undoes_a_compaction(project: Path, tmp_path: Path) -> None:
    """The key "undo" makes a child that ends before the compaction: it has no later records."""
    rows = [
        *conversation(2, session_id=session_id(5)),
        boundary(uuid="cut", parent=None, session_id=session_id(5)),
        summary("So far.", uuid="sum", parent="cut", session_id=session_id(5)),
        user("AFTER", uuid="after", parent="sum", session_id=session_id(5)),
    ]
    write_session(project, session_id(5), [{**row, "cwd": str(tmp_path)} for row in rows])
    child = (
        project / f"{ask_pane(project, at=session_id(5), key='undo')['open']}.jsonl"
    ).read_text()
    assert ("prompt 2" in child, "AFTER" in child) == (True, False)


def test_a_session_of_another_folder_gets_a_shell_command(project: Path, tmp_path: Path) -> None:
    """For a session from another folder, the key "open" shows a shell command that resumes it.

    The command first changes to the session's folder. If this folder no longer exists, the pane
    says so.
    """
    away = str(project.parent / "-elsewhere" / f"{SESSION}.jsonl")
    event = {**PANE_EVENT, "key": "open", "at": session_id(2), "transcript_path": away}
    assert (
        f"cd {tmp_path} && claude --resume {session_id(2)}"
        in answer_module_request("pane", event)["text"]
    )
    write_session(
        project,
        session_id(4),
        [{**row, "cwd": CWD} for row in conversation(2, session_id=session_id(4))],
    )
    assert "no longer exists" in ask_pane(project, at=session_id(4), key="open")["head"]
