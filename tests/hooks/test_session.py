"""SessionEnd and SessionStart: one link for one /clear, and what is due then, on any Python that a hook may meet."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import clock
from resume_hooks.hooks import session
from resume_hooks.hooks.pending_handoff import PendingHandoff, store_handoff
from resume_hooks.sessions.link_log import Link, links_file, read_links, read_superseded
from tests.builders import (
    ConfigHome,
    Record,
    assistant,
    conversation,
    session_id,
    user,
    write_session,
)
from tests.fuzz.targets.hooks import hook_output
from tests.hooks.conftest import Run
from tests.needs import REPO, python39
from tests.test_state_failures import refusing

OLD, NEW, CHILD = session_id(1), session_id(2), session_id(1_000)
Send = Callable[..., None]
Say = Callable[..., dict[str, Any]]


BOTH = pytest.mark.parametrize("any_python", ["this Python", "Python 3.9"], indirect=True)
"""Run on the oldest Python, too: these tests go through every line that the others do."""


@pytest.fixture
def any_python(request: pytest.FixtureRequest) -> str:
    """The Python that the hook's script runs on; "" for that of the tests, in their process."""
    return python39() if getattr(request, "param", "") == "Python 3.9" else ""


@pytest.fixture
def say(run_hook: Run, any_python: str, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Send an event of the client with this pid to the hook.

    The one object that it prints, ``{}`` for nothing.
    """

    def one(event: object, pid: int | str = 4711, **environ: str) -> dict[str, Any]:
        environ = {"CLAUDE_PID": str(pid), **environ}
        if any_python:
            done = run_hook("session", event, environ=environ, python=any_python)
            assert (done.returncode, done.stderr) == (0, b"")
            printed = done.stdout
        else:
            with monkeypatch.context() as patch:
                patch.setattr(sys, "argv", ["session.py"])
                for name, value in environ.items():
                    patch.setenv(name, value)
                printed = hook_output(
                    session.main, event if isinstance(event, bytes) else json.dumps(event).encode()
                )
        assert printed != b"{}"
        return dict(json.loads(printed or b"{}"))

    return one


@pytest.fixture
def send(say: Say) -> Send:
    """Send an event without a reply."""

    def one(event: object, pid: int | str = 4711, **environ: str) -> None:
        assert say(event, pid, **environ) == {}

    return one


def end(number: str = OLD, reason: object = "clear") -> dict[str, Any]:
    """The end of a session."""
    return {"hook_event_name": "SessionEnd", "session_id": number, "reason": reason}


def start(number: str = NEW, source: object = "clear") -> dict[str, Any]:
    """The start of a session."""
    return {"hook_event_name": "SessionStart", "session_id": number, "source": source}


def pairs(home: ConfigHome) -> list[tuple[str, str]]:
    """Every link as (parent, child)."""
    return [(link.parent_id, link.child_id) for link in read_links(home.where)]


def marks(home: ConfigHome) -> list[Path]:
    """The marks that wait for a successor."""
    return [path for path in sorted(pending(home).glob("*")) if not path.name.startswith("keep-")]


def pending(home: ConfigHome) -> Path:
    """The folder of notes."""
    return home.config / "resume-hooks" / "pending"


@BOTH
def test_a_clear_is_one_link(config_home: ConfigHome, send: Send) -> None:
    """The session that ended is the parent of the one that starts in the same client.

    The mark is used up.
    """
    send(end())
    assert len(marks(config_home)) == 1
    send(start())
    send(start(session_id(3)))
    (link,) = read_links(config_home.where)
    assert link == Link(NEW, OLD, "clear", link.at, 4711)
    assert (
        abs(time.time() - __import__("datetime").datetime.fromisoformat(link.at).timestamp()) < 60
    )
    assert marks(config_home) == []


def test_a_clear_after_a_clear(config_home: ConfigHome, send: Send) -> None:
    """A chain of them, in order.

    An id that a client starts after it ended is never its own parent.
    """
    send(end())
    send(start())
    send(end(NEW))
    send(start(session_id(3)))
    send(end(session_id(3)))
    send(start(session_id(3)))
    assert pairs(config_home) == [(OLD, NEW), (NEW, session_id(3))]


@BOTH
def test_an_older_client_is_found_among_the_ancestors(
    config_home: ConfigHome, any_python: str
) -> None:
    """Without CLAUDE_PID the client is the first ancestor except shells and Python."""
    script = config_home.root / "client.pl"
    hook = f"{any_python or sys.executable} -I {REPO / 'hooks' / 'session.py'}"
    events = [json.dumps(event) for event in (end(), start())]
    lines = [
        f"open(my $h, '|-', 'sh', '-c', '{hook}; true') or die; print $h '{event}'; close $h;"
        for event in events
    ]
    script.write_text("\n".join(lines))
    need_perl = subprocess.run(
        ["perl", str(script)], env={**os.environ, **config_home.environ}, check=False, timeout=60
    )
    assert need_perl.returncode == 0
    assert pairs(config_home) == [(OLD, NEW)]


def test_clients_do_not_mix(config_home: ConfigHome, send: Send) -> None:
    """Two clients that clear simultaneously get their own handoffs; one that only starts gets none."""
    send(end(session_id(10)), 10)
    send(end(session_id(20)), 20)
    send(start(session_id(21)), 20)
    send(start(session_id(31)), 30)
    send(start(session_id(11)), 10)
    assert pairs(config_home) == [
        (session_id(20), session_id(21)),
        (session_id(10), session_id(11)),
    ]


@pytest.mark.parametrize(
    "event", [end(reason=r) for r in ("resume", "logout", "other", "prompt_input_exit", None, 7)]
)
def test_other_ends_leave_no_mark(
    config_home: ConfigHome, send: Send, event: dict[str, Any]
) -> None:
    """Only after /clear a successor follows."""
    send(event)
    assert marks(config_home) == []


@pytest.mark.parametrize("source", ["startup", "resume", "compact", "fork", None, ["clear"]])
def test_other_starts_take_no_mark(config_home: ConfigHome, send: Send, source: object) -> None:
    """Another kind of start is not a successor, and leaves the mark."""
    send(end())
    send(start(session_id(5), source))
    assert pairs(config_home) == []
    send(start())
    assert pairs(config_home) == [(OLD, NEW)]


@BOTH
@pytest.mark.parametrize("seconds", [-3_600, 3_600])
def test_a_stale_mark_links_nothing(config_home: ConfigHome, send: Send, seconds: int) -> None:
    """A mark of a client that died long ago, or from a clock that was wrong, is thrown away."""
    send(end())
    (mark,) = marks(config_home)
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "at": time.time() + seconds}))
    send(start())
    assert pairs(config_home) == []
    assert marks(config_home) == []


@BOTH
@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"session_id":"../x"}', b'{"session_id":7}', b"[" * 200_000],
)
def test_a_damaged_mark_links_nothing(config_home: ConfigHome, send: Send, damage: bytes) -> None:
    """And it does not disturb the next clear."""
    send(end())
    (mark,) = marks(config_home)
    mark.write_bytes(damage)
    send(start())
    assert pairs(config_home) == []
    assert marks(config_home) == []
    send(end(NEW))
    send(start(session_id(3)))
    assert pairs(config_home) == [(NEW, session_id(3))]


@BOTH
@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"not json",
        b"[]",
        b"\xff",
        b"{" * 100_000,
        b" " * 2_000_000,
        {},
        {"hook_event_name": ["SessionEnd"], "session_id": OLD, "reason": "clear"},
        end("../../x"),
        end(""),
        end(f"{OLD}\0"),
        {"hook_event_name": "SessionEnd", "session_id": 7, "reason": "clear"},
        start("../x"),
    ],
)
def test_odd_events_do_nothing(config_home: ConfigHome, send: Send, event: object) -> None:
    """No output, no traceback, no file."""
    send(event)
    assert not (config_home.config / "resume-hooks").exists()


@BOTH
@pytest.mark.parametrize("pid", ["", "x", "-1", "²", "9" * 500, "../7"])
def test_an_odd_client_pid_is_harmless(config_home: ConfigHome, send: Send, pid: str) -> None:
    """For any value nothing is written outside of pending and nothing fails."""
    send(end(), pid)
    send(start(), pid)
    assert {path.name for path in config_home.config.iterdir()} <= {"projects", "resume-hooks"}


@BOTH
def test_a_link_that_can_t_be_written_is_named_after_clear(
    config_home: ConfigHome, say: Say
) -> None:
    """The start continues; a line names the folder, the reason, the loss and the remedy."""
    (config_home.root / "file").touch()
    state = str(config_home.root / "file" / "x")
    assert say(end(), RESUME_HOOKS_HOME=state) == {}
    assert say(start(source="startup"), RESUME_HOOKS_HOME=state) == {}
    assert say(start(), RESUME_HOOKS_HOME=state) == {
        "systemMessage": "resume-hooks: the session before this one could not be recorded in "
        f"{state} (Not a directory), so /resume-hooks:lineage will not show it. Check free space "
        "and the permissions of the folder."
    }
    assert pairs(config_home) == []


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_full_disk_is_named_after_clear(
    config_home: ConfigHome, say: Say, has_mark: bool
) -> None:
    """It was full at the session's end, when the mark is written, or only at the start."""
    if has_mark:
        say(end())
    with refusing(errno.ENOSPC)(config_home.config / "resume-hooks"):
        line = say(start())["systemMessage"]
    assert "(No space left on device)" in line
    assert pairs(config_home) == []


@BOTH
def test_marks_and_links_are_private(config_home: ConfigHome, send: Send) -> None:
    """Folders 0700, files 0600."""
    send(end())
    state = config_home.config / "resume-hooks"
    modes = {
        path.relative_to(state).parts[0]: path.stat().st_mode & 0o777
        for path in [state / "pending", *pending(config_home).glob("*")]
    }
    assert modes["pending"] == 0o600
    assert state.stat().st_mode & 0o777 == (state / "pending").stat().st_mode & 0o777 == 0o700


@BOTH
def test_ten_clients_at_once(config_home: ConfigHome, any_python: str) -> None:
    """Each has its own parent, and no row of links.jsonl is torn."""
    numbers = range(100, 110)

    def all_at_once(make: Callable[[int], dict[str, Any]]) -> None:
        running = []
        for number in numbers:
            env = {**config_home.environ, "CLAUDE_PID": str(number)}
            command = [any_python or sys.executable, "-I", str(REPO / "hooks" / "session.py")]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=env)
            assert process.stdin is not None
            process.stdin.write(json.dumps(make(number)).encode())
            process.stdin.close()
            running.append(process)
        assert [process.wait(timeout=60) for process in running] == [0] * len(running)

    all_at_once(lambda number: end(session_id(number)))
    all_at_once(lambda number: start(session_id(number + 1_000)))
    assert sorted(pairs(config_home)) == [(session_id(n), session_id(n + 1_000)) for n in numbers]


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_mark_that_is_not_a_file(config_home: ConfigHome, run_hook: Run, kind: str) -> None:
    """It links nothing, and the client's start does not wait for it."""
    mark = config_home.config / "resume-hooks" / "pending" / "clear-4711.json"
    mark.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(mark)
    else:
        (config_home.root / "elsewhere").write_text(json.dumps({"session_id": session_id(1)}))
        mark.symlink_to(config_home.root / "elsewhere")
    done = run_hook("session", start(session_id(2)), environ={"CLAUDE_PID": "4711"})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert pairs(config_home) == []


