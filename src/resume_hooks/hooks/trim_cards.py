"""The texts of ``>trim``. Each ends in its useful line of at most 40 columns: a busy client shows no more."""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim.in_client import STAY_IN_PLACE
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.derive.trim.preview import remarks, totals
from resume_hooks.hooks.child_cards import child_card
from resume_hooks.hooks.confirmations import OPEN, Question
from resume_hooks.hooks.plain_cards import NOTHING, ROW, refusal_card
from resume_hooks.hooks.triggers import BARE, Trigger
from resume_hooks.system.clipboard import Copied
from resume_hooks.system.text import one_line

_WAYS = """\
  make it            {trim} yes
  other options      {trim} [options]
  what they are      {trim} help
  discard this       {trim} cancel"""


def question_card(preview: str, options: str, unkept: str, trim: str) -> str:
    """What a trim would do, and how to confirm it; ``unkept`` says why no confirmation can be waited for."""
    if unkept:
        return f"trim · nothing is written\n{_with(options)}{_indented(preview)}\n\n  {unkept}\n\n{NOTHING}"
    yes = f"{trim} yes"
    # The first line says it too: beside a working model, client 2.1.329 shows it where one of the lines is wide.
    first = f"trim · type {yes} · nothing is written yet"
    return f"{first}\n{_with(options)}{_indented(preview)}\n{_WAYS.format(trim=trim)}\nTo make it: {yes}"


def short_question(decided: TrimPlan) -> str:
    """The same in four lines at most, where the client asks it itself and can trim in place, too."""
    stays, pays = staying(decided), pays_in_place(decided)
    after = f"in place about {decided.after.tokens + stays:,}: what you pasted, and what was attached, stays"
    return "\n".join([*totals(decided), *[after] * bool(stays and pays), *remarks(decided)[-1:]])


def staying(decided: TrimPlan) -> int:
    """Tokens that a trim in place leaves and a copy does not."""
    stay = [each for each in decided.choices if each.piece.kind in STAY_IN_PLACE]
    characters = sum(each.piece.characters - len(each.placeholder) - each.kept for each in stay)
    return round(characters / decided.savings.ratio)


def pays_in_place(decided: TrimPlan) -> bool:
    """Whether a trim in place saves enough to be offered."""
    return decided.savings.tokens - staying(decided) >= decided.options.min_savings


def no_use_card(preview: str, handoff: str) -> str:
    """A trim that would not pay, with its numbers and what would."""
    return f"trim · not worth a new session\n{_indented(preview)}\n\n{NOTHING}\n\nInstead: {handoff}"


def help_card(options: str, trigger: Trigger, *, asked: bool) -> str:
    """The options; where the module runs how to trim in place, where a question is open the words that answer."""
    trim = trigger.name("trim")
    here = [f"  in place           {trim} here [options]"] if trigger.sign == BARE else []
    ways = "\n".join([*here, *([_WAYS.format(trim=trim)] if asked else [])])
    return "\n\n".join(filter(None, [f"{trim} {options}", ways, f"Type: {trim}"]))


def cancelled_card(*, asked: bool) -> str:
    """``>trim cancel``."""
    return refusal_card("the question is forgotten" if asked else "no question about a trim is open")


def unasked_card(trim: str) -> str:
    """A yes where nothing was asked."""
    words = "there is nothing to confirm: no question about a trim is open"
    return refusal_card(words, last=f"First: {trim}")


def answered_card(question: Question, trim: str, *, gone: bool) -> str:
    """A yes to what was asked too long ago, or answered, and then gone on from or, if ``gone``, deleted."""
    words = f"there is nothing to confirm: the question is older than {OPEN // 60} minutes"
    if question.child:
        since = "its file is gone" if gone else "it has been continued since"
        words = f"this trim was confirmed already and made {question.child}; {since}"
    again = f"  To be asked again:  {trim} {question.options}".rstrip()
    return refusal_card(words, again, last=f"First: {trim}")


def busy_card(trim: str) -> str:
    """A yes beside another one that is still at work."""
    return refusal_card("another prompt is making this trim right now", last=f"In a moment: {trim} yes")


def trimmed_card(receipt: Receipt, copied: Copied, options: str, notes: Sequence[str], *, slash: bool) -> str:
    """``>trim yes``: the child, what it saves, and the two ways into it."""
    facts = [
        f"about {receipt.tokens_before - receipt.tokens_after:,} tokens are placeholders now; each names its original",
        *([f"options: {one_line(options, ROW)}"] if options else []),
        *notes,
    ]
    return child_card("trimmed" if receipt.written else "already trimmed", receipt, copied, facts, slash=slash)


def _with(options: str) -> str:
    return f"  options: {one_line(options, ROW)}\n" if options else ""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.split("\n"))
