"""Measure how often the right or a wrong session is named as the writer of a line.

``python -m benchmarks.attribution.measure [--wrong]`` asks about every line of the rebuilt files,
and about lines of changes that no session made. The naive rule always names the session that edited
the file last. With ``--wrong``, the wrong answers are printed.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.attribution.replay import (
    NO_SESSIONS,
    RebuiltFile,
    SessionIds,
    read_commands,
    read_edits_by_file,
    rebuild_file,
    split_lines,
)
from resume_hooks.parts.attribution.line_search import EditFinder, parse_requested_line
from resume_hooks.parts.attribution.match_edits import find_edit_that_wrote_line
from resume_hooks.paths import Where
from resume_hooks.search.index.connect import OpenIndex, open_index
from resume_hooks.search.scope import Scope, find_files_in_scope
from resume_hooks.search.sources import Sources
from tests.builders import session_id
from tests.needs import corpus_folder, corpus_sessions

SEED = 36
REAL_LINE_KINDS = "sessions' lines", "lines of unknown hands"
ANSWER_COLUMNS = (
    "right",
    "wrong",
    "silent",
    "elsewhere",
    "command",
    "naive right",
    "naive wrong",
    "naive silent",
)
"""The headings of the columns with counts of answers, for our rule and for the naive rule.