@pytest.fixture
def child(config_home: ConfigHome) -> Path:
    """An untouched child, which client 4711 made out of OLD and which waits for its ``/clear``."""
    path = write_session(config_home.project(), CHILD, conversation(1, session_id=CHILD))
    rows = f"1. old · {OLD}\n2. new · {CHILD} · this session\n   {path}"
    opening = f"[SESSION LINEAGE]\n{rows}\n[/SESSION LINEAGE]\n\ngo on \x1b[1m!"
    store_handoff(
        PendingHandoff(4711, "", OLD, CHILD, path, os.path.getsize(path), time.time(), opening)
    )
    return Path(path)


def test_clear_after_a_rollover_reports_it(config_home: ConfigHome, child: Path, say: Say) -> None:
    """The link, too, for what counts children by kind; a note of any other kind is none."""
    size = os.path.getsize(child)
    for kind, said in (
        ("rollover", f"resume-hooks: the rollover of {OLD[:8]} is loaded"),
        ("x", ""),
    ):
        store_handoff(
            PendingHandoff(4711, "", OLD, CHILD, str(child), size, time.time(), "opening", kind)
        )
        say(end())
        told = say(beside(child, NEW, "clear")) or {}
        assert told.get("systemMessage", "")[: len(said) or None] == said
    assert read_links(config_home.where)[0].kind == "rollover"


