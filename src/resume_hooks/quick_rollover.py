"""Quick rollover: a fresh child that holds its lineage and, for a handoff, the next step; no model is asked.

Deciding and acting are apart: ``plan`` touches nothing, ``write`` applies a plan once and reads it back.
The parent is only ever read.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from resume_hooks import checks, clock, lineage_block, tokens
from resume_hooks.errors import NothingToHandOff, UsageError
from resume_hooks.glance import Glance, one_line
from resume_hooks.lineage import Ancestor, Family
from resume_hooks.links import Link, record_link
from resume_hooks.metadata import continue_line, read_parent
from resume_hooks.opening import Setting, opening_lines, opening_text, title_line
from resume_hooks.paths import project_key
from resume_hooks.receipt import Receipt
from resume_hooks.records import kind, parse, string
from resume_hooks.rewrite import create_session
from resume_hooks.store import SessionFile, is_known
from resume_hooks.titles import child_title

CARRIED = ("tag", "pr-link", "mode", "worktree-state")
"""Bookkeeping of the parent that a child keeps, the last of each."""

MAX_STEP = 20_000
"""Characters of a next step; more is a document, which belongs into a file that the step names."""


@dataclass(frozen=True, slots=True)
class RolloverPlan:
    """Everything that ``write`` needs; ``lines`` are the child's lines without endings."""

    parent: SessionFile
    kind: str
    setting: Setting
    path: str
    title: str
    ancestors: tuple[Ancestor, ...]
    opening: str
    lines: tuple[bytes, ...]
    tokens_before: int
    tokens_after: int
    warnings: tuple[str, ...]


def plan(
    parent: SessionFile,
    environ: Mapping[str, str],
    *,
    kind: str = "rollover",
    next_step: str = "",
    output_dir: str | None = None,
) -> RolloverPlan:
    """Decide on a child of ``parent``; ``kind`` is rollover or handoff.

    NothingToHandOff where nobody asked anything there yet, UsageError for what can't be a parent or a step.
    """
    glance = Glance(parent.path)
    _refuse(glance, next_step)
    ancestors = Family(environ).lineage(parent.path)
    at = max(clock.now(), glance.ended)
    session_id = str(uuid.uuid4())
    folder = os.path.abspath(output_dir or os.path.dirname(parent.path))
    path = os.path.join(folder, f"{session_id}.jsonl")
    title = child_title(_root_title(ancestors), kind, folder)
    setting = Setting(session_id, home_folder(glance), glance.branch, glance.version, at)
    block = lineage_block.render(ancestors, title=title, session_id=session_id, file=path, created=at)
    text = opening_text(block, next_step)
    card = _card(ancestors, kind, next_step)
    metadata = continue_line(parent_id=parent.session_id, parent_file=parent.path, kind=kind, at=at, summary=False)
    lines = [
        metadata,
        *opening_lines(setting, text, card),
        title_line(session_id, title),
        *_carried(glance, session_id),
    ]
    return RolloverPlan(
        parent=parent,
        kind=kind,
        setting=setting,
        path=path,
        title=title,
        ancestors=tuple(ancestors),
        opening=text,
        lines=tuple(lines),
        tokens_before=tokens.recent_context(parent.path).tokens,
        tokens_after=round((len(text) + len(card)) / tokens.CHARACTERS_PER_TOKEN),
        warnings=_warnings(parent, output_dir, environ),
    )


def write(decided: RolloverPlan, environ: Mapping[str, str]) -> Receipt:
    """Apply a plan. WriteFailed or CheckFailed leave nothing behind; a link that can't be kept is a warning."""
    passed: list[checks.Check] = []

    def check(path: str) -> None:
        passed.extend(_checks(decided, path))
        checks.require(passed, decided.path)

    create_session(decided.path, (line + b"\n" for line in decided.lines), check)
    warnings = list(decided.warnings)
    setting = decided.setting
    try:
        record_link(Link(setting.session_id, decided.parent.session_id, decided.kind, setting.at), environ)
    except OSError as error:
        warnings.append(f"The link was not added to the state folder ({error.strerror}); the session itself holds it.")
    return receipt(decided, written=True, passed=passed, warnings=warnings)


