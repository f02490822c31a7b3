"""Measure the check of summaries: which true and which false sentences it marks.

``python -m benchmarks.summaries [--tuned]`` takes sentences from the compaction summaries of the
corpus. By seeded rules, it makes false sentences from them. A false sentence has the file, name,
command, prompt or sentence of another session, or another number. The check was improved with the
sessions whose names have an even hash (``--tuned``). The published results are those of the other
sessions. The naive check marks a sentence if a text in backticks does not occur in the session's
file.
"""

from __future__ import annotations

import hashlib
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from resume_hooks.reading.digest.prose import split_sentences
from resume_hooks.reading.summary_check import (
    NOT_IN_TRANSCRIPT_NOTE,
    check_summary,
    find_claims,
    read_record_texts,
)
from resume_hooks.transcripts import records
from tests.needs import corpus_sessions

SEED, MIN_SUMMARY_CHARACTERS, MAX_FALSE_SENTENCES = (
    37,
    3_000,
    40,
    # The minimum number of characters of a summary, and the maximum number of false sentences of a kind.
)
CLIENT_TEXT_PATTERN = re.compile(
    r"This session is being continued[^\n]*|If you need specific details.*|Please continue.*",
    re.DOTALL,
)
FILE_PATTERN = re.compile(
    r"[\w./@-]*\w\.(?:go|tsx?|py|m?js|ya?ml|md|json|sh|sql|toml|vue|mod|txt|kt)\b"
)
NAME_PATTERN = re.compile(r"`([A-Za-z]\w*(?:[a-z][A-Z]|_|\.)\w+)(?:\(\))?`")
NUMBER_PATTERN = re.compile(r"(?<![\w.,/#:-])\d{2,}(?:[.,]\d+)*(?![\w./-])")
PATTERN_BY_VALUE_KIND = {"file": FILE_PATTERN, "name": NAME_PATTERN}


class Session(NamedTuple):
    """A session of the corpus with its last summary.

    ``earlier_text`` contains the records before the summary. ``texts_by_reference`` are the same
    records as pairs of a reference and a text. ``values_by_kind`` are the files, names,
    commands and prompts of the records. False sentences about other sessions are made with them.
    """

    project: str
    summary_sentences: list[str]
    earlier_text: str
    texts_by_reference: list[tuple[str, str]]
    values_by_kind: dict[str, list[str]]


def read_session(path: Path) -> Session:
    """Read a session of the corpus."""
    lines = path.read_bytes().split(b"\n")
    at, summary = len(lines), ""
    things: dict[str, set[str]] = {kind: set() for kind in ("file", "name", "command", "said")}
    for number, record in enumerate(map(records.parse_record, lines)):
        if record and record.get("isCompactSummary") is True:
            at, summary = number, records.join_text_blocks(record)
            continue
        for block in records.list_blocks(record or {}):
            given = records.get_mapping(block, "input")
            things["file"] |= {"/".join(records.file_path_from_input(given).split("/")[-2:])} - {""}
            things["command"] |= {
                c
                for c in [records.get_string(given, "command")]
                if 5 < len(c) < 120 and "`" not in c
            }
            things["name"] |= {*NAME_PATTERN.findall(records.get_string(block, "text"))}
        if record and records.is_prompt(record):
            rows = records.prompt_text(record).split("\n")
            things["said"] |= {
                row for row in rows if 25 < len(row) < 160 and '"' not in row and row[0] != "<"
            }
    before = b"\n".join(line for line in lines[:at] if b'"isCompactSummary":true' not in line)
    told = (
        [s for s in split_sentences(CLIENT_TEXT_PATTERN.sub("", summary)) if find_claims(s)]
        if len(summary) > MIN_SUMMARY_CHARACTERS
        else []
    )
    kept = {kind: sorted(found) for kind, found in things.items()}
    return Session(
        path.parent.name,
        told,
        before.decode("utf-8", "replace"),
        list(_read_texts_until(path, at)),
        kept,
    )


