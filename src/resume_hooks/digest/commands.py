"""Shell commands as entries: what worked, what failed and what replaced it, which errors stand at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from resume_hooks.digest import shell
from resume_hooks.digest.entries import Entry, entry
from resume_hooks.digest.prose import cut
from resume_hooks.digest.story import Run, Story

LONGEST = 600
"""Characters of a command; a longer one carries a document and is cut."""

OFTEN = 5
"""Runs from which on a command counts as run often."""

ONCE = 200
"""Characters from which on a command is taken for one that was made for one occasion."""

SOON = 12
"""Commands after a failed one among which the one that replaced it is looked for."""

LINE = 160
"""Characters of the line that is quoted of an output."""

ENDS = 800
"""Characters at each end of an output in which a complaint is looked for."""

_TELLING = re.compile(
    r"error|fail|fatal|panic|denied|not found|cannot|can't|exception|refused|unknown|invalid", re.IGNORECASE
)
_COMPLAINT = re.compile(
    r"^(?:(?:\S{1,40}: )?(?:error|fatal|panic|unknown \w+)\b[^\n]{0,3}[: ]|FAIL(?:ED)?\b|Traceback|"
    r"\S+: command not found|(?:Cannot|Could not|Unable to) |\(eval\):)[^\n]*",
    re.IGNORECASE | re.MULTILINE,
)


def worked(story: Story) -> Iterator[Entry]:
    """Commands that worked, in the form that did last: by how often and how lately they ran."""
    groups: dict[str, list[Run]] = {}
    for run in story.runs:
        if shell.is_work(run.command):
            groups.setdefault(shell.core(run.command), []).append(run)
    end = max((run.place.order for run in story.runs), default=0) or 1
    rows = []
    for found in groups.values():
        good = [run for run in found if not run.failed]
        if good:
            weight = min(len(found), OFTEN) + OFTEN * found[-1].place.order / end - _is_rare(good[-1].command)
            rows.append((-weight, -good[-1].place.order, good[-1], _runs(found, good[-1])))
    yield from (entry(run.command, run.place, note, LONGEST) for *_, run, note in sorted(rows, key=lambda row: row[:2]))


def _is_rare(command: str) -> int:
    """What a command weighs less that nobody runs again as it stands: it carries a text, or says where things are."""
    if "<<" in command or len(command) > ONCE:
        return OFTEN
    return OFTEN // 2 if shell.program(command).startswith(("git", "gh")) else 0


def _runs(found: list[Run], good: Run) -> str:
    """How often a command ran, and how it ended."""
    notes = [f"{len(found)} runs"] if len(found) > 1 else []
    if good.waiting:
        notes.append("in the background")
    if complaint := _complaint(good):
        notes.append(f"exit 0, but its output says: {cut(complaint, LINE // 2)}")
    if found[-1].failed:
        notes.append(f"its last run failed, exit {found[-1].status}")
    elif any(run.failed for run in found):
        notes.append("failed before it worked")
    return ", ".join(notes)


def replaced(story: Story) -> Iterator[Entry]:
    """Commands that never worked, and the next one of the same program that did; the latest first."""
    good = {shell.core(run.command) for run in story.runs if not (run.failed or _complaint(run))}
    for index, run in reversed(list(enumerate(story.runs))):
        told = _telling_line(run.output) if run.failed else _complaint(run)
        if not told or shell.core(run.command) in good:
            continue
        later = (other for other in story.runs[index + 1 : index + SOON] if not other.failed)
        name = shell.program(run.command)
        instead = next((other for other in later if shell.program(other.command) == name), None)
        said = f"`{cut(run.command, LINE)}` exit {run.status}: {cut(told, LINE)}"
        yield entry(f"{said}; then `{cut(instead.command, LINE)}` worked" if instead else said, run.place, most=LONGEST)


def errors(story: Story) -> Iterator[Entry]:
    """Errors that stand at the end: commands whose last run failed, and no other one of their program worked since."""
    last = {shell.core(run.command): run for run in story.runs if shell.is_work(run.command)}
    good = {shell.program(run.command): run.place.order for run in story.runs if not run.failed}
    for run in reversed(last.values()):
        if run.failed and good.get(shell.program(run.command), -1) < run.place.order:
            told = cut(_telling_line(run.output), LINE)
            yield entry(f"`{cut(run.command, LINE)}` exit {run.status}: {told}", run.place)


@lru_cache(maxsize=8192)
def _complaint(run: Run) -> str:
    """The line in which the output of a command that ended well says that it did not: a pipe hides the exit status."""
    if run.failed or not shell.is_work(run.command):
        return ""
    found = _COMPLAINT.search(run.output[:ENDS]) or _COMPLAINT.search(run.output[-ENDS:])
    return found.group() if found else ""


def _telling_line(output: str) -> str:
    """The line of an output that says most of what went wrong."""
    rows = [row.strip() for row in output.split("\n") if row.strip() and not row.startswith("Exit code")]
    return next((row for row in rows if _TELLING.search(row)), rows[-1] if rows else "no output")
