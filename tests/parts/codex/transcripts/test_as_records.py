"""Tests of the conversion of a Codex thread to records of Claude Code."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import orjson
import pytest

from resume_hooks.errors import NotATranscript, ResumeHooksError, SessionNotFound
from resume_hooks.parts.codex.transcripts import items
from resume_hooks.parts.codex.transcripts.as_records import ENCRYPTED_SUMMARY_TEXT, convert_lines
from resume_hooks.parts.codex.transcripts.history import ThreadHistory
from resume_hooks.parts.codex.transcripts.lines import RolloutLine, read_rollout_lines
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.parts.codex.transcripts.segments import RolloutFinder, read_thread_lines
from resume_hooks.transcripts import records
from resume_hooks.transcripts.context_size import measure_chain
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from tests.parts.codex.rollouts import (
    OTHER_THREAD_ID,
    THIRD_THREAD_ID,
    THREAD_ID,
    Line,
    call_line,
    codex_rollouts,
    compaction_line,
    damage_lines,
    event_line,
    every_rollout,
    find_rollout_in_corpus,
    goal_event_line,
    goal_note_line,
    item_line,
    items_for_model,
    message_line,
    meta_line,
    number_lines,
    output_line,
    rollout_line,
    token_count_line,
    write_rollout,
)

PATCH_TEXT = """*** Begin Patch
*** Add File: /p/new.py
+one
+two
*** Update File: /p/old.py
@@
 kept