def beside(path: Path, number: str, source: str) -> dict[str, Any]:
    """The start of a session in the folder of ``path``."""
    return {**start(number, source), "transcript_path": str(path.parent / f"{number}.jsonl")}


@BOTH
def test_clear_after_a_handoff_opens_with_it(
    config_home: ConfigHome, child: Path, say: Say
) -> None:
    """As facts, naming the new session in the child's place; linked as a handoff.

    The child gave way. Once.
    """
    raw = child.read_bytes()
    say(end())
    said = say(beside(child, NEW, "clear"))
    context = said["hookSpecificOutput"]["additionalContext"]
    assert said["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert context.startswith("This session was started by /clear, after a handoff (")
    assert f"2. new · {NEW} · this session\n   {child.parent / NEW}.jsonl" in context
    assert CHILD not in context
    assert "\x1b" not in context
    assert (
        said["systemMessage"]
        == f"resume-hooks: the handoff of {OLD[:8]} is loaded; /clear again starts without it"
    )
    (link,) = read_links(config_home.where)
    assert link == Link(NEW, OLD, "handoff", link.at, 4711)
    assert read_superseded(config_home.where) == {CHILD: NEW}
    assert marks(config_home) == []
    assert child.read_bytes() == raw
    say(end(NEW))
    assert say(beside(child, session_id(7), "clear")) == {}
    assert pairs(config_home)[-1] == (NEW, session_id(7))


@BOTH
@pytest.mark.parametrize(
    "case", ["other client", "other session", "other folder", "opened", "no path"]
)
def test_a_clear_that_it_does_not_wait_for_is_a_plain_one(
    config_home: ConfigHome, child: Path, say: Say, case: str
) -> None:
    """There is no message, and the link is that of a clear."""
    pid, cleared, place = 4711, OLD, child
    if case == "other client":
        pid = 4712
    elif case == "other session":
        cleared = session_id(9)
    elif case == "other folder":
        place = config_home.project("/elsewhere") / "x"
    elif case == "opened":
        child.write_bytes(child.read_bytes() + b"\n")
    say(end(cleared), pid)
    assert say(start() if case == "no path" else beside(place, NEW, "clear"), pid) == {}
    (link,) = read_links(config_home.where)
    assert (link.parent_id, link.child_id, link.kind) == (cleared, NEW, "clear")


@BOTH
def test_resuming_the_child_uses_it_up(config_home: ConfigHome, child: Path, say: Say) -> None:
    """In any client, without a message; a later clear of the parent is an ordinary one."""
    assert say(beside(child, session_id(8), "resume")) == {}
    assert say(beside(child, CHILD, "resume"), 99) == {}
    say(end())
    assert say(beside(child, NEW, "clear")) == {}
    assert [link.kind for link in read_links(config_home.where)] == ["clear"]


@BOTH
def test_who_starts_next_hears_of_it_once(child: Path, say: Say) -> None:
    """One line with the command, nothing for the model; a headless run leaves it for a user."""
    assert say(beside(child, session_id(6), "startup"), 5, CLAUDE_CODE_ENTRYPOINT="sdk-cli") == {}
    told = say(beside(child, session_id(6), "startup"), 5, CLAUDE_CODE_ENTRYPOINT="cli")
    assert told == {"systemMessage": f"resume-hooks: a handoff waits here: /resume {CHILD}"}
    assert say(beside(child, session_id(7), "startup"), 6) == {}


COLD = {
    "context_tokens": 163_400,
    "prompt_cache_likely_expired": True,
    "estimated_cache_write_usd": 0.6128,
}
SAID = (
    "resume-hooks: The prompt cache expired; your next prompt resends all 163,400 tokens{cost}; "
    "/resume-hooks:trim or /resume-hooks:handoff first sends less"
)


def counted_turn(tokens: int, *, after: str | None = None, prompt: str = "go on") -> list[Record]:
    """Return a turn with this token count, after a record with this id, if any."""
    return [
        user(prompt, uuid="u", parent=after, session_id=OLD),
        assistant("done", uuid="a", parent="u", ts=1, session_id=OLD, tokens=tokens),
    ]


@BOTH
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, SAID.format(cost=" (about $0.61)")),
        ({"estimated_cache_write_usd": None}, SAID.format(cost="")),
        ({"estimated_cache_write_usd": 0.001}, SAID.format(cost="")),
        ({"context_tokens": 99_999}, ""),
        ({"context_tokens": "163400"}, ""),
        ({"prompt_cache_likely_expired": "yes"}, ""),
        ({"source": "startup"}, ""),
    ],
)
def test_a_resume_states_the_cost_of_a_cold_cache(
    config_home: ConfigHome, say: Say, other: dict[str, Any], said: str
) -> None:
    """In the client's figures; not for a new child, nor in a headless run."""
    for made, due in ((clock.now(), ""), ("2026-01-31T09:30:00.000Z", said)):
        rows = [{"continue_metadata": {"continued_at": made}}, *counted_turn(163_400)]
        path = Path(write_session(config_home.project(), OLD, rows))
        event = {**beside(path, OLD, "resume"), **COLD, **other}
        assert say(event, CLAUDE_CODE_ENTRYPOINT="sdk-cli") == {}
        assert say(event, CLAUDE_CODE_ENTRYPOINT="cli") == ({"systemMessage": due} if due else {})


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("go on", ""),
        (
            "x" * 400_000,
            (
                "resume-hooks: The prompt cache expired; your next prompt resends all "
                "(about 130,010 tokens); /resume-hooks:trim or /resume-hooks:handoff first sends less"
            ),
        ),
    ],
)
def test_a_cold_cache_of_a_file_that_lacks_its_beginning(
    config_home: ConfigHome, say: Say, prompt: str, said: str
) -> None:
    """The client counts that beginning, too, which is not sent: the figure is that of `info`."""
    rows = counted_turn(263_400, after="gone", prompt=prompt)
    path = Path(write_session(config_home.project(), OLD, rows))
    event = {**beside(path, OLD, "resume"), **COLD, "context_tokens": 263_400}
    due = {"systemMessage": said} if said else {}
    assert say(event, CLAUDE_CODE_ENTRYPOINT="cli") == due


