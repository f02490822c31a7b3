"""What the model gets back of a thread, compared with the twenty lines that the format's description has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.transcripts import items
from resume_hooks.parts.codex.transcripts.history import History
from resume_hooks.parts.codex.transcripts.lines import rollout_lines
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.parts.codex.transcripts.segments import chain_lines
from tests.parts.codex.rollouts import (
    OTHER,
    THIRD,
    THREAD,
    Line,
    call,
    compacted,
    counted,
    effective,
    event,
    every_rollout,
    find_in_corpus,
    item,
    line,
    meta,
    numbered,
    output,
    said,
    write,
)

GROWTH = 200 * 1024 * 1024  # bytes: a line of 64 MB, and what reading it takes


def _is_real_user(one: Line) -> bool:
    texts = [part.get("text") or "" for part in one.get("content") or []]
    return one.get("role") == "user" and not any(text.lstrip().startswith(items.HARNESS) for text in texts)


def _reference(lines: list[Line]) -> list[Line]:
    history: list[Line] = []
    for one in lines:
        kind, payload = one["type"], one.get("payload") or {}
        if kind == "response_item" and payload.get("type") != "ghost_snapshot":
            history.append(payload)
        elif kind == "compacted" and payload.get("replacement_history") is not None:
            history = list(payload["replacement_history"])
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            opening = [place for place, each in enumerate(history) if _is_real_user(each)]
            count = payload["num_turns"]
            if count and opening:
                history = history[: opening[-count] if count <= len(opening) else opening[0]]
    return history


def _lines(path: Path) -> list[Line]:
    """The lines of a thread, as simply as they can be read."""
    own = [json.loads(raw) for raw in path.read_bytes().splitlines()]
    base = own[0]["payload"].get("history_base")
    if base is None:
        return own
    before = _lines(Path(str(find_in_corpus(base["thread_id"]))))
    return [one for one in before if one["ordinal"] < base["end_ordinal_exclusive"]] + own


def _history(path: Path) -> History:
    history = History(str(path))
    for one in chain_lines(str(path), find_in_corpus):
        history.take(one)
    return history


@every_rollout
def test_it_is_what_the_description_says(rollout: Path) -> None:
    """Each real rollout gives the items of the reference, each with an id of its own; tokens are the last count."""
    lines = _lines(rollout)
    history = _history(rollout)
    if all("replacement_history" in one["payload"] for one in lines if one["type"] == "compacted"):
        assert [one.payload for one in history.items] == _reference(lines)
    assert len({one.uuid for one in history.items}) == len(history.items)
    assert [one.uuid for one in _history(rollout).items] == [one.uuid for one in history.items]
    infos = [one["payload"].get("info") for one in lines if one["payload"].get("type") == "token_count"]
    assert history.measured
    assert history.tokens == [one["last_token_usage"]["total_tokens"] for one in infos if one][-1]
    found = items.pairs([one.payload for one in history.items])
    assert all(pair.call < pair.output for pair in found.values() if pair.output >= 0)


def test_an_old_compaction_leaves_prompts_and_its_summary(tmp_path: Path) -> None:
    """A client that told the summary alone sent the user's messages and it."""
    lines = [
        meta(),
        said("user", "<environment_context> x"),
        said("user", "one"),
        said("assistant", "two"),
        line("compacted", {"message": "what was done"}),
        said("user", "three"),
    ]
    left = effective(rollout_lines(str(write(tmp_path, lines))))
    assert [items.text(one.payload) for one in left] == ["one", "what was done", "three"]


def test_a_fork_and_a_rewind_go_on_from_what_they_name(tmp_path: Path) -> None:
    """Lines before the ordinal count, later ones don't; ids in the fork are those of the parent; counts are its own."""
    first = numbered([meta(), said("user", "one"), said("assistant", "two"), counted(9_000), said("user", "gone")])
    parent = write(tmp_path, first)
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 4, "end_byte_offset": 10}
    fork = write(
        tmp_path, numbered([meta(OTHER, forked_from_id=THREAD, history_base=base), said("user", "on")], 4), OTHER
    )
    rewind = write(tmp_path, numbered([meta(history_base=base), said("user", "again")], 4), rollout_id=THIRD)
    files = {THREAD: str(parent), OTHER: str(fork), THIRD: str(rewind)}
    texts = {
        path: [items.text(one.payload) for one in effective(chain_lines(str(path), files.get))]
        for path in files.values()
    }
    assert texts[str(fork)] == ["one", "two", "on"]
    assert texts[str(rewind)] == ["one", "two", "again"]
    own = effective(chain_lines(str(parent), files.get))
    assert [one.uuid for one in effective(chain_lines(str(fork), files.get))][:2] == [one.uuid for one in own][:2]
    history = History(str(fork))
    for one in chain_lines(str(fork), files.get):
        history.take(one)
    assert not history.measured
    assert read_meta(str(rewind)).thread_id == THREAD
    with pytest.raises(SessionNotFound, match="goes on from is gone"):
        effective(chain_lines(str(fork), lambda _: None))
    parent.write_bytes(b"{}\n")
    with pytest.raises(SessionNotFound, match="shorter than"):
        effective(chain_lines(str(fork), files.get))
    circle = write(tmp_path, [meta(history_base={"thread_id": THREAD, "end_byte_offset": 1})])
    with pytest.raises(NotATranscript, match="goes on from itself"):
        effective(chain_lines(str(circle), files.get))