def _read_texts_until(path: Path, end_line_number: int) -> Iterator[tuple[str, str]]:
    for ref, text in read_record_texts(str(path), "0"):
        if ref and int(ref[2:]) >= end_line_number:
            return
        yield ref, text


def make_false_sentences(
    session: Session, other_sessions: Sequence[Session], random_source: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield false sentences about a session, each after the name of its kind."""
    for sentence in session.summary_sentences:
        if numbers := list(NUMBER_PATTERN.finditer(sentence)):
            at = random_source.choice(numbers)
            other = "".join(
                str(random_source.randint(1, 9)) if sign.isdigit() else sign for sign in at[0]
            )
            if other != at[0]:
                yield "another number", _replace_span(sentence, at.span(), other)
    for near in (False, True):
        pool = [other for other in other_sessions if (other.project == session.project) is near]
        where = "of the same project" if near else "of another project"
        for kind, pattern in PATTERN_BY_VALUE_KIND.items():
            known = [thing for other in pool for thing in other.values_by_kind[kind]]
            for sentence in session.summary_sentences if known else ():
                if places := list(pattern.finditer(sentence)):
                    span = random_source.choice(places).span(pattern.groups)
                    yield (
                        f"another {kind}, {where}",
                        _replace_span(sentence, span, random_source.choice(known)),
                    )
        made = {
            "command": "`{}` ran, and all tests passed.",
            "said": 'The user decided: "{}"',
            "sentence": "{}",
        }
        for kind, form in made.items():
            known = [
                each
                for other in pool
                for each in (
                    other.summary_sentences if kind == "sentence" else other.values_by_kind[kind]
                )
            ]
            for thing in random_source.sample(known, min(MAX_FALSE_SENTENCES, len(known))):
                yield f"{kind} {where}", form.format(thing)


def _replace_span(sentence: str, span: tuple[int, int], replacement: str) -> str:
    return f"{sentence[: span[0]]}{replacement}{sentence[span[1] :]}"


def is_marked_by_naive_check(sentence: str, earlier_text: str) -> bool:
    """Check whether a sentence has a code span that is not in the earlier text."""
    return any(code not in earlier_text for code in re.findall("`([^`]+)`", sentence))


def main() -> int:
    """Print a row for each kind of sentence. Return 0."""
    tuned, random_source = "--tuned" in sys.argv, random.Random(SEED)
    paths = [
        path
        for path in corpus_sessions()
        if path.stat().st_size > 100_000 and "_cli_generated" not in path.parts
    ]
    sessions = {path: read_session(path) for path in paths}
    counts: dict[str, list[int]] = {}
    for path, one in sessions.items():
        if (
            hashlib.sha256(path.name.encode()).digest()[-1] % 2 == 0
        ) is not tuned or not one.summary_sentences:
            continue
        others = [other for other in sessions.values() if other is not one]
        rows = [
            *(("true", sentence) for sentence in one.summary_sentences),
            *make_false_sentences(one, others, random_source),
        ]
        rows = [(kind, " ".join(row.split())) for kind, row in rows]
        found = check_summary("\n".join(row for _, row in rows), one.texts_by_reference).text.split(
            "\n"
        )
        for (kind, row), after in zip(rows, found, strict=True):
            marked, tied = (
                f"[{NOT_IN_TRANSCRIPT_NOTE}" in after,
                after.endswith(")") and after != row,
            )
            for at, counts_here in enumerate(
                (True, marked, tied and not marked, is_marked_by_naive_check(row, one.earlier_text))
            ):
                counts.setdefault(kind, [0] * 4)[at] += counts_here
    print(f"{'sentences':36} {'all':>5} {'marked':>7} {'tied':>6} {'naive':>6}")
    for kind, (count, *shares) in sorted(counts.items()):
        print(
            f"{kind:36} {count:5} {shares[0] / count:7.1%} {shares[1] / count:6.1%} {shares[2] / count:6.1%}"
        )
    return 0


if __name__ == "__main__":
    begun = time.perf_counter()
    main()
    print(f"{time.perf_counter() - begun:.0f} s")