def test_the_hook_does_not_repeat_the_modules_line(config_home: ConfigHome, say: Say) -> None:
    """This holds once: at the next resume only the hook is called if the client has no module."""
    path = Path(write_session(config_home.project(), OLD, counted_turn(163_400)))
    event = {**beside(path, OLD, "resume"), **COLD}
    shown = session.claim_cold_cache_line(event)
    assert shown.endswith("; /trim or /handoff first sends less"), (
        "as the module's commands are called"
    )
    assert say(event, CLAUDE_CODE_ENTRYPOINT="cli") == {}
    due = SAID.format(cost=" (about $0.61)")
    assert say(event, CLAUDE_CODE_ENTRYPOINT="cli") == {"systemMessage": due}


@BOTH
def test_a_resume_of_a_giant_file_names_a_remedy(config_home: ConfigHome, say: Say) -> None:
    """Only its size counts. A headless run gets no message."""
    path = config_home.project() / f"{OLD}.jsonl"
    with path.open("wb") as file:
        file.truncate(123_400_000)
    said = say(beside(path, OLD, "resume"), CLAUDE_CODE_ENTRYPOINT="cli")["systemMessage"]
    assert "has 123 MB, and a client may hang on it" in said
    assert f"archive --slim {OLD[:8]}" in said
    assert say(beside(path, OLD, "resume"), CLAUDE_CODE_ENTRYPOINT="sdk-cli") == {}


@pytest.mark.parametrize("source", ["fork", "compact", "elsewhere", ""])
def test_other_starts_leave_it(child: Path, config_home: ConfigHome, say: Say, source: str) -> None:
    """There is no message, and it stays pending."""
    assert say(beside(child, session_id(6), source), 5) == {}
    assert len(marks(config_home)) == 1


@BOTH
def test_a_compaction_without_the_engine_is_silent(say: Say, config_home: ConfigHome) -> None:
    """On an old Python, and of a session that has no file."""
    assert say(start(session_id(6), "compact")) == {}


@BOTH
def test_a_lost_link_takes_nothing_from_the_opening(
    child: Path, config_home: ConfigHome, say: Say
) -> None:
    """The state folder's file can't be appended to: the session still opens with the handoff."""
    say(end())
    Path(links_file(config_home.where)).mkdir()
    assert "go on" in say(beside(child, NEW, "clear"))["hookSpecificOutput"]["additionalContext"]