def test_a_copied_fork_has_its_parents_ids(tmp_path: Path) -> None:
    """A legacy fork copies its parent's lines, its first one too: the thread that all began with is known by it."""
    lines = [meta(), said("user", "one"), said("assistant", "two")]
    parent = write(tmp_path, lines)
    fork = write(tmp_path, [meta(OTHER, forked_from_id=THREAD), *lines, said("user", "on")], OTHER)
    ids = [[one.uuid for one in effective(rollout_lines(str(path)))] for path in (parent, fork)]
    assert ids[1][:2] == ids[0]


def test_turns_that_were_rolled_back_are_gone(tmp_path: Path) -> None:
    """What Codex calls a turn begins with a user's message, not with the harness's."""
    lines = [meta(), said("user", "<environment_context>"), said("user", "a"), said("assistant", "b")]
    lines += [said("user", "<environment_context>"), said("user", "c"), said("assistant", "d")]
    for count, left in ((0, 6), (1, 4), (2, 1), (9, 1)):
        path = write(tmp_path, [*lines, event("thread_rolled_back", num_turns=count)])
        assert len(effective(rollout_lines(str(path)))) == left


def test_packed_rollouts_are_read_or_said_to_be_packed(tmp_path: Path) -> None:
    """Without the optional package the message names it; with it the lines are the same."""
    plain = write(tmp_path, [meta(), said("user", "one")])
    packed = plain.with_suffix(".jsonl.zst")
    try:
        import zstandard
    except ImportError:
        packed.write_bytes(b"\x28\xb5\x2f\xfd")
        with pytest.raises(SessionNotFound, match="compressed"):
            list(rollout_lines(str(packed)))
        return
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    assert [one.record for one in rollout_lines(str(packed))] == [one.record for one in rollout_lines(str(plain))]
    packed.write_bytes(b"garbage")
    with pytest.raises(SessionNotFound, match="can't be read"):
        list(rollout_lines(str(packed)))


def test_memory_is_bounded_by_what_is_live(tmp_path: Path) -> None:
    """Hundreds of megabytes before the last compaction, and a line without end, are read in what one line may take."""
    path = write(tmp_path, [meta()])
    text = "x" * 1_000_000
    with path.open("ab") as stream:
        for number in range(30):
            for one in [said("user", f"{number}"), *(call(f"{number}-{n}", text) for n in range(5))]:
                stream.write(json.dumps(one).encode() + b"\n")
            stream.write(json.dumps(compacted([said("user", f"left {number}")])).encode() + b"\n")
        stream.seek(200 * 1024 * 1024, 1)  # a hole: a line of NULs that no memory is spent on
        stream.write(b"\n" + json.dumps(output("1", "end")).encode() + b"\n")
    script = (
        "import resource, sys\n"
        "from resume_hooks.parts.codex.transcripts.as_records import as_records\n"
        "from resume_hooks.parts.codex.transcripts.history import History\n"
        "from resume_hooks.parts.codex.transcripts.lines import rollout_lines\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = peak(); history = History(); [history.take(line) for line in rollout_lines(sys.argv[1])]\n"
        "print(len(history.items))\n"
        "print(sum(1 for _ in as_records(rollout_lines(sys.argv[1]), 'x')), peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    count, converted, grown = map(int, done.stdout.split())
    assert (count, converted) == (2, 30 * 8 + 1)
    assert grown < GROWTH


def test_what_an_item_says() -> None:
    """Arguments as objects, outputs as parts whatever their form, requests without what an editor put before them."""
    assert items.arguments(call("1", "ls")["payload"]) == {"cmd": "ls"}
    assert items.arguments(item("custom_tool_call", name="exec", input="code")["payload"]) == {"input": "code"}
    assert items.arguments(item("function_call", arguments="{not json")["payload"]) == {"input": "{not json"}
    assert items.arguments(item("local_shell_call", action={"command": ["ls"]})["payload"]) == {"command": ["ls"]}
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:"}]
    assert items.text(output("1", parts)["payload"]) == "a"
    assert items.text(output("1", {"content": "b", "success": True})["payload"]) == "b"
    asked = said("user", f"# Context from my IDE setup:\n\n{items.REQUEST}\nfix it\n")["payload"]
    assert items.request_text(asked) == "fix it"
    assert items.is_prompt(asked)
    assert not items.is_prompt(said("user", f"{items.SUMMARY} and so on")["payload"])
