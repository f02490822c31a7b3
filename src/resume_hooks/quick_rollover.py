"""Quick rollover: a fresh child that holds its lineage and, for a handoff, the next step; no model is asked.

Deciding and acting are apart: ``plan`` touches nothing, ``write`` applies a plan once and reads it back.
The parent is only ever read.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resume_hooks import checks, clock, lineage_block, tokens
from resume_hooks.carried import carried_lines
from resume_hooks.errors import NothingToHandOff, UsageError
from resume_hooks.glance import Glance, one_line
from resume_hooks.lineage import Ancestor, Family
from resume_hooks.lines import read_lines
from resume_hooks.links import Link, record_link
from resume_hooks.metadata import continue_line, read_parent
from resume_hooks.opening import Setting, opening_lines, opening_text, title_line
from resume_hooks.paths import project_key
from resume_hooks.plain import encodable, plain, plain_line
from resume_hooks.receipt import Receipt
from resume_hooks.records import kind, message, parse, string
from resume_hooks.rewrite import create_session
from resume_hooks.store import SessionFile, is_known
from resume_hooks.titles import child_title, root_of

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
    next_step = encodable(next_step.strip())
    ancestors = tuple(Family(environ).lineage(parent.path))
    folder = os.path.abspath(output_dir or os.path.dirname(parent.path))
    setting = Setting(str(uuid.uuid4()), home_folder(glance), glance.branch, glance.version, clock.now())
    path = os.path.join(folder, f"{setting.session_id}.jsonl")
    title = child_title(_root_title(ancestors), kind, folder)
    block = lineage_block.render(ancestors, title=title, session_id=setting.session_id, file=path, created=setting.at)
    text, card = opening_text(block, next_step), _card(ancestors, kind, next_step)
    lines = (
        continue_line(parent_id=parent.session_id, parent_file=parent.path, kind=kind, at=setting.at, summary=False),
        *opening_lines(setting, text, card),
        title_line(setting.session_id, title),
        *carried_lines(glance, setting.session_id),
    )
    return RolloverPlan(
        parent=parent,
        kind=kind,
        setting=setting,
        path=path,
        title=title,
        opening=text,
        lines=lines,
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
    here = os.environ.get("PWD", "")  # where transcripts were moved, the folder that they were moved to
    return next((folder for folder in dict.fromkeys([*seen, here]) if _is_keyed(folder, key)), glance.cwd) or here


def _is_keyed(folder: str, key: str) -> bool:
    try:
        return project_key(folder) == key
    except ValueError:
        return False  # a NUL or a lone surrogate: no folder is called so


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


def _root_title(ancestors: Sequence[Ancestor]) -> str:
    """The root's title; where the root is gone, its oldest descendant still carries it."""
    oldest = next((ancestor for ancestor in ancestors if ancestor.title), None)
    if oldest is None:
        return "Session"
    return oldest.title if oldest.derivation_type == "original" else root_of(oldest.title)


def _card(ancestors: Sequence[Ancestor], kind: str, next_step: str) -> str:
    """What the screen shows of a fresh child: where it comes from, what is next, how to see more."""
    parent = ancestors[-1]
    verb = "Handed off from" if kind == "handoff" else "Rolled over from"
    lines = [f"**{verb}** {plain_line(parent.title)} (`{parent.session_id[:8]}`), {_generations(len(ancestors))}."]
    if next_step:
        lines.append(f"**Next step:** {one_line(plain(next_step), 300)}")
    lines.append("Nothing of the earlier conversation is loaded; it can be searched and read on demand.")
    return "\n\n".join(lines)


def _generations(count: int) -> str:
    return "the first of its line" if count == 1 else f"{count} sessions back to the first"


def _warnings(parent: SessionFile, output_dir: str | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    if output_dir is None and is_known(parent, environ):
        return ()
    return ("The new file does not lie in its project's folder: --resume will not find it there by its id.",)


def _checks(decided: RolloverPlan, path: str) -> list[checks.Check]:
    found = checks.check_session(path, decided.setting.session_id)
    named = read_parent(path)
    return [
        *found,
        checks.Check(
            "the first line names the parent", named is not None and named.session_id == decided.parent.session_id
        ),
        checks.Check("the lineage and the next step are whole", _opening_of(path) == decided.opening),
        checks.Check("the title is its own", Glance(path).custom_title == decided.title),
    ]


def _opening_of(path: str) -> object:
    with open(path, "rb") as stream:
        bodies = (line.body for line in read_lines(stream))
        return next((message(r).get("content") for body in bodies if (r := parse(body)) and kind(r) == "user"), None)
