"""Run each way to continue a session, and return what the way leaves of the session.

Each way is run on a copy of the session in a temporary home.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.going_on.judge import Row, collapse_spaces, split_opening_rows, split_prose_rows
from resume_hooks import fork_session, trim
from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_if_worthwhile
from resume_hooks.derive.compare import TOKENS_AFTER_COMPACTION
from resume_hooks.derive.fresh_child import ChildContents, read_opening
from resume_hooks.derive.trim.options import EnteredOptions, make_options
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks.after_compaction import describe_lost_facts
from resume_hooks.paths import Where, is_session_id
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.reading.digest.opening import (
    DEFAULT_OPENING_TOKENS,
    convert_tokens_to_characters,
    format_whole_digest,
)
from resume_hooks.sessions.locate import session_file
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING
from resume_hooks.transcripts import api_usage, records, tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.metadata_records import DIGEST_BEGINNING
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import SESSION, ConfigHome

OPENING_SIZES = (900, 2_000, 4_000, 8_000, 12_000, 16_000, 24_000)
"""The sizes of our openings in tokens, as a handoff counts them."""

COMPACTION_TEXT_SIZES = (12_000, 24_000)
"""The sizes in tokens of the text that replaces the client's summary."""

NEXT_STEP = "go on"
MODEL_WAYS = ("rollover", "peer: aichat rollover")
"""The ways whose text a model writes. The texts are read from ``BENCH_SUMMARIES``."""

PEER_ANSWER = b"n\n"
PEER_REFERENCE_PATTERN = re.compile(r"\bline (\d+) of \S+\.jsonl\b")
"""Matches the peer's placeholders. Their line numbers begin at 1."""

MAX_WAY_SECONDS = 120
"""The maximum number of seconds that a way may take for a session."""

CopyFunction = Callable[[Path], Path | None]


class Remainder(NamedTuple):
    """What is left of a session after one way of continuing it.

    ``request_tokens`` is the size of the first request, and ``text`` its text with collapsed white
    space. ``rows`` are the lines of the text, which are also judged one by one.
    ``named_record_numbers`` are the numbers of the records that the text names. The model can get
    these records with one read, and also ``readable_rows``.
    """

    request_tokens: int
    text: str = ""
    rows: Sequence[Row] = ()
    named_record_numbers: frozenset[int] = frozenset()
    readable_rows: Sequence[Row] = ()


class WayResult(NamedTuple):
    """The name of a way to continue a session, and what the way leaves of the session.

    ``remainder`` is None if the way could not be run.
    """

    way_name: str
    remainder: Remainder | None


def format_token_count(token_count: int) -> str:
    """Return a number of tokens in short form, for example ``12k``."""
    return str(token_count) if token_count % 1_000 else f"{token_count // 1_000}k"


def measure_text_result(base_tokens: int, text: str) -> Remainder:
    """Return what is left of a session if a new session begins with a text.

    ``base_tokens`` is the number of tokens before the text in every session.
    """
    return Remainder(
        base_tokens + round(len(text) / tokens.CHARACTERS_PER_TOKEN),
        collapse_spaces(text),
        split_prose_rows(text),
    )


def measure_file_result(
    path: Path, parent_result: Remainder | None, parent_path: Path
) -> Remainder:
    """Return what is left of a session if the client resumes a file and sends its live chain.

    With ``parent_result``, the tokens are the parent's without those of the removed characters.
    """
    transcript = scan_transcript(str(path))
    raw = path.read_bytes().split(b"\n")
    parsed = [
        record
        for node in transcript.chain
        if (record := records.parse_record(raw[node.line_number])) is not None
    ]
    text = collapse_spaces(
        "\n".join(
            part for record in parsed for part in records.iterate_strings(record.get("message"))
        )
    )
    marks = (record.get("original_index") for record in parsed if record.get("truncated"))
    named = frozenset(mark for mark in marks if isinstance(mark, int))
    counted, spoken = tokens.count_and_estimate_tokens(transcript.chain)
    count = counted or spoken
    if parent_result is not None:
        old = scan_transcript(str(parent_path)).chain
        gone = sum(node.character_count for node in old) - sum(
            node.character_count for node in transcript.chain
        )
        count = max(
            0, parent_result.request_tokens - round(gone / tokens.measure_characters_per_token(old))
        )
    return Remainder(count, text, named_record_numbers=named)


