"""The texts of ``>checkpoint`` and ``>rewind``. Each ends in its useful line of at most 40 columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from resume_hooks import clock
from resume_hooks.clock import DAY, HOUR, MINUTE
from resume_hooks.derive.checkpoint import Mark, Placed
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.rewind_text import LeftOut
from resume_hooks.hooks.cards import ROW, child_card
from resume_hooks.hooks.checkpoint_state import NONE
from resume_hooks.hooks.confirmations import OPEN
from resume_hooks.system.clipboard import Copied
from resume_hooks.system.text import one_line, plain

_REWIND = "/resume-hooks:rewind <report>   or  >rewind <report>"
_STAYS = "files, git and processes stay as they are; the rewound session holds the talk up to here"

_NOTHING = "Nothing was changed."
_UNITS = (("day", DAY), ("hour", HOUR), ("minute", MINUTE))


def set_card(placed: Placed, *, replaced: bool, already: bool, slash: bool) -> str:
    """``>checkpoint``: what was marked, and how to come back."""
    done = "already set here" if already else "replaced" if replaced else "set"
    later = (
        ["an answer is not finished: marked is the last step that is whole"]
        if placed.unfinished and not already
        else []
    )
    lines = [
        f"checkpoint {done}{'' if slash else ' · Ctrl+C once, then go on'}",
        "",
        *(f"  {line}" for line in (*_described(placed.mark), *later)),
        "",
        f"  back to here, with a report   {_REWIND}",
        f"  {_STAYS}",
        "",
        "Set: go on." if slash else "Set: Ctrl+C once, then go on.",
    ]
    return "\n".join(lines)


def question_card(active: Mark, goal: str, unkept: str, *, slash: bool) -> str:
    """A second ``>checkpoint``: the one that is active, and how to replace it; ``unkept`` says why it can't be."""
    yes = f"{'/resume-hooks:' if slash else '>'}checkpoint yes"
    new = [f"new goal: {one_line(plain(goal), ROW * 2)}"] if goal else []
    ways = [unkept] if unkept else ["replace it by one here    /resume-hooks:checkpoint yes   or  >checkpoint yes"]
    lines = [
        "checkpoint · one is active, set " + age(active),
        "",
        *(f"  {line}" for line in (*_described(active), *new)),
        "",
        *(f"  {line}" for line in ways),
        f"  back to it, with a report {_REWIND}",
        "",
        _NOTHING if unkept else f"Replace: {yes}",
    ]
    return "\n".join(lines)


def unasked_card(active: Mark | None, *, expired: bool, slash: bool) -> str:
    """A yes to which nothing is open."""
    sign = "/resume-hooks:" if slash else ">"
    why = f"the question is older than {OPEN // 60} minutes" if expired else "no question about a checkpoint is open"
    said = f"resume-hooks: there is nothing to confirm: {why}."
    if active is None:
        return f"{said}\n\n  {NONE}\n\n{_NOTHING}\n\nFirst: {sign}checkpoint [goal]"
    described = "\n".join(f"  {line}" for line in (f"active is, set {age(active)}:", *_described(active)))
    return f"{said}\n\n{described}\n\n{_NOTHING}\n\nReplace: {sign}checkpoint [goal]"


def rewound_card(
    receipt: Receipt, copied: Copied, mark: Mark, report: str, left_out: LeftOut | None, *, slash: bool
) -> str:
    """``>rewind``: the child, what it holds, what stays, and the ways into it."""
    facts = [
        f"checkpoint set {age(mark)}" + (f": {one_line(plain(mark.goal), ROW)}" if mark.goal else ""),
        f"report: {one_line(plain(report), ROW * 2)}",
        *not_rewound(receipt, left_out),
    ]
    return child_card("rewound", receipt, copied, facts, slash=slash)


def not_rewound(receipt: Receipt, left_out: LeftOut | None) -> list[str]:
    """What a rewind leaves as it is, in lines, and how files are brought back."""
    facts = ["files, git and processes are not rewound"]
    if left_out is None:
        return facts
    if left_out.prompt:
        facts[0] += "; files, in a shell (it shows what would change, and asks):"
        facts.append(f"    resume-hooks rewind-files {receipt.parent_session_id} --to {left_out.prompt}")
    else:
        facts[0] += "; the client kept no copies of files"
    return [f"left out, not lost: {left_out.span}", *facts]


def standing_card(receipt: Receipt, copied: Copied, text: str, *, slash: bool) -> str:
    """A ``>rewind`` whose checkpoint was used by the last one: the child that stands.

    A slash command was typed anew, so its ``text`` is another report; a ``>`` one may be a stray Enter, and is still in
    the input box.
    """
    unused = [f"your text was not used: {text}"] if slash and text else []
    facts = [f"{NONE} The last rewind used it, for this session.", *unused]
    return child_card("already rewound", receipt, copied, facts, slash=slash)


def none_card(text: str, *, slash: bool) -> str:
    """A ``>rewind`` without a checkpoint."""
    kept = f"\n\n  Your text: {text}" if text else ""
    return f"resume-hooks: {NONE}{kept}\n\n{_NOTHING}\n\nFirst: {'/resume-hooks:' if slash else '>'}checkpoint [goal]"


def age(mark: Mark) -> str:
    """How long ago a mark was set, in the largest unit that fits."""
    set_at = clock.parse(mark.started_at)
    seconds = max(0, round((datetime.now(UTC) - set_at).total_seconds())) if set_at else 0
    for name, size in _UNITS:
        if count := seconds // size:
            return f"{count} {name}{'s' * (count > 1)} ago"
    return "just now"


def _described(mark: Mark) -> Sequence[str]:
    goal = f"goal: {one_line(plain(mark.goal), ROW * 2)}" if mark.goal else "no goal given"
    return goal, f"after record {mark.session_id[:8]}:{mark.record}"
