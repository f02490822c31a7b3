"""UserPromptSubmit, run as the client runs it: what is ours is answered, everything else passes, nothing escapes."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import handoff, lane, resume_card
from resume_hooks.hooks.prompt import card
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.sessions import locate
from tests.builders import SESSION, ConfigHome, assistant, conversation, custom_title, session_id, user, write_session
from tests.hooks.conftest import Run, asked
from tests.needs import REPO

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
OTHER = session_id(9)
STRUCK_ANYWHERE = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed file:ResourceWarning"
)
"""An alarm may strike between the opening of a file and its ``with``; the process that it strikes ends right after."""


def a_session(home: ConfigHome) -> Path:
    """A titled session of two turns in a project."""
    return Path(write_session(home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")]))


def event(prompt: object, **more: object) -> dict[str, Any]:
    """The input of the hook for a prompt in that session."""
    return {"hook_event_name": "UserPromptSubmit", "session_id": SESSION, "prompt": prompt, "cwd": "/", **more}


def reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """The reason of a valid block, in every form that is promised of it; ``""`` where the prompt passed."""
    assert (done.returncode, done.stderr) == (0, b"")
    if not done.stdout:
        return ""
    document = json.loads(done.stdout)
    assert document["decision"] == "block"
    assert document["hookSpecificOutput"] == {"hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": True}
    text = document["reason"]
    assert isinstance(text, str)
    assert 0 < len(text.encode("utf-16-le")) // 2 <= 10_000
    assert len(text.split("\n")[-1]) <= 40
    return text


def files(home: ConfigHome) -> set[str]:
    """Every file and link below the config home."""
    return {str(path) for path in home.config.rglob("*") if not path.is_dir() or path.is_symlink()}


ANSWERS = {
    ">session": SESSION,
    ">session-id": SESSION,
    ">resume": "context 1,300 tokens, 1 % of 200,000",
    ">continue": "Fix the parser",
    ">resume fix the tests": ">handoff fix the tests",
    ">lineage": "lineage, oldest first (1 session)",
    ">help": "/resume-hooks:handoff",
    ">handoff fix the tests": "Fix the parser · handoff 1",
    "/resume-hooks:handoff fix the tests": "Fix the parser · handoff 1",
    ">trim": "Trimming would not pay",
    ">trim yes": "no trim was previewed",
    ">trim cancel": "no trim was waiting",
    "/resume-hooks:trim help": "--keep-recent",
    "/resume-hooks:session": SESSION,
    "/resume-hooks:help": "A space before >",
    f">trim yes /resume {OTHER}": "Press Ctrl+C once, then paste again.",
    f">handoff fix/resume {OTHER}": "Press Ctrl+C once, then paste again.",
    ">handoff fix /clear": "nothing was made",
}


@pytest.mark.parametrize("prompt", ANSWERS)
def test_each_trigger_is_answered(config_home: ConfigHome, run_hook: Run, prompt: str) -> None:
    """A valid block with its card; only a handoff writes: its child, and what keeps the session as it is."""
    session = a_session(config_home)
    raw, before = session.read_bytes(), files(config_home)
    text = reason(run_hook("prompt", event(prompt)))
    assert ANSWERS[prompt] in text
    assert session.read_bytes() == raw
    # Where some process above the tests may be a client, the handoff waits for its ``/clear``.
    made = {path for path in files(config_home) - before if "/pending/handoff-" not in path}
    if "Fix the parser · handoff" not in text:
        assert made == set()
        return
    found = re.search(rf"/resume ({UUID})", text)
    assert found is not None
    child = session.parent / f"{found.group(1)}.jsonl"
    state = config_home.config / "resume-hooks"
    kept = {path for path in made if path.startswith(f"{state / 'vault' / SESSION}/")}
    assert made - kept == {str(child), str(state / "links.jsonl")}
    assert kept
    assert b"fix the tests" in child.read_bytes()


@pytest.mark.parametrize("prompt", ["hello", " >resume", "> resume", ">session text", "", "/resume x", ">resumed"])
def test_every_other_prompt_passes(config_home: ConfigHome, run_hook: Run, prompt: str) -> None:
    """Not a byte is written."""
    a_session(config_home)
    assert reason(run_hook("prompt", event(prompt))) == ""


def test_our_own_model_calls_pass(config_home: ConfigHome, run_hook: Run) -> None:
    """The recursion guard switches every trigger off."""
    a_session(config_home)
    before = files(config_home)
    done = run_hook("prompt", event(">handoff"), environ={"RESUME_HOOKS_CHILD": "1"})
    assert reason(done) == ""
    assert files(config_home) == before


def test_triggers_can_be_switched_off(config_home: ConfigHome, run_hook: Run) -> None:
    """A trigger that is off is a plain prompt; the others still answer."""
    a_session(config_home)
    off = {"RESUME_HOOKS_TRIGGERS_OFF": "help, handoff"}
    assert reason(run_hook("prompt", event(">help"), environ=off)) == ""
    assert reason(run_hook("prompt", event(">handoff x/clear"), environ=off)) == ""
    assert SESSION in reason(run_hook("prompt", event(">session"), environ=off))


RAW = {
    "nothing": b"",
    "not JSON": b"hello",
    "torn": b'{"prompt": ">resu',
    "a list": b'[">resume"]',
    "a string": b'">resume"',
    "null": b"null",
    "a number": b"7",
    "deep": b"[" * 200_000,
    "deep inside": b'{"prompt":">resume","x":' + b"[" * 200_000,
    "a huge number": b'{"prompt":">resume","x":' + b"9" * 6_000 + b"}",
    "invalid UTF-8": b'\xff\xfe{"prompt":">resume"}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "NULs": b"\0" * 1_000,
    "10 MB of nothing": b" " * 10_000_000,
    "no prompt": b'{"session_id":"%s"}' % SESSION.encode(),
    "prompt of another type": b'{"prompt":[">resume"],"session_id":"%s"}' % SESSION.encode(),
}


@pytest.mark.parametrize("name", RAW)
def test_input_that_is_no_event_passes(config_home: ConfigHome, run_hook: Run, name: str) -> None:
    """Whatever stands on stdin: no trace, no output, exit 0."""
    a_session(config_home)
    assert reason(run_hook("prompt", RAW[name])) == ""


IDS = [
    None,
    7,
    "",
    [SESSION],
    "../../../etc/passwd",
    f"../{OTHER}",
    f"{SESSION}/../{OTHER}",
    f"{SESSION}\0",
    SESSION.upper().replace("1", "A"),
    f"{SESSION}.jsonl",
    "*",
    "x" * 100_000,
    "\ud800",
]


@pytest.mark.parametrize("prompt", [">resume words kept", ">handoff words kept", ">session", ">lineage", ">trim"])
@pytest.mark.parametrize("hostile", IDS, ids=range(len(IDS)))
def test_an_id_that_is_none_reaches_no_file(
    config_home: ConfigHome, run_hook: Run, hostile: object, prompt: str
) -> None:
    """Nothing is made, nothing is read, and the user's words are in the answer."""
    a_session(config_home)
    write_session(config_home.config / "projects", OTHER, conversation(1))
    before = files(config_home)
    text = reason(run_hook("prompt", event(prompt, session_id=hostile)))
    assert "The client named no session" in text
    assert "Nothing was changed." in text
    assert ("words kept" in text) is ("words kept" in prompt)
    assert files(config_home) == before


