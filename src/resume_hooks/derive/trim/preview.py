"""The numbers of a trim for people and programs: before and after, by rule and tool, the largest items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from resume_hooks.derive.trim.options import RULE_WORDS
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.derive.trim.selection import SavingsRow
from resume_hooks.system.text import counted, one_line, plain_line

NAMED = 5  # pieces that a person is shown one by one
ROWS = 12  # of a table: the client shows 60 lines of a message in full
COLUMNS = 72
BRIEF = 42  # columns of what is named in a card


def preview(decided: TrimPlan) -> str:
    """What a trim would do, in lines of at most about eighty columns; tokens first, bytes second."""
    saved = decided.savings
    lines = totals(decided)
    if saved.rules:
        for name, rows in (("by rule", saved.rules), ("by tool", saved.tools)):
            words = RULE_WORDS if rows is saved.rules else {}
            lines += ["", *_table(name, [row for row in rows if row.tokens_before > row.tokens_after], words)]
        lines += ["", "largest"]
        for piece in saved.largest[:NAMED]:
            what = line_of(f"{piece.tool or piece.rule} {piece.target}")
            lines.append(f"  {piece.tokens:>8,}  {what}  {piece.original}")
    return "\n".join([*lines, *(f"\n{sentence}" for sentence in remarks(decided))])


def brief(decided: TrimPlan) -> str:
    """What a trim would do, in a card's few lines: the totals, the largest piece, what should be known."""
    largest = [
        f"largest: {one_line(plain_line(f'{piece.tool or piece.rule} {piece.target}'), BRIEF)}, {piece.tokens:,} tokens"
        for piece in decided.savings.largest[:1]
    ]
    return "\n".join([*totals(decided), *largest, *remarks(decided)])


def totals(decided: TrimPlan) -> list[str]:
    """Before, which may be more than is in use now, after, and the difference."""
    before, after, saved = decided.before, decided.after, decided.savings
    about = "" if before.measured else "about "
    sent = f"a resume sends {about}{before.tokens:,} tokens ({before.percent} % of {before.limit:,})"
    records = counted(len({choice.piece.number for choice in decided.choices}), "record")
    return [
        f"{sent}, after the trim about {after.tokens:,} ({after.percent} %)",
        f"saves about {saved.tokens:,} tokens, {saved.characters:,} characters in {records}",
    ]


def remarks(decided: TrimPlan) -> list[str]:
    """What a person should know before deciding: whether it pays, fits the target, and would be compacted at once."""
    sentences = [f"No tool of this conversation is called {name}." for name in decided.decision.unknown_tools]
    if not decided.pays:
        sentences.append(f"Trimming would not pay: it would save less than {decided.options.min_savings:,} tokens.")
    elif decided.after.compacts_at_once:
        sentences.append(
            "It would still be compacted at once: trim more (--target-tokens, --keep-recent 0), or hand off."
        )
    target = decided.options.target_tokens
    if target and decided.after.tokens > target:
        sentences.append(f"The target of {target:,} tokens is not reached: nothing else may go with these options.")
    return sentences


def _table(name: str, rows: Sequence[SavingsRow], words: Mapping[str, str]) -> list[str]:
    shown = [
        f"  {row.tokens_before - row.tokens_after:>8,}  {plain_line(row.name)[:40]} ({row.pieces:,}){about}"
        for row in rows[:ROWS]
        for about in [f": {words[row.name]}" if row.name in words else ""]
    ]
    return [name, *shown, *([f"  and {len(rows) - ROWS} more"] if len(rows) > ROWS else [])]


def line_of(text: str) -> str:
    """Foreign text as a cell of a preview."""
    return one_line(plain_line(text), COLUMNS)