def resolve_peer_references(remainder: Remainder) -> Remainder:
    """Return a remainder that also names the records to which the peer's placeholders refer."""
    return remainder._replace(
        named_record_numbers=remainder.named_record_numbers
        | {int(line) - 1 for line in PEER_REFERENCE_PATTERN.findall(remainder.text)}
    )


def run_ways_on_session(path: Path) -> Iterator[WayResult]:
    """Run each way to continue a session on the copy ``path``, and yield the results.

    The remainder in a result is None if the way needs a model's text that is missing.
    """
    here = measure_file_result(path, None, path)
    base = _read_base_tokens(path)
    records_of_it = _read_records(path)
    yield WayResult("go on", here)
    digest = build_digest(session_file(str(path)), Where())
    for size in OPENING_SIZES:
        name = format_token_count(size)
        yield WayResult(
            f"handoff, {name}",
            measure_handoff_of_copy(path, base, ChildContents(digest, opening_tokens=size)),
        )
        yield WayResult(
            f"the last {name} of what was said",
            measure_text_result(base, select_end_of_talk(records_of_it, size)),
        )
        yield WayResult(
            f"all prompts, then the newest messages, {name}",
            measure_text_result(base, select_prompts_and_end(records_of_it, size)),
        )
    for way, make in list_copy_methods():
        child = make(path)
        # A trim that would not pay makes no child, so the session itself is measured.
        remainder = (
            here
            if child is None
            else resolve_peer_references(measure_file_result(child, here, path))
        )
        yield WayResult(way, remainder)
        if child is not None:
            child.unlink()
    for way in MODEL_WAYS:
        yield run_model_way(way, path, base, digest)


def run_ways_at_compaction(path: Path) -> Iterator[WayResult]:
    """Yield what each way leaves of a session at its last compaction.

    One way is the client's summary. The others replace it with another text.
    """
    raw = path.read_bytes().split(b"\n")
    at = max(
        (number for number, line in enumerate(raw) if b'"isCompactSummary":true' in line),
        default=None,
    )
    told = records.parse_record(raw[at]) if at is not None else None
    if at is None or told is None:
        return
    base = _read_base_tokens(path)
    summary = records.join_text_blocks(told)
    yield WayResult(
        "the client's summary",
        measure_text_result(base, summary)._replace(request_tokens=base + TOKENS_AFTER_COMPACTION),
    )
    path.write_bytes(b"\n".join(raw[:at]) + b"\n")
    records_of_it = _read_records(path)
    digest = build_digest(session_file(str(path)), Where())
    for size in COMPACTION_TEXT_SIZES:
        name = format_token_count(size)
        facts = describe_lost_facts(
            path.stem, str(path), convert_tokens_to_characters(size), MAX_WAY_SECONDS
        )
        yield WayResult(
            f"`config compaction {name}`",
            measure_text_result(base, facts)._replace(rows=split_opening_rows(facts)),
        )
        yield WayResult(
            f"handoff, {name}",
            measure_handoff_of_copy(path, base, ChildContents(digest, opening_tokens=size)),
        )
        yield WayResult(
            f"the last {name} of what was said",
            measure_text_result(base, select_end_of_talk(records_of_it, size)),
        )


def list_copy_methods() -> Iterator[tuple[str, CopyFunction]]:
    """Yield the ways that make a child without a model.

    Each is a pair: the name of the way, and a function that makes a child from a copy of a session.
    """
    yield "trim", make_trimmer()
    yield "trim, maximum", make_trimmer(threshold=["100"], keep_recent=0, assistant=1_000)
    if os.environ.get("BENCH_PEER"):
        yield "peer: aichat trim", run_peer_trim
    yield "fork", fork_whole_session


def measure_handoff_of_copy(path: Path, base_tokens: int, contents: ChildContents) -> Remainder:
    """Make a handoff of the copy ``path``, and return what its child contains.

    Items are searched only in the digest, and in a model's summary if there is one. The child also
    has the lineage, the next step and the card, which are counted in the tokens of the first
    request. The size may be any number of tokens, while ``handoff --size`` accepts only whole
    thousands.
    """
    decided = agents.plan_fresh_child(
        session_file(str(path)), Where(), kind="handoff", next_step=NEXT_STEP, contents=contents
    )
    child = Path(write_if_worthwhile(decided, Where(), dry_run=False).file)
    said = round(
        sum(node.character_count for node in scan_transcript(str(child)).chain)
        / tokens.CHARACTERS_PER_TOKEN
    )
    before, head, opening = str(read_opening(str(child))).partition(DIGEST_BEGINNING)
    child.unlink()
    text = head + opening.rpartition(f"\n\n{NEXT_STEP_HEADING}\n")[0]
    # A model's summary is between the lineage and the digest.
    rows = [*(split_prose_rows(before) if contents.summary else ()), *split_opening_rows(text)]
    found = collapse_spaces(f"{contents.summary}\n{text}")
    return Remainder(
        base_tokens + said,
        found,
        rows,
        readable_rows=split_opening_rows(format_whole_digest(contents.digest or Digest())),
    )


