"""The recorded sessions: those of both corpora, and damaged copies of them.

A fixed seed chooses the copies.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

UUID_PATTERN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CLAUDE, CODEX = "claude", "codex"

MAX_BYTES_FOR_ALL_STEPS = 700_000
"""The maximum size in bytes of a session for which every scenario is recorded. For a larger
session, only the main scenarios are recorded."""

MAX_DAMAGED_BYTES = 300_000
RANDOM_SEED = 51


class Session(NamedTuple):
    """A session: its content, its id, and the files beside it.

    ``name`` identifies the session in the record. ``path_in_home`` is the path of the session's file relative to the
    home, with ``{key}`` instead of the name of the project folder. ``companion_files`` maps the relative
    path of each file beside it to the file in the corpus.
    """

    agent: str
    name: str
    session_id: str
    path_in_home: str
    content: bytes
    companion_files: dict[str, Path]


def read_claude_sessions(corpus: Path) -> list[Session]:
    """Return the conversations of the corpus with their sub-agents, sorted by name."""
    sessions: list[Session] = []
    for path in sorted(corpus.rglob("*.jsonl")):
        folders = path.relative_to(corpus).parts[:-1]
        is_companion = path.name.startswith("agent-") or any(
            UUID_PATTERN.fullmatch(part) for part in folders
        )
        if path.stat().st_size and not is_companion:
            sessions.append(_read_claude_session(path, corpus, len(sessions)))
    return sessions


def _read_claude_session(path: Path, corpus: Path, number: int) -> Session:
    is_named_by_id = UUID_PATTERN.fullmatch(path.stem) is not None
    session_id = path.stem if is_named_by_id else f"c0c0{number:04x}-0000-4000-8000-{number:012x}"
    folder = ".claude/projects/{key}"
    companion_files = {}
    for beside in sorted(path.with_suffix("").rglob("*")):
        if beside.is_file():
            companion_files[f"{folder}/{beside.relative_to(path.parent)}"] = beside
    for beside in sorted(path.parent.glob("agent-*.jsonl")):
        if is_named_by_id and session_id.encode() in beside.read_bytes()[:4_096]:
            companion_files[f"{folder}/{beside.name}"] = beside
    name = f"{path.relative_to(corpus).parts[0]}/{path.stem[:13]}"
    if path.parent.parent.name.count(".") == 2:
        name = f"{path.parent.parent.name}/{path.stem[:13]}"
    return Session(
        CLAUDE, name, session_id, f"{folder}/{session_id}.jsonl", path.read_bytes(), companion_files
    )


def read_codex_sessions(corpus: Path) -> list[Session]:
    """Return the rollouts of the corpus, sorted by name.

    A rollout that a real client wrote comes with all other files of that client's home.
    """
    found = []
    for path in sorted(corpus.rglob("rollout-*.jsonl")):
        session_id = UUID_PATTERN.findall(path.name)[-1]
        companion_files = {}
        if "_cli_generated" in path.parts:
            home = next(parent for parent in path.parents if parent.parent.name == "_cli_generated")
            place = f".codex/{path.relative_to(home)}"
            for beside in sorted(home.rglob("*")):
                if beside.is_file() and beside != path:
                    companion_files[f".codex/{beside.relative_to(home)}"] = beside
            name = f"{home.name}/{session_id[:13]}"
        else:
            year, month, day = re.findall(r"\d+", path.name)[:3]
            place = f".codex/sessions/{year}/{month}/{day}/{path.name}"
            name = f"{path.parent.name}/{session_id[:13]}"
        found.append(Session(CODEX, name, session_id, place, path.read_bytes(), companion_files))
    return found


def choose_sessions_of_all_sizes(sessions: list[Session], count: int) -> list[Session]:
    """Return ``count`` sessions of different sizes. The largest sessions are left out."""
    by_size = sorted(sessions, key=lambda session: (len(session.content), session.name))
    small = [session for session in by_size if len(session.content) <= MAX_BYTES_FOR_ALL_STEPS]
    if len(small) <= count:
        return small
    step = (len(small) - 1) / (count - 1)
    return [small[round(step * number)] for number in range(count)]


def make_damaged_copies(sessions: list[Session], count: int) -> list[Session]:
    """Return ``count`` damaged copies of sessions.

    The kinds of damage are used in turn. Seeded random numbers choose the session and the damaged
    line.
    """
    random_source = random.Random(RANDOM_SEED)  # noqa: S311 - the same ones every time is the point
    candidates = [
        session for session in sessions if 2_000 < len(session.content) <= MAX_DAMAGED_BYTES
    ]
    kinds = list(DAMAGE_FUNCTIONS.items())
    made = []
    for number in range(count if candidates else 0):
        kind, damage = kinds[number % len(kinds)]
        session = random_source.choice(candidates)
        lines = session.content.split(b"\n")
        content = damage(lines, random_source)
        made.append(
            session._replace(name=f"mutant-{number:03d}-{kind}/{session.name}", content=content)
        )
    return made


DamageFunction = Callable[[list[bytes], random.Random], bytes]


def _choose_line_index(lines: list[bytes], random_source: random.Random) -> int:
    return random_source.randrange(max(1, len(lines) - 1))


def _truncate_file(lines: list[bytes], random_source: random.Random) -> bytes:
    whole = b"\n".join(lines)
    return whole[: random_source.randrange(len(whole) // 2, len(whole))]


def _cut_line_in_half(lines: list[bytes], random_source: random.Random) -> bytes:
    at = _choose_line_index(lines, random_source)
    lines[at] = lines[at][: len(lines[at]) // 2]
    return b"\n".join(lines)


def _remove_line(lines: list[bytes], random_source: random.Random) -> bytes:
    del lines[_choose_line_index(lines, random_source)]
    return b"\n".join(lines)


def _double_line(lines: list[bytes], random_source: random.Random) -> bytes:
    at = _choose_line_index(lines, random_source)
    lines.insert(_choose_line_index(lines, random_source), lines[at])
    return b"\n".join(lines)


def _insert_invalid_json(lines: list[bytes], random_source: random.Random) -> bytes:
    lines.insert(_choose_line_index(lines, random_source), b'{"type": "user", "uuid": nope]')
    return b"\n".join(lines)


def _insert_invalid_utf8(lines: list[bytes], random_source: random.Random) -> bytes:
    at = _choose_line_index(lines, random_source)
    lines[at] = lines[at].replace(b"e", b"\xff\xfe", 3)
    return b"\n".join(lines)


def _insert_nul_bytes(lines: list[bytes], random_source: random.Random) -> bytes:
    lines.insert(_choose_line_index(lines, random_source), b"\0" * 4_096)
    return b"\n".join(lines)


def _set_unknown_type(lines: list[bytes], random_source: random.Random) -> bytes:
    at = _choose_line_index(lines, random_source)
    lines[at] = re.sub(rb'"type": ?"[a-z_-]+"', b'"type":"never-heard-of"', lines[at])
    return b"\n".join(lines)


def _insert_huge_line(lines: list[bytes], random_source: random.Random) -> bytes:
    record = {"type": "system", "uuid": "huge", "content": "x" * 2_000_000}
    lines.insert(_choose_line_index(lines, random_source), json.dumps(record).encode())
    return b"\n".join(lines)


def _shuffle_lines(lines: list[bytes], random_source: random.Random) -> bytes:
    at = _choose_line_index(lines, random_source)
    some = lines[at : at + 12]
    random_source.shuffle(some)
    lines[at : at + 12] = some
    return b"\n".join(lines)


def _set_missing_parent(lines: list[bytes], random_source: random.Random) -> bytes:
    at = _choose_line_index(lines, random_source)
    lost = b'"parentUuid":"00000000-dead-4000-8000-000000000000"'
    lines[at] = re.sub(rb'"parentUuid": ?(?:null|"[^"]*")', lost, lines[at])
    return b"\n".join(lines)


def _set_own_uuid_as_parent(lines: list[bytes], random_source: random.Random) -> bytes:
    for at in range(_choose_line_index(lines, random_source), len(lines)):
        own = re.search(rb'"uuid": ?"([^"]+)"', lines[at])
        if own and b'"parentUuid"' in lines[at]:
            loop = b'"parentUuid":"' + own[1] + b'"'
            lines[at] = re.sub(rb'"parentUuid": ?(?:null|"[^"]*")', loop, lines[at])
            break
    return b"\n".join(lines)


def _set_values_of_wrong_types(lines: list[bytes], random_source: random.Random) -> bytes:
    at = _choose_line_index(lines, random_source)
    changed = re.sub(rb'"content": ?"', b'"content":7,"was":"', lines[at], count=1)
    lines[at] = re.sub(rb'"timestamp": ?"[^"]*"', b'"timestamp":[]', changed)
    return b"\n".join(lines)


def _remove_call_result(lines: list[bytes], random_source: random.Random) -> bytes:
    results = []
    for at, line in enumerate(lines):
        if b'"tool_result"' in line or b"_call_output" in line:
            results.append(at)
    if results:
        del lines[random_source.choice(results)]
    return b"\n".join(lines)


def _use_windows_line_ends(lines: list[bytes], _: random.Random) -> bytes:
    return b"\r\n".join(lines)


def _empty_file(_: list[bytes], __: random.Random) -> bytes:
    return b""


def _replace_by_blank_lines(_: list[bytes], __: random.Random) -> bytes:
    return b"\n\n\n"


def _insert_deeply_nested_line(lines: list[bytes], random_source: random.Random) -> bytes:
    lines.insert(
        _choose_line_index(lines, random_source),
        b'{"type":"user","uuid":"deep","message":' + b"[" * 3_000 + b"]" * 3_000 + b"}",
    )
    return b"\n".join(lines)


def _insert_non_object_lines(lines: list[bytes], random_source: random.Random) -> bytes:
    for value in (b"null", b"[]", b'"text"', b"17"):
        lines.insert(_choose_line_index(lines, random_source), value)
    return b"\n".join(lines)


DAMAGE_FUNCTIONS: dict[str, DamageFunction] = {
    "truncated": _truncate_file,
    "cut-line": _cut_line_in_half,
    "missing-line": _remove_line,
    "doubled-line": _double_line,
    "not-json": _insert_invalid_json,
    "not-utf8": _insert_invalid_utf8,
    "nul-bytes": _insert_nul_bytes,
    "unknown-type": _set_unknown_type,
    "huge-line": _insert_huge_line,
    "shuffled": _shuffle_lines,
    "lost-parents": _set_missing_parent,
    "own-parent": _set_own_uuid_as_parent,
    "wrong-types": _set_values_of_wrong_types,
    "unanswered-calls": _remove_call_result,
    "windows-ends": _use_windows_line_ends,
    "empty": _empty_file,
    "blank": _replace_by_blank_lines,
    "deep": _insert_deeply_nested_line,
    "wrong-roots": _insert_non_object_lines,
}
"""The kinds of damage by name. Each is a function that gets the lines of a file and a random
generator and returns the bytes of the damaged file."""


def select_sessions_by_name(sessions: Iterable[Session], name_part: str) -> list[Session]:
    """Return the sessions whose agent and name contain ``name_part``, or all sessions for ``""``."""
    return [session for session in sessions if name_part in f"{session.agent}/{session.name}"]