@pytest.mark.parametrize("how", ["outside", "symlink", "fifo", "folder", "device", "wrong type", "huge"])
def test_the_transcript_path_is_not_believed(config_home: ConfigHome, run_hook: Run, how: str) -> None:
    """The session is looked up by its id alone: a path that leads elsewhere is neither read nor waited for."""
    a_session(config_home)
    outside = config_home.root / "outside"
    secret = write_session(outside, OTHER, [*conversation(1, session_id=OTHER), custom_title("secret", OTHER)])
    link = config_home.project() / "link.jsonl"
    link.symlink_to(secret)
    pipe = outside / f"{SESSION}.jsonl"
    os.mkfifo(pipe)
    named: dict[str, object] = {
        "outside": secret,
        "symlink": str(link),
        "fifo": str(pipe),
        "folder": str(outside),
        "device": "/dev/zero",
        "wrong type": {"a": 1},
        "huge": "/x" * 100_000,
    }
    for prompt in (">resume", ">handoff"):
        text = reason(run_hook("prompt", event(prompt, transcript_path=named[how])))
        assert "Fix the parser" in text
        assert "secret" not in text


@pytest.mark.parametrize("how", ["symlink", "fifo", "folder", "empty"])
@pytest.mark.parametrize("prompt", [">resume kept words", ">handoff kept words", ">lineage", ">trim"])
def test_what_lies_in_the_sessions_place_is_no_session(
    config_home: ConfigHome, run_hook: Run, prompt: str, how: str
) -> None:
    """A link, a pipe, a folder or a stub under the session's name: answered as a session without a transcript."""
    place = config_home.project() / f"{SESSION}.jsonl"
    if how == "symlink":
        place.symlink_to(write_session(config_home.root, OTHER, conversation(1)))
    elif how == "fifo":
        os.mkfifo(place)
    elif how == "folder":
        place.mkdir()
    else:
        place.touch()
    before = files(config_home)
    text = reason(run_hook("prompt", event(prompt)))
    assert files(config_home) == before
    assert ("kept words" in text) is ("kept words" in prompt)
    assert SESSION in text if prompt.startswith(">resume") else "no transcript yet" in text


