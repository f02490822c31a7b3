"""What ``import`` says of a bundle: its sessions, what each is called here, and how to go on in the last one."""

from __future__ import annotations

from typing import Any

from resume_hooks.cli.child import How, answer
from resume_hooks.cli.output import table
from resume_hooks.derive.imports.bundle.bring_in import Arrived, Wish, arrive
from resume_hooks.derive.imports.bundle.reading import Packed, unpacked
from resume_hooks.derive.imports.plan import Source
from resume_hooks.paths import Where
from resume_hooks.system.text import plain_line

UNSEALED = (
    "This bundle is of an older form, which shows damage to its records alone: titles, folders and the files beside "
    "its sessions could have changed unnoticed. Export it again where you can."
)
CHECKPOINTS_STAY = "File checkpoints are in no bundle: rewinding files starts anew."


def answer_for(taken: Source, wish: Wish, how: How, client: str) -> None:
    """Bring a bundle in, and print the receipt of its last session, the one that was exported."""
    with unpacked(taken.path, Where()) as packed:
        found = arrive(packed, taken.name, wish, Where())
        rows = [_row(came) for came in found]
        made = found[-1].receipt
        made = made._replace(warnings=(*made.warnings, *_warnings(packed, wish)))
    answer(
        "import",
        made,
        how,
        client,
        more={"imported": None, "bundle": rows},
        text=lambda: _text(taken, found, whole=wish.whole),
    )


def _row(came: Arrived) -> dict[str, Any]:
    return {
        "session_id": came.session_id,
        "was": came.head.session_id,
        "title": came.receipt.title,
        "parent_was": came.head.parent_session_id,
        "existing": came.existing,
        "files": came.files,
    }


def _warnings(packed: list[Packed], wish: Wish) -> list[str]:
    damaged = sum(each.sums.damaged for each in packed)
    lost = sum(each.sums.left_out + each.refused for each in packed)
    said = [f"{damaged:,} damaged lines are in no bundle."] if damaged else []
    said += [f"{lost:,} files beside the sessions did not come along."] if lost else []
    said += [] if all(each.sealed for each in packed) else [UNSEALED]
    return said + ([CHECKPOINTS_STAY] if wish.whole else [])


def _text(taken: Source, found: list[Arrived], *, whole: bool) -> str:
    last = found[-1].receipt
    done = "would bring in" if not last.written and last.session_id else "brought in"
    rows = [(("known" if came.existing else done), f"{came.receipt.title} · {came.session_id}") for came in found]
    what = "whole, with what lies beside them" if whole else "their conversations alone (--whole: a bundle of your own)"
    checked = sum(len(came.receipt.checks) for came in found)
    return table(
        [
            *rows,
            ("from", plain_line(taken.name)),
            ("taken over", what),
            ("at home in", last.folder),
            ("checks", f"{checked} passed" if last.written else "not run: nothing was written"),
            ("in Claude Code", last.in_client),
            ("in a shell", last.shell),
        ]
    )