def select_end_of_talk(parsed_records: Sequence[Record], token_count: int) -> str:
    """Return the last ``token_count`` tokens of the talk."""
    said = [
        records.join_text_blocks(one)
        for one in parsed_records
        if records.get_kind(one) == records.ASSISTANT or records.is_prompt(one)
    ]
    return "\n".join(filter(None, said))[-convert_tokens_to_characters(token_count) :]


def select_prompts_and_end(parsed_records: Sequence[Record], token_count: int) -> str:
    """Return the first prompts and the end of the talk.

    The prompts have at most half of ``token_count`` tokens. The end of the talk has the remaining tokens.
    """
    prompts = "\n".join(
        records.prompt_text(record) for record in parsed_records if records.is_prompt(record)
    )
    max_characters = convert_tokens_to_characters(token_count)
    asked = prompts[: max_characters // 2]
    end = select_end_of_talk(parsed_records, token_count)[-(max_characters - len(asked)) :]
    return f"{asked}\n{end}"


def run_model_way(way_name: str, path: Path, base_tokens: int, digest: Digest) -> WayResult:
    """Return the result of a way whose text a model wrote.

    The remainder is None if the text is missing. In our own rollover, a digest of the usual size follows
    the text.
    """
    file = Path(os.environ.get("BENCH_SUMMARIES", os.devnull), way_name, f"{path.stem}.md")
    if not file.is_file():
        return WayResult(way_name, None)
    text = "\n".join(row for row in file.read_text(encoding="utf-8").split("\n") if row.strip())
    if way_name != MODEL_WAYS[0]:
        return WayResult(way_name, measure_text_result(base_tokens, text))
    return WayResult(
        way_name,
        measure_handoff_of_copy(
            path,
            base_tokens,
            ChildContents(digest, summary=text, opening_tokens=DEFAULT_OPENING_TOKENS),
        ),
    )


def make_trimmer(**options: object) -> CopyFunction:
    """Return a function that trims a session with these options, and returns the child's path.

    The function returns None if the trim would not pay.
    """

    def trim_copy(path: Path) -> Path | None:
        made = trim(path, make_options(EnteredOptions(**options)))  # type: ignore[arg-type]
        return Path(made.file) if made.written else None

    return trim_copy


def fork_whole_session(path: Path) -> Path | None:
    """Fork the whole live conversation. Return the child's path, or None if a fork is impossible."""
    try:
        return Path(fork_session(path).file)
    except ResumeHooksError:
        return None


def run_peer_trim(path: Path) -> Path | None:
    """Run the peer's trim with its defaults, and return the path of the new file, or None."""
    known = set(path.parent.iterdir())
    command = [os.environ["BENCH_PEER"], "trim", str(path), "--simple-ui"]
    subprocess.run(
        command, input=PEER_ANSWER, capture_output=True, check=False, timeout=MAX_WAY_SECONDS
    )
    made = [file for file in path.parent.iterdir() if file not in known and file.suffix == ".jsonl"]
    return made[0] if made else None


@contextmanager
def copy_session(source: Path) -> Iterator[Path]:
    """Copy a session to a temporary home, and yield the path of the copy.

    During the block, the environment of this process names that home.
    """
    with tempfile.TemporaryDirectory() as root:
        config = Path(root, ".claude")
        home = ConfigHome(Path(root), config, {"HOME": root, "CLAUDE_CONFIG_DIR": str(config)})
        name = source.stem if is_session_id(source.stem) else SESSION
        path = home.project(HeadTail(str(source)).cwd or "/home/user/proj") / f"{name}.jsonl"
        shutil.copyfile(source, path)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        before = {name: os.environ.get(name) for name in home.environ}
        os.environ.update(home.environ)
        try:
            yield path
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def _read_base_tokens(path: Path) -> int:
    return api_usage.measure_first_request(HeadTail(str(path)), Where()).tokens


def _read_records(path: Path) -> list[Record]:
    return [
        record
        for line in path.read_bytes().split(b"\n")
        if (record := records.parse_record(line)) is not None
    ]