-was
+is
*** End Patch
"""


def convert_rollout(path: Path, target: Path) -> Transcript:
    """Convert a rollout, and return the transcript that our reader opens from the result."""
    found = convert_lines(read_thread_lines(str(path), find_rollout_in_corpus), THREAD_ID)
    target.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in found))
    return scan_transcript(str(target))


def _read_history(
    path: Path, find_rollout: RolloutFinder = find_rollout_in_corpus
) -> ThreadHistory:
    history = ThreadHistory(str(path))
    for one in read_thread_lines(str(path), find_rollout):
        history.add_line(one)
    return history


def converted_records(tmp_path: Path, lines: Iterable[Line]) -> list[Record]:
    """Write a rollout with these lines and return the records that it is converted to."""
    return list(convert_lines(read_rollout_lines(str(write_rollout(tmp_path, lines))), THREAD_ID))


def texts_of_records(rows: Iterable[Record]) -> list[str]:
    """Return the text of each record that has any text."""
    return [records.join_text_blocks(record) for record in rows if records.join_text_blocks(record)]


@every_rollout
def test_live_records_match_the_request(rollout: Path, tmp_path: Path) -> None:
    """The converted records contain every text, tool call and output that Codex would send to the model.

    The records also contain the last token count of the rollout.
    """
    history = _read_history(rollout)
    transcript = convert_rollout(rollout, tmp_path / "a.jsonl")
    live = [transcript.read_record(node) for node in transcript.chain]
    spoken = "\n".join(records.join_text_blocks(record) for record in live)
    thoughts = {block.get("thinking") for record in live for block in records.list_blocks(record)}
    for one in history.items:
        if items.item_type(one.payload) == items.MESSAGE_TYPE:
            for part in items.content_parts(one.payload):
                text = records.get_string(part, "text")
                assert (
                    not text.strip()
                    or text in spoken
                    or text.lstrip().startswith(("<image", "</image", "#"))
                )
        elif items.item_type(one.payload) == items.REASONING_TYPE and items.item_text(one.payload):
            assert items.item_text(one.payload) in thoughts
    pairs = items.pair_calls_with_outputs([one.payload for one in history.items])
    own = {
        name: answer for name, (_, answer) in transcript.nodes_by_call_id.items() if name in pairs
    }
    assert own.keys() == pairs.keys()
    assert [name for name, pair in pairs.items() if pair.output_index < 0] == [
        n for n, answer in own.items() if not answer
    ]
    assert len({node.uuid for node in transcript.nodes}) == len(transcript.nodes)
    context, _ = measure_chain(transcript.path, transcript.chain)
    assert not context.is_measured or context.tokens - context.added_tokens == history.token_count
    assert context.is_measured or any(node.is_boundary for node in transcript.nodes)
    answers = [record["uuid"] for record in live if record["type"] == "assistant"]
    assert answers == [one.uuid for one in history.items if one.uuid in set(answers)]
    again = convert_rollout(rollout, tmp_path / "b.jsonl")
    assert [node.uuid for node in again.nodes] == [node.uuid for node in transcript.nodes]


def test_messages_have_the_right_speaker(tmp_path: Path) -> None:
    """A text that the harness or the editor added becomes a meta record.

    A prompt becomes one user record, even if an event repeats its text.
    """
    asked = f"# Context from my IDE setup:\n\n{items.REQUEST_HEADING}\nfix it\n"
    found = converted_records(
        tmp_path,
        [
            meta_line(),
            message_line("developer", "rules"),
            message_line("user", "<environment_context>here"),
            message_line("user", asked),
            event_line("user_message", message=asked),
            item_line(
                "reasoning",
                summary=[{"type": "summary_text", "text": "hm"}],
                encrypted_content="xxx",
            ),
            item_line("reasoning", summary=[], encrypted_content="xxx"),
            message_line("assistant", "done"),
            event_line("agent_message", message="done"),
            token_count_line(9_000),
        ],
    )
    kinds = [
        (record["type"], bool(record.get("isMeta")), records.join_text_blocks(record))
        for record in found
    ]
    assert kinds == [
        ("user", True, "rules"),
        ("user", True, "<environment_context>here"),
        ("user", True, asked),
        ("user", False, "fix it"),
        ("assistant", False, ""),
        ("assistant", False, "done"),
    ]
    assert [record["parentUuid"] for record in found] == [
        None,
        *(record["uuid"] for record in found[:-1]),
    ]
    assert records.read_token_counts(found[-1]) == (8_980, 9_000)
    assert found[-1]["cwd"] == "/home/user/proj"
    assert found[-1]["version"] == "Codex 0.169.0"


def test_compactions_and_rollbacks_are_converted(tmp_path: Path) -> None:
    """After the conversion, the live records are those that Codex keeps after a compaction and a rollback.

    Prompts that were compacted or rolled back are also converted. ``ENCRYPTED_SUMMARY_TEXT``
    replaces an encrypted summary.
    """
    left = [
        message_line("developer", "rules"),
        message_line("user", "first"),
        item_line("compaction", encrypted_content="xxx"),
    ]
    lines = [
        meta_line(),
        message_line("user", "first"),
        message_line("assistant", "one"),
        compaction_line(left),
        message_line("user", "second"),
    ]
    lines += [
        message_line("assistant", "two"),
        event_line("thread_rolled_back", num_turns=1),
        message_line("user", "third"),
    ]
    path = write_rollout(tmp_path, lines)
    transcript = convert_rollout(path, tmp_path / "a.jsonl")
    live = [transcript.read_record(node) for node in transcript.chain]
    assert texts_of_records(live) == ["rules", f"first\n{ENCRYPTED_SUMMARY_TEXT}", "third"]
    assert [turn.nodes[0].line_number for turn in transcript.turns] == [
        transcript.chain[-1].line_number
    ]
    assert sum(node.is_prompt for node in transcript.nodes) == 3


def test_tool_calls_are_converted_to_those_of_claude_code(tmp_path: Path) -> None:
    """Calls of Codex's tools become calls of Claude Code's tools. For example, ``shell`` becomes Bash.

    A patch becomes Write and Edit calls. A script that runs one known tool becomes a call of that
    tool, and other scripts stay ``exec`` calls. Exit codes, lists of texts and images stay in the
    results.
    """
    picture = f"data:image/png;base64,{base64.b64encode(b'x' * 30).decode()}"
    script = f"const patch = {json.dumps(PATCH_TEXT)};\ntext(await tools.apply_patch(patch));"
    lines = [
        meta_line(),
        item_line(
            "function_call",
            name="shell",
            arguments='{"command":["bash","-lc","ls -la"]}',
            call_id="1",
        ),
        output_line("1", '{"output":"gone","metadata":{"exit_code":2}}'),
        item_line("custom_tool_call", name="apply_patch", input=PATCH_TEXT, call_id="2"),
        output_line("2", "Exit code: 0\nSuccess", kind="custom_tool_call_output"),
        item_line("custom_tool_call", name="exec", input=script, call_id="3"),
        output_line(
            "3",
            [{"type": "input_text", "text": "ok"}, {"type": "input_image", "image_url": picture}],
        ),
        item_line(
            "custom_tool_call",
            name="exec",
            input='text(await tools.exec_command({cmd:"pwd"}))',
            call_id="4",
        ),
        item_line(
            "custom_tool_call",
            name="exec",
            input="const a = await tools.a(), b = await tools.b();",
            call_id="5",
        ),
        item_line(
            "function_call",
            name="update_plan",
            arguments='{"plan":[{"step":"s","status":"pending"}]}',
            call_id="6",
        ),
        item_line("function_call", name="look", namespace="mcp__x", arguments="{}", call_id="7"),
        item_line("web_search_call", id="ws", action={"type": "search", "query": "q"}),
        call_line("8", "make"),
        output_line("8", "Chunk ID: 1\nProcess exited with code 1\nOutput:\nno"),
    ]
    found = converted_records(tmp_path, lines)
    calls = [
        (block["id"], block["name"], block["input"])
        for record in found
        for block in records.list_calls(record)
    ]
    edit = {"file_path": "/p/old.py", "old_string": "kept\nwas", "new_string": "kept\nis"}
    assert calls == [
        ("1", "Bash", {"command": "ls -la"}),
        ("2", "Write", {"file_path": "/p/new.py", "content": "one\ntwo"}),
        ("2.2", "Edit", edit),
        ("3", "Write", {"file_path": "/p/new.py", "content": "one\ntwo"}),
        ("3.2", "Edit", edit),
        ("4", "Bash", {"command": "pwd"}),
        ("5", "exec", {"code": "const a = await tools.a(), b = await tools.b();"}),
        ("6", "TodoWrite", {"todos": [{"content": "s", "status": "pending"}]}),
        ("7", "mcp__x__look", {}),
        ("8", "Bash", {"command": "make"}),
    ]
    answers = {
        block["tool_use_id"]: block for record in found for block in records.list_results(record)
    }
    assert answers.keys() == {"1", "2", "2.2", "3", "3.2", "8"}
    assert (answers["1"]["content"], answers["1"]["is_error"]) == ("Exit code 2\ngone", True)
    assert (answers["8"]["content"], answers["8"]["is_error"]) == ("Exit code 1\nno", True)
    assert "is_error" not in answers["2"]
    assert [block["type"] for block in answers["3"]["content"]] == ["text", "image"]
    assert answers["3"]["content"][1]["source"]["media_type"] == "image/png"


def test_a_command_in_a_script_has_its_folder_and_exit_status(tmp_path: Path) -> None:
    """A command in a script becomes a Bash call with its working folder. Its result has the exit code.

    The exit code is found even if the script prints the tool's whole JSON answer.
    """
    script = 'const r = await tools.exec_command({cmd:"make","workdir":"/p/lib"});\ntext(JSON.stringify(r));'
    whole = '{"chunk_id":"1","wall_time_seconds":0.2,"exit_code":2,"output":"one\\ntwo\\n"}'
    head = {"type": "input_text", "text": "Script completed\nWall time 0.2 seconds\nOutput:\n"}
    failed = {"type": "input_text", "text": "Script failed\nWall time 0.0 seconds\nOutput:\n"}
    lines = [
        meta_line(),
        item_line("custom_tool_call", name="exec", input=script, call_id="1"),
        output_line("1", [head, {"type": "input_text", "text": whole}]),
        call_line("2", "ls"),
        output_line("2", [failed, {"type": "input_text", "text": "Script error:\nno"}]),
    ]
    found = converted_records(tmp_path, lines)
    calls = [block["input"] for record in found for block in records.list_calls(record)]
    assert calls[0] == {"command": "make", "workdir": "/p/lib"}
    first, second = (block for record in found for block in records.list_results(record))
    assert first["is_error"] is True
    assert records.result_text(first) == "Exit code 2\none\ntwo\n"
    assert second["is_error"] is True


OUTPUT_HEADER = (
    "Chunk ID: ba3684\nWall time: 0.9855 seconds\nProcess exited with code 0\n"
    "Original token count: 36\nOutput:\n"
)


@pytest.mark.parametrize(
    ("parts", "text", "status"),
    [
        ([f"{OUTPUT_HEADER}done"], "done", 0),
        (["Exit code: 2\nWall time: 0 seconds\nTotal output lines: 1\nOutput:\nno"], "Exit code 2\nno", 2),
        (["Script completed\nWall time 1.0 seconds\nOutput:\n", "all of it"], "all of it", None),
        (["Script completed\nWall time 1.0 seconds\nOutput:\n", "no\n", "exit:1"], "Exit code 1\nno\n\nexit:1", 1),
        (["Script completed\nOutput:\n", "yes", "EXIT_CODE=0"], "yes\nEXIT_CODE=0", 0),
        (["Script completed\nOutput:\n"], "", None),
        (["Wall clock: 3\nOutput:\nof the command"], "Wall clock: 3\nOutput:\nof the command", None),
    ],
)  # fmt: skip
def test_a_converted_output_lacks_the_header_of_codex(
    tmp_path: Path, parts: list[str], text: str, status: int | None
) -> None:
    """The header that Codex writes is removed from a converted output, but the exit status is kept.

    The status is found even if only the script printed it.
    """
    content = [{"type": "input_text", "text": part} for part in parts]
    found = converted_records(
        tmp_path, [meta_line(), call_line("1", "make"), output_line("1", content)]
    )
    (answer,) = (block for record in found for block in records.list_results(record))
    assert records.result_text(answer) == text
    assert answer.get("exitStatus") == status


def test_a_script_of_several_commands_becomes_several_calls(tmp_path: Path) -> None:
    """A script that runs two literal commands becomes two Bash calls.

    A script that builds its commands in a loop stays an ``exec`` call.
    """
    script = (
        'const rs = await Promise.all([tools.exec_command({cmd:"make","workdir":"/p/a"}),'
        'tools.exec_command({cmd:"git push","workdir":"/p/b"})]); rs.forEach(text)'
    )
    head = {"type": "input_text", "text": "Script completed\nOutput:\n"}
    parts = [
        {"type": "input_text", "text": '{"chunk_id":"1","exit_code":2,"output":"no rule"}'},
        {"type": "input_text", "text": '{"chunk_id":"2","exit_code":0,"output":"pushed"}'},
    ]
    built = "for (const n of [1, 2]) text(await tools.exec_command({cmd:`make ${n}`}));"
    lines = [
        meta_line(),
        item_line("custom_tool_call", name="exec", input=script, call_id="1"),
        output_line("1", [head, *parts]),
        item_line("custom_tool_call", name="exec", input=built, call_id="2"),
    ]
    found = converted_records(tmp_path, lines)
    calls = [
        (block["name"], block["input"]) for record in found for block in records.list_calls(record)
    ]
    assert calls == [
        ("Bash", {"command": "make", "workdir": "/p/a"}),
        ("Bash", {"command": "git push", "workdir": "/p/b"}),
        ("exec", {"code": built}),
    ]
    first, second = (block for record in found for block in records.list_results(record))
    assert first["is_error"] is True
    assert "is_error" not in second
    assert records.result_text(first).endswith("no rule")
    assert records.result_text(second).endswith("pushed")


@pytest.mark.skipif(
    not codex_rollouts(), reason="the corpus of rollouts is missing: set RESUME_HOOKS_CODEX"
)
def test_a_damaged_rollout_is_converted_or_refused(tmp_path: Path) -> None:
    """Each of 200 damaged rollouts is converted to a complete transcript, or one of our errors is raised."""
    chance = random.Random(5)
    small = [path for path in codex_rollouts() if path.stat().st_size < 250_000]
    for number in range(200):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(
            b"\n".join(damage_lines(chance.choice(small).read_bytes().splitlines(), chance))
        )
        try:
            transcript = convert_rollout(path, tmp_path / "out.jsonl")
            left = [
                one.payload
                for one in items_for_model(read_thread_lines(str(path), find_rollout_in_corpus))
            ]
        except ResumeHooksError:
            continue
        items.pair_calls_with_outputs(left)
        assert all(
            isinstance(items.item_text(one), str) and items.count_item_characters(one)
            for one in left
        )
        assert not transcript.damaged_lines
        assert len({node.uuid for node in transcript.nodes}) == len(transcript.nodes)
        assert all(transcript.read_record(node)["uuid"] == node.uuid for node in transcript.chain)


# Maximum growth of peak memory in bytes. Reading a line of 64 MB needs about this much.
MAX_MEMORY_GROWTH_BYTES = 200 * 1024 * 1024


def _is_users_own_message(message: Line) -> bool:
    texts = [part.get("text") or "" for part in message.get("content") or []]
    return message.get("role") == "user" and not any(
        text.lstrip().startswith(items.HARNESS_PREFIXES) for text in texts
    )


def _compute_reference_items(lines: list[Line]) -> list[Line]:
    history: list[Line] = []
    for one in lines:
        kind, payload = one["type"], one.get("payload") or {}
        if kind == "response_item" and payload.get("type") != "ghost_snapshot":
            history.append(payload)
        elif kind == "compacted" and payload.get("replacement_history") is not None:
            history = list(payload["replacement_history"])
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            opening = [place for place, each in enumerate(history) if _is_users_own_message(each)]
            count = payload["num_turns"]
            if count and opening:
                history = history[: opening[-count] if count <= len(opening) else opening[0]]
    return history


def _read_lines(path: Path) -> list[Line]:
    """Read the lines of a thread in the simplest way, as a reference for the real reader."""
    own = [json.loads(raw) for raw in path.read_bytes().splitlines()]
    base = own[0]["payload"].get("history_base")
    if base is None:
        return own
    before = _read_lines(Path(str(find_rollout_in_corpus(base["thread_id"]))))
    return [one for one in before if one["ordinal"] < base["end_ordinal_exclusive"]] + own


@every_rollout
def test_the_history_has_the_items_of_the_reference_reader(rollout: Path) -> None:
    """The history of each real rollout has the same items that the simple reference reader returns.

    Each item has a unique id. The history's token count is the last one in the rollout.
    """
    lines = _read_lines(rollout)
    history = _read_history(rollout)
    if all("replacement_history" in one["payload"] for one in lines if one["type"] == "compacted"):
        assert [one.payload for one in history.items] == _compute_reference_items(lines)
    assert len({one.uuid for one in history.items}) == len(history.items)
    assert [one.uuid for one in _read_history(rollout).items] == [one.uuid for one in history.items]
    infos = [
        one["payload"].get("info") for one in lines if one["payload"].get("type") == "token_count"
    ]
    assert history.has_token_count_from_client
    assert (
        history.token_count == [one["last_token_usage"]["total_tokens"] for one in infos if one][-1]
    )
    found = items.pair_calls_with_outputs([one.payload for one in history.items])
    assert all(
        pair.call_index < pair.output_index for pair in found.values() if pair.output_index >= 0
    )


def test_an_old_compaction_keeps_prompts_and_its_summary(tmp_path: Path) -> None:
    """After a compaction by an old client, the history contains the earlier prompts and the summary.

    The conversion joins them in one record that is marked as a summary.
    """
    lines = [
        meta_line(),
        message_line("user", "<environment_context> x"),
        message_line("user", "one"),
        message_line("assistant", "two"),
        rollout_line("compacted", {"message": f"{items.SUMMARY_PREFIX}: done"}),
        message_line("user", "three"),
    ]
    left = items_for_model(read_rollout_lines(str(write_rollout(tmp_path, lines))))
    assert [items.item_text(one.payload) for one in left] == [
        "one",
        f"{items.SUMMARY_PREFIX}: done",
        "three",
    ]
    told = converted_records(tmp_path, lines)[-2]
    assert (records.join_text_blocks(told), told["isCompactSummary"]) == (
        f"one\n{items.SUMMARY_PREFIX}: done",
        True,
    )


def test_forks_and_rewinds_include_lines_of_their_parent(tmp_path: Path) -> None:
    """A fork or a rewind starts with the lines of its parent before the ordinal in ``history_base``.

    The parent's items keep their ids in the fork. The parent's token count is not used. Reading
    fails if the parent is missing, is shorter than stated, or is its own parent.
    """
    first = number_lines(
        [
            meta_line(),
            message_line("user", "one"),
            message_line("assistant", "two"),
            token_count_line(9_000),
            message_line("user", "gone"),
        ]
    )
    parent = write_rollout(tmp_path, first)
    base = {"thread_id": THREAD_ID, "end_ordinal_exclusive": 4, "end_byte_offset": 10}
    fork = write_rollout(
        tmp_path,
        number_lines(
            [
                meta_line(OTHER_THREAD_ID, forked_from_id=THREAD_ID, history_base=base),
                message_line("user", "on"),
            ],
            4,
        ),
        OTHER_THREAD_ID,
    )
    rewind = write_rollout(
        tmp_path,
        number_lines([meta_line(history_base=base), message_line("user", "again")], 4),
        rollout_id=THIRD_THREAD_ID,
    )
    files = {THREAD_ID: str(parent), OTHER_THREAD_ID: str(fork), THIRD_THREAD_ID: str(rewind)}
    texts = {
        path: [
            items.item_text(one.payload)
            for one in items_for_model(read_thread_lines(str(path), files.get))
        ]
        for path in files.values()
    }
    assert texts[str(fork)] == ["one", "two", "on"]
    assert texts[str(rewind)] == ["one", "two", "again"]
    own = items_for_model(read_thread_lines(str(parent), files.get))
    assert [one.uuid for one in items_for_model(read_thread_lines(str(fork), files.get))][:2] == [
        one.uuid for one in own
    ][:2]
    assert not _read_history(fork, files.get).has_token_count_from_client
    assert read_meta(str(rewind)).thread_id == THREAD_ID
    with pytest.raises(SessionNotFound, match=r"continues the rollout .*, which is gone"):
        items_for_model(read_thread_lines(str(fork), lambda _: None))
    parent.write_bytes(b"{}\n")
    with pytest.raises(SessionNotFound, match="is too short"):
        items_for_model(read_thread_lines(str(fork), files.get))
    circle = write_rollout(
        tmp_path, [meta_line(history_base={"thread_id": THREAD_ID, "end_byte_offset": 1})]
    )
    with pytest.raises(NotATranscript, match="continues itself"):
        items_for_model(read_thread_lines(str(circle), files.get))


def test_a_copied_fork_has_its_parents_ids(tmp_path: Path) -> None:
    """If an old fork copied all lines of its parent, the copied items have the same ids as in the parent."""
    lines = [meta_line(), message_line("user", "one"), message_line("assistant", "two")]
    parent = write_rollout(tmp_path, lines)
    fork = write_rollout(
        tmp_path,
        [meta_line(OTHER_THREAD_ID, forked_from_id=THREAD_ID), *lines, message_line("user", "on")],
        OTHER_THREAD_ID,
    )
    ids = [
        [one.uuid for one in items_for_model(read_rollout_lines(str(path)))]
        for path in (parent, fork)
    ]
    assert ids[1][:2] == ids[0]


def test_rolled_back_turns_are_removed(tmp_path: Path) -> None:
    """A rollback removes the stated number of turns from the history.

    A turn starts with a message of the user, not with a message of the harness.
    """
    lines = [
        meta_line(),
        message_line("user", "<environment_context>"),
        message_line("user", "a"),
        message_line("assistant", "b"),
    ]
    lines += [
        message_line("user", "<environment_context>"),
        message_line("user", "c"),
        message_line("assistant", "d"),
    ]
    for count, left in ((0, 6), (1, 4), (2, 1), (9, 1)):
        path = write_rollout(tmp_path, [*lines, event_line("thread_rolled_back", num_turns=count)])
        assert len(items_for_model(read_rollout_lines(str(path)))) == left


def test_compressed_rollouts_need_the_optional_package(tmp_path: Path) -> None:
    """If ``zstandard`` is installed, a compressed rollout has the same lines as a plain rollout.

    Without the package, reading a compressed rollout raises SessionNotFound.
    """
    plain = write_rollout(tmp_path, [meta_line(), message_line("user", "one")])
    packed = plain.with_suffix(".jsonl.zst")
    try:
        import zstandard
    except ImportError:
        packed.write_bytes(b"\x28\xb5\x2f\xfd")
        with pytest.raises(SessionNotFound, match="compressed"):
            list(read_rollout_lines(str(packed)))
        return
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    assert [one.record for one in read_rollout_lines(str(packed))] == [
        one.record for one in read_rollout_lines(str(plain))
    ]
    packed.write_bytes(b"garbage")
    with pytest.raises(SessionNotFound, match="can't be read"):
        list(read_rollout_lines(str(packed)))


def test_a_large_rollout_is_read_with_little_memory(tmp_path: Path) -> None:
    """Reading and converting a rollout of 350 MB takes less than 200 MB of memory.

    The rollout has 30 compactions and a line of 200 MB that contains only NUL bytes.
    """
    path = write_rollout(tmp_path, [meta_line()])
    text = "x" * 1_000_000
    with path.open("ab") as stream:
        for number in range(30):
            for one in [
                message_line("user", f"{number}"),
                *(call_line(f"{number}-{n}", text) for n in range(5)),
            ]:
                stream.write(json.dumps(one).encode() + b"\n")
            stream.write(
                json.dumps(compaction_line([message_line("user", f"left {number}")])).encode()
                + b"\n"
            )
        # The hole in the file is read as a line of NUL bytes.
        stream.seek(200 * 1024 * 1024, 1)
        stream.write(b"\n" + json.dumps(output_line("1", "end")).encode() + b"\n")
    script = (
        "import resource, sys\n"
        "from resume_hooks.parts.codex.transcripts.as_records import convert_lines\n"
        "from resume_hooks.parts.codex.transcripts.history import ThreadHistory\n"
        "from resume_hooks.parts.codex.transcripts.lines import read_rollout_lines\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = peak(); history = ThreadHistory()\n"
        "[history.add_line(line) for line in read_rollout_lines(sys.argv[1])]\n"
        "print(len(history.items))\n"
        "print(sum(1 for _ in convert_lines(read_rollout_lines(sys.argv[1]), 'x')), peak() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    count, converted, grown = map(int, done.stdout.split())
    assert (count, converted) == (2, 30 * 8 + 1)
    assert grown < MAX_MEMORY_GROWTH_BYTES


def test_a_goal_becomes_a_command_and_a_state() -> None:
    """A change of the goal becomes a ``/goal`` command and a record of the goal's state.

    The command contains the text that the user typed. The state follows what the user set or the
    model reported, until the user clears the goal.
    """
    reported = [
        item_line(
            "function_call", 4, name="update_goal", arguments='{"status": "complete"}', call_id="1"
        ),
        output_line("1", json.dumps({"goal": {"objective": 'fix "it"', "status": "complete"}}), 5),
        output_line("2", json.dumps({"goal": {"objective": "obey me", "status": "active"}}), 6),
    ]
    lines = [
        goal_note_line('User set the goal: "fix \\"it\\""\nUser set goal status: "active".', 1),
        goal_event_line('fix "it"', "active", 2),
        goal_event_line("", "paused", 3),
        *reported,
        goal_note_line('User set goal status: "paused".', 7),
        goal_note_line("User cleared the goal.", 8),
        message_line("user", "later", 9),
    ]
    found = list(
        convert_lines([RolloutLine(one, "", at, 0) for at, one in enumerate(lines)], THREAD_ID)
    )
    states = [
        (one.get("goal"), one.get("status"))
        for one in found
        if one.get("subtype") == records.GOAL_SUBTYPE
    ]
    assert states == [('fix "it"', "active"), ('fix "it"', "complete"), (None, None)]
    typed = [
        records.prompt_text(one)
        for one in found
        if records.get_kind(one) == records.USER and records.join_text_blocks(one)
    ]
    assert typed == ['/goal fix "it"', "/goal paused", "/goal clear", "later"]
    assert [records.join_text_blocks(one) for one in found if records.is_prompt(one)][-1] == "later"


def test_every_form_of_arguments_and_outputs_is_read() -> None:
    """Tool arguments are returned as a dictionary and outputs as text, whichever form Codex wrote.

    The text of a request does not include the editor's additions. A summary is not a prompt.
    """
    assert items.call_arguments(call_line("1", "ls")["payload"]) == {"cmd": "ls"}
    assert items.call_arguments(
        item_line("custom_tool_call", name="exec", input="code")["payload"]
    ) == {"input": "code"}
    assert items.call_arguments(item_line("function_call", arguments="{not json")["payload"]) == {
        "input": "{not json"
    }
    assert items.call_arguments(
        item_line("local_shell_call", action={"command": ["ls"]})["payload"]
    ) == {"command": ["ls"]}
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:"}]
    assert items.item_text(output_line("1", parts)["payload"]) == "a"
    assert items.item_text(output_line("1", {"content": "b", "success": True})["payload"]) == "b"
    asked = message_line(
        "user", f"# Context from my IDE setup:\n\n{items.REQUEST_HEADING}\nfix it\n"
    )["payload"]
    assert items.request_text(asked) == "fix it"
    assert items.is_prompt(asked)
    assert not items.is_prompt(message_line("user", f"{items.SUMMARY_PREFIX} and so on")["payload"])


def test_each_hunk_of_a_patch_is_a_separate_edit(tmp_path: Path) -> None:
    """A patch with two hunks becomes one MultiEdit call with a separate edit for each hunk."""
    patch = (
        "*** Begin Patch\n*** Update File: /p/a.py\n*** Move to: /p/b.py\n@@ def f():\n one\n-two\n"
        "+three\n@@\n+ten\n eleven\n*** End of File\n*** End Patch"
    )
    lines = [
        meta_line(),
        message_line("user", "go"),
        item_line("custom_tool_call", name="apply_patch", input=patch, call_id="1"),
    ]
    (edit,) = (
        call for record in converted_records(tmp_path, lines) for call in records.list_calls(record)
    )
    assert (edit["name"], edit["input"]) == (
        "MultiEdit",
        {
            "file_path": "/p/a.py",
            "destination": "/p/b.py",
            "edits": [
                {"old_string": "one\ntwo", "new_string": "one\nthree"},
                {"old_string": "eleven", "new_string": "ten\neleven"},
            ],
        },
    )