``elsewhere`` and ``command`` count answers that a replay of edits cannot judge. ``elsewhere`` means
that the named session added the line in another checkout of the file. ``command`` means that a
shell command of the named session contains the line and the file's name.
"""

_WORKTREE_PATTERN = re.compile(r"^\.worktrees/[^/]+/")
PlantedChange = tuple[
    str, str, list[str], list[int]
    # The kind of change, the file's path, its lines, and the positions of the lines that no session
    # wrote.
]


def plant_changes(
    file: RebuiltFile, foreign_lines: list[str], rng: random.Random
) -> Iterator[PlantedChange]:
    """Yield changed versions of a file, with changes that no session made."""
    lines = file.lines
    bumped = [re.sub(r"\d+(?=\D*$)", lambda found: str(int(found[0]) + 1), line) for line in lines]
    indented = [re.sub(r"^[ \t]+", lambda found: found[0] * 2, line) for line in lines]
    for kind, changed in (("numbers bumped", bumped), ("formatter run", indented)):
        yield (
            kind,
            file.relative_path,
            changed,
            [place for place, line in enumerate(lines) if line != changed[place]],
        )
    at, start = rng.randrange(len(lines) + 1), rng.randrange(len(lines))
    trivial = [line for line in lines if sum(map(str.isalnum, line)) < 12] or [""]
    person_lines = [
        rng.choice(trivial) if place % 3 else f"    a person's own line {place} at {at}"
        for place in range(12)
    ]
    added = {
        "merge of others' lines": foreign_lines[: rng.randrange(10, 40)],
        "people's lines, most of them trivial": person_lines,
        "a session's lines, copied by a person": lines[start : start + 12],
        "removed by a session, restored by a person": [
            line
            for line in file.writers_by_line
            if file.writers_by_line[line] and line not in lines
        ][:12],
    }
    for kind, new in added.items():
        # If a copied line is beside its original, nobody knows which of them is the copy.
        if "copied" not in kind or not start - 1 <= at <= start + 13:
            yield (
                kind,
                file.relative_path,
                [*lines[:at], *new, *lines[at:]],
                [*range(at, at + len(new))],
            )
    yield "generated file", f"dist/{file.relative_path}", lines, [*range(len(lines))]


class AnswerCounter:
    """Counts the answers, separately for each half of the sessions and each kind of line."""

    def __init__(self, index: OpenIndex, scratch: Path, where: Where) -> None:
        self.counts: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        self.wrong: list[str] = []
        self._index, self._where = index, where
        self.added: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.commands: list[tuple[str, str]] = []
        self._folder = scratch / "work"

    def ask_for_writers(
        self,
        kind: str,
        file: RebuiltFile,
        relative_path: str,
        lines: list[str],
        writers_by_index: Mapping[int, SessionIds],
    ) -> None:
        """Ask for the writers of some lines of a file, and compare the answers with the real writers.

        ``writers_by_index`` maps the positions of the lines to the sessions that wrote them.
        """
        root = self._folder / str(zlib.crc32(file.root.encode()))
        path = root / relative_path
        for folder in (path.parent, root / ".git"):
            folder.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="")
        asked = parse_requested_line(f"{path}:1", "/", self._where)
        if asked is None or asked.file_lines != lines:
            raise ValueError(path)
        scope = Scope(file=asked.relative_path, include_helpers=True)
        entered = find_files_in_scope(self._index.db, scope, self._where)
        sources = Sources(self._index, entered.file_ids, self._where)
        edits = list(EditFinder(self._index, scope, entered, sources).find_edits(asked))
        counts = self.counts[zlib.crc32(file.first_editing_session.encode()) % 2, kind]
        for place, authors in writers_by_index.items():
            found = find_edit_that_wrote_line(lines, place + 1, edits).edit_record
            named = (
                {sources.session_id_of_posting(copy) for copy in sources.find_copies(found)}
                if found
                else set()
            )
            told = _judge_answer(named, authors)
            if told == "wrong" and kind in REAL_LINE_KINDS:
                told = self._judge_without_replay(named, path, relative_path, lines[place])
            counts[told] += 1
            naive_sessions = (
                file.last_editing_sessions if relative_path == file.relative_path else NO_SESSIONS
            )
            counts[f"naive {_judge_answer(naive_sessions, authors)}"] += 1
            if told == "wrong":
                self.wrong.append(
                    f"{kind}: {relative_path}: {lines[place]!r}: {sorted(named)}, not {sorted(authors)}"
                )

    def _judge_without_replay(
        self, named_sessions: set[str], path: Path, relative_path: str, line: str
    ) -> str:
        if named_sessions & self.added[_WORKTREE_PATTERN.sub("", relative_path), line]:
            return "elsewhere"
        file_commands = (
            command
            for session, command in self.commands
            if session in named_sessions and path.name in command
        )
        return (
            "command" if any(line in split_lines(command) for command in file_commands) else "wrong"
        )


def _judge_answer(named_sessions: set[str] | SessionIds, writers: SessionIds) -> str:
    return "silent" if not named_sessions else "right" if named_sessions & writers else "wrong"


def _copy_corpus(where: Where) -> dict[Path, str]:
    """Copy the corpus to a home. Return the session id of each transcript of the corpus."""
    ids: dict[Path, str] = {}
    for number, path in enumerate(corpus_sessions(), 1):
        home = Path(
            where.projects, re.sub(r"\W", "-", str(path.parent.relative_to(corpus_folder())))
        )
        helpers = [*path.with_suffix("").rglob("agent-*.jsonl")]
        (home / session_id(number) / "subagents").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, home / f"{session_id(number)}.jsonl")
        for helper in helpers:
            shutil.copyfile(helper, home / session_id(number) / "subagents" / helper.name)
        ids |= dict.fromkeys([path, *helpers], session_id(number))
    return ids


def main() -> int:
    """Print a row for each kind of line and each half of the sessions. Return 0."""
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="resume-hooks-attribution-") as scratch:
        where = Where({"HOME": scratch, "CLAUDE_CONFIG_DIR": f"{scratch}/.claude"})
        transcripts = _copy_corpus(where)
        steps = read_edits_by_file(transcripts)
        files = [
            file for place, each in sorted(steps.items()) if (file := rebuild_file(place, each))
        ]
        print(
            f"{len(files)} of {len(steps)} files rebuilt, {sum(len(file.lines) for file in files):,} lines"
        )
        with open_index(where) as index:
            measured = AnswerCounter(index, Path(scratch), where)
            measured.commands += read_commands(transcripts)
            rows = [
                (relative_path, line, step.sessions)
                for (_, relative_path), each in steps.items()
                for step in each
                for line in step.find_added_lines()
            ]
            rows += [
                (file.relative_path, line, frozenset(wrote))
                for file in files
                for line, wrote in file.writers_by_line.items()
            ]
            for relative_path, line, sessions in rows:
                measured.added[_WORKTREE_PATTERN.sub("", relative_path), line] |= sessions
            for file in files:
                for kind, wanted in zip(REAL_LINE_KINDS, (True, False), strict=True):
                    writers_by_index = {
                        place: who for place, who in enumerate(file.writers) if bool(who) == wanted
                    }
                    measured.ask_for_writers(
                        kind, file, file.relative_path, file.lines, writers_by_index
                    )
                alike = [
                    each
                    for each in files
                    if Path(each.relative_path).suffix == Path(file.relative_path).suffix
                ]
                foreign_lines = rng.choice(
                    [
                        each.lines
                        for each in alike
                        if Path(each.relative_path).name != Path(file.relative_path).name
                    ]
                    or [[]]
                )
                for kind, relative_path, lines, places in plant_changes(file, foreign_lines, rng):
                    measured.ask_for_writers(
                        kind, file, relative_path, lines, dict.fromkeys(places, NO_SESSIONS)
                    )
    print(f"{'':6}{'':38}{''.join(f'{name:>13}' for name in ANSWER_COLUMNS)}")
    for (half, kind), counts in sorted(measured.counts.items()):
        print(
            f"{('first', 'other')[half]:6}{kind:38}{''.join(f'{counts[name]:13,}' for name in ANSWER_COLUMNS)}"
        )
    print("\n".join(measured.wrong if "--wrong" in sys.argv else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())