@pytest.mark.parametrize(
    "words", ["a\0b", "\ud83d lone", "\x1b[2J", "🚀" * 9_000, "語" * 19_000, "x" * 30_000, '"}\n{"decision":"approve"']
)
@pytest.mark.parametrize("verb", ["resume", "handoff"])
def test_hostile_words_stay_words(config_home: ConfigHome, run_hook: Run, verb: str, words: str) -> None:
    """Whatever stands behind a trigger, the answer is a valid block and the session is whole."""
    session = a_session(config_home)
    raw = session.read_bytes()
    text = reason(run_hook("prompt", event(f">{verb} {words}")))
    assert "\x1b" not in text
    assert session.read_bytes() == raw
    children = [path for path in session.parent.iterdir() if path != session]
    assert len(children) == (verb == "handoff" and len(words) <= 20_000)


def test_an_unwritable_state_folder_costs_nothing(config_home: ConfigHome, run_hook: Run) -> None:
    """The child is made; the card says that the link was not kept."""
    a_session(config_home)
    (config_home.root / "file").touch()
    state = {"RESUME_HOOKS_HOME": str(config_home.root / "file" / "x")}
    assert "note: The link was not added" in reason(run_hook("prompt", event(">handoff"), environ=state))
    assert "Fix the parser" in reason(run_hook("prompt", event(">resume"), environ=state))


def test_a_failure_tells_a_way_out_and_keeps_the_words(config_home: ConfigHome, run_hook: Run) -> None:
    """A trigger that fails as expected: what, what to do, the user's words, and that nothing changed."""
    write_session(config_home.project(), SESSION, [custom_title("empty")])
    text = reason(run_hook("prompt", event("/resume-hooks:handoff my words")))
    assert "nothing to hand off" in text
    assert "my words" in text
    assert text.endswith("\nNothing was changed.")