def receipt(
    decided: RolloverPlan, *, written: bool, passed: list[checks.Check] | None = None, warnings: list[str] | None = None
) -> Receipt:
    """The receipt of a plan, applied or not."""
    return Receipt(
        session_id=decided.setting.session_id,
        file=decided.path,
        title=decided.title,
        parent_session_id=decided.parent.session_id,
        parent_file=decided.parent.path,
        kind=decided.kind,
        written=written,
        folder=decided.setting.cwd,
        tokens_before=decided.tokens_before,
        tokens_after=decided.tokens_after,
        checks=tuple(passed or ()),
        warnings=tuple(decided.warnings if warnings is None else warnings),
    )


def home_folder(glance: Glance) -> str:
    """The folder that the client must be started in to find a session: the one its project folder is named after."""
    key = os.path.basename(os.path.dirname(glance.path))
    seen = [folder for r in (*glance.first_records, *glance.last_records) if (folder := string(r, "cwd"))]
    return next((folder for folder in dict.fromkeys(seen) if project_key(folder) == key), glance.cwd) or os.getcwd()


def _refuse(glance: Glance, next_step: str) -> None:
    if glance.is_sidechain:
        raise UsageError("This is a sub-agent's transcript", "Name the session that it belongs to.")
    if not glance.own_turns:
        raise NothingToHandOff("There is nothing to hand off: nobody asked anything in this session yet")
    if len(next_step) > MAX_STEP:
        raise UsageError(
            f"The next step has {len(next_step):,} characters, more than {MAX_STEP:,}",
            "Put the long text into a file and name the file in the next step.",
        )


def _root_title(ancestors: list[Ancestor]) -> str:
    return next((ancestor.title for ancestor in ancestors if ancestor.title), "Session")


def _card(ancestors: list[Ancestor], kind: str, next_step: str) -> str:
    """What the screen shows of a fresh child: where it comes from, what is next, how to see more."""
    parent = ancestors[-1]
    verb = "Handed off from" if kind == "handoff" else "Rolled over from"
    lines = [f"**{verb}** {parent.title} (`{parent.session_id[:8]}`), {_generations(len(ancestors))}."]
    if next_step:
        lines.append(f"**Next step:** {one_line(next_step, 300)}")
    lines.append("Nothing of the earlier conversation is loaded; it can be searched and read on demand.")
    return "\n\n".join(lines)


def _generations(count: int) -> str:
    return "the first of its line" if count == 1 else f"{count} sessions back to the first"


def _carried(glance: Glance, session_id: str) -> list[bytes]:
    """The parent's carried bookkeeping, byte for byte but for the session's id."""
    last: dict[str, bytes] = {}
    for body in glance.tail.split(b"\n"):
        record = parse(body) if body.startswith(b'{"type":"') else None
        if record is not None and kind(record) in CARRIED:
            old = f'"sessionId":"{string(record, "sessionId")}"'.encode()
            if body.count(old) == 1:
                last[kind(record)] = body.replace(old, f'"sessionId":"{session_id}"'.encode())
    return list(last.values())


def _warnings(parent: SessionFile, output_dir: str | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    if output_dir is None and is_known(parent, environ):
        return ()
    return ("The new file lies outside the client's project folders: --resume will not find it by its id.",)


def _checks(decided: RolloverPlan, path: str) -> list[checks.Check]:
    found = checks.check_session(path, decided.setting.session_id)
    glance = Glance(path)
    opening = glance.first_records[1] if len(glance.first_records) > 1 else {}
    content = opening.get("message", {}).get("content") if isinstance(opening.get("message"), dict) else None
    named = read_parent(path)
    return [
        *found,
        checks.Check(
            "the first line names the parent", named is not None and named.session_id == decided.parent.session_id
        ),
        checks.Check("the lineage and the next step are whole", content == decided.opening),
        checks.Check("the title is its own", glance.custom_title == decided.title),
    ]
