"""Fuzz targets for whole transcripts: chains, parents, and all verbs that read or write a session."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from resume_hooks.derive import agents, fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import ChildContents
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.errors import NotATranscript, ResumeHooksError
from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.paths import Where, is_session_id
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.outline import format_outline, make_outline
from resume_hooks.reading.passages import TurnReader
from resume_hooks.search.listing import list_project
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.lineage import MAX_GENERATIONS, LineageFinder
from resume_hooks.sessions.locate import SessionFile, resolve_locator, session_file
from resume_hooks.sessions.record_references import names_of_transcript
from resume_hooks.transcripts.context_size import measure_chain, measure_context_from_tail
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import check_session
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.tokens import ContextSize
from resume_hooks.transcripts.transcript import scan_live_records, scan_transcript
from tests.builders import CWD, SESSION, ConfigHome
from tests.fuzz.draws import Draws
from tests.fuzz.material import SESSION_IDS, draw_metadata, draw_transcript, write_session_file
from tests.fuzz.targets.target import Target, TryCase, assert_expected_error

Environ = Mapping[str, str]


def make_chain_check(home: ConfigHome) -> TryCase:
    """Return a check that a chain is finite and contains no record twice.

    ``scan_live_records`` finds the same chain as ``scan_transcript``.
    """
    folder = home.project()

    def try_case(draws: Draws) -> None:
        path = write_session_file(folder, SESSION, draw_transcript(draws, 24))
        try:
            whole = scan_transcript(path)
        except NotATranscript:
            return
        numbers = [node.line_number for node in whole.chain]
        assert len(set(numbers)) == len(numbers) <= len(whole.nodes)
        assert not any(node.is_boundary for node in whole.chain[1:])
        assert not any(node.is_broken or node.kind == "progress" for node in whole.chain)
        assert [
            node.line_number for node in scan_live_records(path, lambda: ())[0].chain
        ] == numbers
        assert sum(len(turn.nodes) for turn in whole.turns) <= len(numbers)
        assert len(linearize_chain(whole.chain).nodes) <= len(numbers)
        _assert_equal_sizes(measure_context_from_tail(path), measure_chain(path, whole.chain)[0])
        assert whole.line_count == Path(path).read_bytes().count(b"\n") + whole.is_torn

    return try_case


def _assert_equal_sizes(tail_size: ContextSize, chain_size: ContextSize) -> None:
    assert tail_size.tokens >= 0
    if tail_size.is_measured and chain_size.is_measured:
        assert tail_size.tokens == chain_size.tokens


def make_branch_check(home: ConfigHome) -> TryCase:
    """Return a check that the chain of a long file with branches and cycles contains no record twice.

    ``scan_live_records`` finds the same chain as ``scan_transcript``.
    """
    folder = home.project()

    def try_case(draws: Draws) -> None:
        rows = []
        chance = random.Random(draws.take_bytes(8))
        for number in range(60 + draws.number_below(400)):
            parent = chance.choice(
                (number - 1, number - 1, chance.randrange(number + 1), chance.randrange(500))
            )
            kind = "user" if number % 2 else "assistant"
            again = number if chance.random() > 0.02 else chance.randrange(number + 1)
            rows.append(
                b'{"type":"%s","uuid":"n%d","parentUuid":"n%d","sessionId":"%s","message":{"role":"%s","content":"x"}}\n'
                % (kind.encode(), again, parent, SESSION.encode(), kind.encode())
            )
        path = write_session_file(folder, SESSION, b"".join(rows))
        found = scan_transcript(path)
        numbers = [node.line_number for node in found.chain]
        assert len(set(numbers)) == len(numbers) > 0
        assert [
            node.line_number for node in scan_live_records(path, lambda: ())[0].chain
        ] == numbers

    return try_case


def make_lineage_check(home: ConfigHome) -> TryCase:
    """Return a check that a lineage is finite.

    Only sessions that are in the config home or next to the child are opened.
    """
    folder = home.project()
    outside = home.root / "outside"
    outside.mkdir()
    roots = (str(home.config / "projects"), str(folder))
    for number in SESSION_IDS:
        write_session_file(
            outside, number, b'{"type":"user","uuid":"secret","message":{"content":"outside"}}\n'
        )

    def try_case(draws: Draws) -> None:
        for number in SESSION_IDS[: 1 + draws.number_below(len(SESSION_IDS))]:
            made = draw_metadata(draws)
            if draws.flip_coin(4) and isinstance(made["continue_metadata"], dict):
                made["continue_metadata"]["parent_session_file"] = str(
                    outside / f"{draws.pick(SESSION_IDS)}.jsonl"
                )
            write_session_file(
                folder, number, json.dumps(made).encode() + b"\n" + draw_transcript(draws, 3)
            )
        path = str(folder / f"{SESSION}.jsonl")
        parent = read_parent(path)
        assert parent is None or parent.session_id == "" or is_session_id(parent.session_id)
        lineage_finder = LineageFinder(home.where)
        rows = lineage_finder.find_lineage(path)
        assert 1 <= len(rows) <= MAX_GENERATIONS
        ids = [row.session_id for row in rows if row.session_id]
        assert len(set(ids)) == len(ids)
        assert all(row.session_file.startswith(roots) for row in rows if row.status == "present")
        block = lineage_block.render_lineage_block(
            rows, title="x", session_id=SESSION, file=path, created_at=""
        )
        assert (
            block.count(lineage_block.LINEAGE_START_MARKER)
            == block.count(lineage_block.LINEAGE_END_MARKER)
            == 1
        )
        assert len(lineage_finder.find_descendants(SESSION)) < len(SESSION_IDS)

    return try_case


def make_reading_check(home: ConfigHome) -> TryCase:
    """Return a check that reading any file gives a text or an error sentence, but no traceback.

    The file is read as an outline, as pages and as a row of a list.
    """
    folder = home.project()

    def try_case(draws: Draws) -> None:
        path = write_session_file(folder, SESSION, draw_transcript(draws))
        session = SessionFile(SESSION, path, 0.0, os.path.getsize(path))
        names = names_of_transcript(session, home.where)
        glance = HeadTail(path)
        assert isinstance(
            glance.title + glance.tag + glance.cwd + glance.branch + glance.version, str
        )
        for row in list_project(CWD, home.where, covers_all_projects=True, include_helpers=True):
            assert "\n" not in row.title
        try:
            found = make_outline(session)
            assert found.line_count == scan_transcript(path).line_count
            assert format_outline(found, found.turns, names, 0)
            reading = TurnReader(session)
            passages = reading.read_passages_of_rows(reading.rows, names)
        except ResumeHooksError as error:
            assert_expected_error(error)
            return
        assert all(passage.make_text_piece(names).heading for passage in passages)

    return try_case


def make_locator_check(home: ConfigHome) -> TryCase:
    """Return a check that a locator names one existing session or is refused.

    A link is opened only if the locator contains its path.
    """
    folder = home.project()
    (home.root / "secret.jsonl").write_text("{}")
    for number, session in enumerate(SESSION_IDS):
        title = b'{"type":"custom-title","sessionId":"%s","customTitle":"title %d"}' % (
            session.encode(),
            number,
        )
        row = (
            b'{"type":"user","uuid":"u","sessionId":"%s","message":{"content":"x"}}'
            % session.encode()
        )
        write_session_file(folder, session, row + b"\n" + title + b"\n")
    link = folder / "99999999-0000-4000-8000-000000000000.jsonl"
    link.symlink_to(home.root / "secret.jsonl")
    words = (*SESSION_IDS, SESSION[:9], "title", "title 1", "latest", "latest~", "2", "tag:", "#", "pr:",
             "~", "~\0/", "/a\0b.jsonl", "/\ud800.jsonl", "/", str(link),
             f"{folder}/", str(home.root), ".jsonl", "..",
             "https://example.com/x")  # fmt: skip

    def try_case(draws: Draws) -> None:
        locator = "".join(
            draws.pick(words) if draws.number_below(4) else draws.text()
            for _ in range(1 + draws.number_below(3))
        )
        try:
            found = resolve_locator(locator, CWD, home.where)
        except ResumeHooksError as error:
            assert_expected_error(error)
            return
        assert os.path.isfile(found.path)
        assert not os.path.islink(found.path) or str(link) in locator

    return try_case


def make_verb_check(home: ConfigHome) -> TryCase:
    """Return a check that a verb makes a valid child of any session, or fails with a clear message.

    The parent stays unchanged, and no stray file is left behind.
    """
    folder = home.project()
    makers: tuple[Callable[[SessionFile, Environ], Receipt], ...] = (_handoff, _trim, _fork)

    def try_case(draws: Draws) -> None:
        for left in folder.iterdir():
            if left.is_file():
                left.unlink()
        content = draw_transcript(draws, 20)
        path = write_session_file(folder, SESSION, content)
        make = draws.pick(makers)
        try:
            made = make(session_file(path), home.environ)
        except ResumeHooksError as error:
            assert_expected_error(error)
            names = [SESSION]
        else:
            assert all(check.ok for check in check_session(made.file, made.session_id))
            assert read_parent(made.file) is not None
            names = sorted([SESSION, made.session_id])
        assert Path(path).read_bytes() == content
        assert sorted(file.stem for file in folder.glob("*.jsonl")) == names
        assert not list(folder.glob(".*"))

    return try_case


def _handoff(session: SessionFile, environ: Environ) -> Receipt:
    contents = ChildContents(build_digest(session, Where(environ)))
    decided = agents.plan_fresh_child(
        session, Where(environ), kind="handoff", next_step="\ud800 go on", contents=contents
    )
    return write_child(decided, Where(environ))


def _trim(session: SessionFile, environ: Environ) -> Receipt:
    options = Options(threshold=80, keep_recent=0, assistant=-1, min_savings=0)
    return write_child(
        plan.plan_trim(plan.scan_session(session), Where(environ), options), Where(environ)
    )


def _fork(session: SessionFile, environ: Environ) -> Receipt:
    return write_child(fork.plan_fork(session, Where(environ)), Where(environ))


def make_defect_check(home: ConfigHome) -> TryCase:
    """Return a check that ``fsck`` can examine any file, and that each finding names a record in the file."""
    folder = home.project()

    def try_case(draws: Draws) -> None:
        path = write_session_file(folder, SESSION, draw_transcript(draws, 20))
        report = examine_session(SessionFile(SESSION, path, 0.0, 1), home.where)
        count = Path(path).read_bytes().count(b"\n") + 1
        found = [finding for group in report.groups for finding in group.defects]
        assert all(
            finding.record_number is None or -1 <= finding.record_number < count
            for finding in found
        )

    return try_case


TARGETS = (
    Target("chain", 800, make_chain_check),
    Target("branches", 120, make_branch_check),
    Target("metadata and lineage", 500, make_lineage_check),
    Target("reading", 500, make_reading_check),
    Target("locators", 600, make_locator_check),
    Target("children", 500, make_verb_check),
    Target("fsck", 500, make_defect_check),
)