def test_a_bug_is_a_sentence_with_a_way_out(config_home: ConfigHome, run_hook: Run, tmp_path: Path) -> None:
    """An engine that breaks in the middle never shows a trace, and the words are not lost."""
    a_session(config_home)
    plugin = tmp_path / "plugin"
    shutil.copytree(REPO / "src", plugin / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPO / "hooks", plugin / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
    (plugin / "src" / "resume_hooks" / "hooks" / "handoff.py").write_text("1 / 0\n")
    run = [sys.executable, "-I", str(plugin / "hooks" / "prompt.py")]
    stdin = json.dumps(event(">handoff my words")).encode()
    text = reason(subprocess.run(run, input=stdin, env=config_home.environ, capture_output=True, check=False))
    assert "ZeroDivisionError" in text
    assert "Put a space before >" in text
    assert "my words" in text
    assert f"\n  sh {plugin}/hooks/engine doctor\n" in text
    log = (config_home.config / "resume-hooks" / "log" / "errors.log").read_text()
    assert log.split()[2:4] == [">handoff", "ZeroDivisionError"]
    assert "my words" not in log


def test_a_missing_dependency_falls_back(config_home: ConfigHome) -> None:
    """On a Python without orjson the id is still answered with, and a handoff says what is missing."""
    a_session(config_home)
    for prompt, words in ((">session", SESSION), (">handoff x", "needs the engine"), (">trim", "needs the engine")):
        # -S leaves site-packages out.
        command = [sys.executable, "-I", "-S", str(REPO / "hooks" / "prompt.py")]
        env = {**config_home.environ, "RESUME_HOOKS_CLIPBOARD": "none"}
        stdin = json.dumps(event(prompt)).encode()
        assert words in reason(subprocess.run(command, input=stdin, env=env, capture_output=True, check=False))


@STRUCK_ANYWHERE
@pytest.mark.parametrize("limit", [0.0001, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.05])
def test_a_time_limit_leaves_nothing_or_the_whole(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, limit: float
) -> None:
    """Wherever the limit strikes: no child and a sentence, or a whole child and its receipt."""
    session = a_session(config_home)
    monkeypatch.setattr(lane, "LIMIT", limit)
    found = None
    with contextlib.suppress(lane.TimeLimit):
        found = handoff.answer(asked(Trigger("handoff", "go on", slash=False, pasted=False), session))
    children = [path for path in session.parent.iterdir() if path != session]
    assert len(children) == (found is not None)
    if found is not None:
        assert found.to_copy == f"/resume {children[0].stem}"
        assert b"handoff 1" in children[0].read_bytes()
    gc.collect()  # a file whose opening was struck is closed here, not in another test


@STRUCK_ANYWHERE
def test_a_slow_session_is_given_up_in_time(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading that hangs is cut off at the limit, and no alarm is left ticking."""
    session = a_session(config_home)
    with session.open("ab") as stream:
        for _ in range(300):
            stream.write(b'{"type":"last-prompt","leafUuid":"r3","pad":"' + b"x" * 100_000 + b'"}\n')
        stream.write(b"\n".join([b'{"uuid":"u%d","type":"user"}' % n for n in range(200_000)]))
    monkeypatch.setattr(lane, "LIMIT", 0.05)
    started = time.monotonic()
    text = card(Trigger("resume", "", slash=False, pasted=False), {"session_id": SESSION})
    assert time.monotonic() - started < 2
    assert "took longer than 0.05 s" in text
    said = card(Trigger("trim", "", slash=False, pasted=False), {"session_id": SESSION})
    assert (
        f"took longer than 0.05 s, so nothing was made.\n\nIn a shell there is no limit: resume-hooks trim {SESSION}"
        in said
    )
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    gc.collect()


def test_no_trigger_waits_for_a_folder_that_vanished(config_home: ConfigHome) -> None:
    """A session that goes away between listing and reading is an expected failure."""
    session = a_session(config_home)
    parent = locate.session_file(str(session))
    shutil.rmtree(session.parent)
    with pytest.raises(ResumeHooksError):
        resume_card.answer(asked(Trigger("resume", "", slash=False, pasted=False), parent.path))


def test_cost_of_a_50_mb_session_is_its_tail(config_home: ConfigHome, run_hook: Run) -> None:
    """A handoff of a big session stays within a fraction of its limit."""
    with a_session(config_home).open("ab") as stream:
        line = b'{"type":"queue-operation","pad":"' + b"x" * 1_000_000 + b'"}\n'
        stream.writelines([line] * 50)
        stream.write(b"".join(json.dumps(r).encode() + b"\n" for r in conversation(2, prefix="z", start=99)))
    started = time.monotonic()
    assert "handoff 1" in reason(run_hook("prompt", event(">handoff")))
    assert time.monotonic() - started < lane.LIMIT


def test_the_transcript_that_the_client_names_is_the_one(run_hook: Run, config_home: ConfigHome) -> None:
    """Of two copies of a session the child goes beside the one that the client writes, not beside the newest."""
    records = [user("do it", uuid="u1"), assistant("done", uuid="a1", parent="u1")]
    here = Path(write_session(config_home.project("/work/here"), session_id(1), records))
    there = Path(write_session(config_home.project("/work/there"), session_id(1), records))
    os.utime(here, (1, 1))
    event = {"session_id": session_id(1), "prompt": ">handoff go", "transcript_path": str(here)}
    run_hook("prompt", event)
    assert len(list(here.parent.glob("*.jsonl"))) == 2
    assert len(list(there.parent.glob("*.jsonl"))) == 1


def test_the_same_handoff_twice_makes_one_child(run_hook: Run, config_home: ConfigHome) -> None:
    """A stray Enter over the text that came back into the box shows the same child again."""
    records = [user("do it", uuid="u1", ts="2020-01-01T00:00:00.000Z")]
    parent = Path(write_session(config_home.project(), session_id(1), records))
    event = {"session_id": session_id(1), "prompt": ">handoff go", "transcript_path": str(parent)}
    first, second = (json.loads(run_hook("prompt", event).stdout)["reason"] for _ in range(2))
    assert first.startswith("handed off")
    assert second.startswith("already handed off")
    assert len(list(parent.parent.glob("*.jsonl"))) == 2


def test_a_paste_over_left_over_text_repeats_the_text(run_hook: Run) -> None:
    """Nothing is made, and nothing that was typed is lost; the shell's own line is known as well."""
    for tail in (f"/resume {session_id(2)}", "/clear", f"cd /x && claude --resume {session_id(2)}"):
        event = {"session_id": session_id(1), "prompt": f"/resume-hooks:handoff fix the tests {tail}"}
        reason = json.loads(run_hook("prompt", event).stdout)["reason"]
        assert "nothing was made" in reason
        assert "fix the tests" in reason
