"""Find the next steps in the talk: an open question or offer, an announced step, and postponed work.

Invariant: every row quotes a record. If the talk does not mention a next step, there is no row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.reading.digest import prose
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_remember_secrets
from resume_hooks.reading.digest.facts import Quote
from resume_hooks.reading.digest.talk import MAX_TYPED_CHARACTERS
from resume_hooks.redaction.lazy_patterns import compile_lazily

# A row has at most MAX_ROW_CHARACTERS characters. If it quotes an offer, the first
# MAX_OFFER_CHARACTERS characters of the offer always fit.
MAX_ROW_CHARACTERS, MAX_OFFER_CHARACTERS = 420, 380
# At most this many characters at the end of an answer are searched for next steps.
MAX_SEARCHED_ANSWER_CHARACTERS = 6_000
MAX_STEPS_PER_ANSWER = 3  # At most this many steps are quoted from one answer.
# The maximum number of characters in a line that introduces a list of steps.
MAX_STEPS_HEADING_CHARACTERS = 80
MAX_EARLIER_ANSWERS = 3  # How many answers before the last one are searched for steps.
# How many of the latest prompts are searched for work that the user postponed.
MAX_SEARCHED_PROMPTS = 12
MAX_QUOTED_POSTPONEMENTS = 2  # The maximum number of sentences about postponed work.

_PROMISE_PATTERN = compile_lazily(
    r"\b(?:let me|i'll|i will|i'm going to|let's)\s+(?:also |now |first |just |quickly )*"
    r"(?:run|check|fix|add|update|read|look|verify|search|find|write|create|implement|start|continue|test|commit|push|"
    r"make|see|explore|examine|investigate|review)\b"
    r"(?![^?]*(?<!\bsee )(?<!\bcheck )\b(?:if|once|when|after)\b)[^?]{0,200}\Z",
    re.IGNORECASE,
)
_STEPS_HEADING_PATTERN = compile_lazily(
    r"(?:recommended |suggested |possible |the )?(?:next steps?|follow[- ]?ups?|"
    r"open (?:items|points|questions)|loose ends)\b"
    r"|(?:remaining|outstanding)(?: (?:work|steps?|tasks?|items|todos?))?(?:\W|\Z)"
    r"|(?:two|three|four|some) (?:loose ends|things (?:left|remain))\b"
    r"|(?:what(?:'s| is) (?:left|still (?:open|missing))|"
    r"still (?:to do|open|left|missing)|left to do|not (?:yet )?done)\b",
    re.IGNORECASE,
)
"""The first words of a line that introduces the remaining steps."""

_STEP_MENTION_PATTERN = compile_lazily(
    r"\b(?:(?:the|your) next (?:step|task|phase)\b|next up\b|still (?:needs?|has|have) to\b|remains? to be\b|"
    r"left to do\b|"
    r"(?:once|after|when) (?:you|that|this|it|the \w+)(?:'re|'s)? (?:\w+ )?(?:satisfied|happy|merged?|merges|green|"
    r"done|passes|approved?)\b|(?:is|are)(?:n't| not) (?:yet )?(?:pushed|committed|merged|deployed)\b|"
    r"you (?:may|might|should|can|could)(?: also)?(?: want to| need to) \w+|you'll (?:still )?(?:need|have) to\b|"
    r"waiting (?:for|on) (?:the )?(?:ci|review|build|checks?|pr|pipeline)\b|대기 중|통과하면)",
    re.IGNORECASE,
)
"""Words in a sentence that mentions a remaining step."""

_POSTPONEMENT_PATTERN = compile_lazily(
    r"\b(?:later on|for later|(?:do|worry|look|handle|fix|tackle|address|discuss)\b[^.?!]{1,60}\blater\b|"
    r"(?:in|as|for) (?:a|an|another|the) (?:separate|follow-?up|later|next|new) (?:pr|issue|change|commit|session)\b)",
    re.IGNORECASE,
)
"""Words with which the user postpones work."""

_PUBLISHING_REQUEST_START_PATTERN = compile_lazily(
    r"\W*(?:(?:ok(?:ay)?|yes|great|thanks|now|please|and|then|can you|let's)\b\W*)*"
    r"(?:commit|push|merge|rebase|"
    r"create (?:a |the )?(?:draft )?(?:pr|pull request)|open (?:a |the )?(?:pr|pull request))\b",
    re.IGNORECASE,
)
"""The first words of a short request that only asks to commit or publish the finished work."""

# The maximum number of characters in a request that only asks to commit or publish.
MAX_PUBLISHING_REQUEST_CHARACTERS = 60


def list_next_steps(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the next steps that the talk mentions, the most certain first."""
    last_quote = facts.words_since_prompt
    is_at_work = last_quote is not None and facts.last_call_order > last_quote.position.order
    if not is_at_work:  # The last words announce a step, but a later call already carried it out.
        if last_quote is not None:
            yield from _list_steps_of_last_answer(last_quote)
        yield from _list_steps_of_earlier_answers(facts)
    yield from _list_postponed_work(facts)


def ends_with_announcement(quote: Quote) -> bool:
    """Check whether a text's last line announces a next step of the assistant or ends with a colon."""
    last_line = prose.straighten_apostrophes(quote.text.rstrip().rpartition("\n")[2])
    return last_line.endswith((":", "：")) or _PROMISE_PATTERN.search(last_line) is not None  # noqa: RUF001


def mentions_next_step(quote: Quote) -> bool:
    """Check whether an answer ends with a question, an offer, or an announced or remaining step."""
    if ends_with_announcement(quote):
        return True
    return next(_list_steps_of_last_answer(quote), None) is not None


def _list_steps_of_last_answer(quote: Quote) -> Iterator[DigestEntry]:
    """Yield the next steps in the assistant's last words.

    These are an announcement, a question or an offer at the end of the words, and any remaining
    steps that the words mention.
    """
    text = redact_and_remember_secrets(quote.text)
    sentences = prose.find_last_sentences(text)
    if ends_with_announcement(quote):
        if sentences:
            row_text = f'announced but not done: "{sentences[-1]}"'
            yield make_entry(row_text, quote.position, max_characters=MAX_ROW_CHARACTERS)
        return
    request = prose.find_request_at_end(text)
    if any(prose.is_question(sentence) for sentence in prose.split_sentences(request)):
        yield make_entry(
            f'the answer to: "{request}"', quote.position, max_characters=MAX_ROW_CHARACTERS
        )
    elif request:
        yield make_entry(
            f'not answered by the user yet: "{request}"',
            quote.position,
            max_characters=MAX_ROW_CHARACTERS,
        )
    steps = _find_steps_under_heading(text)
    if not steps:
        for sentence in sentences[-2 * MAX_STEPS_PER_ANSWER :]:
            if (
                _STEP_MENTION_PATTERN.search(prose.straighten_apostrophes(sentence))
                and sentence not in request
            ):
                steps.append(sentence)
    # Only this part of the offer is certain to fit into the offer's row. A step that comes after
    # this part gets its own row.
    offered_text = request[:MAX_OFFER_CHARACTERS]
    for step in steps[:MAX_STEPS_PER_ANSWER]:
        if all(option in offered_text for option in step.split(OPTION_SEPARATOR)):
            continue
        yield make_entry(
            f'named in the last answer: "{step}"', quote.position, max_characters=MAX_ROW_CHARACTERS
        )


def _list_steps_of_earlier_answers(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the steps that an earlier answer lists under a heading.

    If any later request asks for more than a commit or a publication, yield nothing.
    """
    for quote in reversed(facts.closing_quotes[-MAX_EARLIER_ANSWERS:]):
        later_prompts = [
            prompt
            for prompt in facts.prompts.quotes
            if prompt.position.order > quote.position.order
        ]
        if not all(_is_publishing_request(prompt) for prompt in later_prompts):
            return
        steps = _find_steps_under_heading(redact_and_remember_secrets(quote.text))
        for step in steps[:MAX_STEPS_PER_ANSWER]:
            yield make_entry(
                f'named in an answer before the last commit: "{step}"',
                quote.position,
                max_characters=MAX_ROW_CHARACTERS,
            )
        if steps:
            return


def _is_publishing_request(prompt: Quote) -> bool:
    """Check whether a request only asks to commit or publish the finished work."""
    return (
        len(prompt.text) <= MAX_PUBLISHING_REQUEST_CHARACTERS
        and _PUBLISHING_REQUEST_START_PATTERN.match(prompt.text) is not None
    )


def _list_postponed_work(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the sentences in which the user postpones work, the latest first."""
    count = 0
    for quote in reversed(facts.prompts.quotes[-MAX_SEARCHED_PROMPTS:]):
        if len(quote.text) > MAX_TYPED_CHARACTERS or quote.position in facts.foreign_prompts:
            continue
        for sentence in prose.split_sentences(
            redact_and_remember_secrets(prose.keep_typed_text(quote.text))
        ):
            if (
                _POSTPONEMENT_PATTERN.search(sentence)
                and not prose.is_question(sentence)
                and count < MAX_QUOTED_POSTPONEMENTS
            ):
                count += 1
                yield make_entry(
                    f'postponed by the user: "{sentence}"',
                    quote.position,
                    max_characters=MAX_ROW_CHARACTERS,
                )


def _find_steps_under_heading(text: str) -> list[str]:
    """Return the items of the last list under a heading for remaining steps.

    If the heading presents the steps as alternatives, return all of them as one item.
    """
    steps: list[str] = []
    is_in_list = are_options = False
    for row in prose.remove_code_blocks(text)[-MAX_SEARCHED_ANSWER_CHARACTERS:].split("\n"):
        plain_row = prose.MARKUP_PATTERN.sub("", row).strip()
        if _introduces_steps(row, plain_row):
            steps = []
            is_in_list = True
            are_options = _OPTIONS_HEADING_PATTERN.search(plain_row) is not None
        elif (
            is_in_list
            and prose.MARKUP_PATTERN.match(row)
            and not row.lstrip().startswith(("#", "|"))
        ):
            if not row.startswith((" ", "\t")):  # An indented row explains the item above it.
                steps.append(prose.cut_line(plain_row))
        elif plain_row and (steps or row.startswith("#")):
            is_in_list = False
    if are_options and len(steps) > 1:
        shown_steps = [
            prose.cut_line(step, MAX_OFFERED_OPTION_CHARACTERS)
            for step in steps[:MAX_STEPS_PER_ANSWER]
        ]
        return [OPTION_SEPARATOR.join(shown_steps)]
    return steps


_OPTIONS_HEADING_PATTERN = compile_lazily(
    r"\b(?:options?|alternatives?|choices?|either|(?:pick|choose)\s+(?:one|from))\b", re.IGNORECASE
)
"""Words in a heading that offers the steps below it as options."""
MAX_OFFERED_OPTION_CHARACTERS = 120  # The maximum number of characters shown of each option.
# Separates options inside a quoted string: it closes the quotes after one option and opens them
# before the next.
OPTION_SEPARATOR = '" or "'


def _introduces_steps(row: str, plain_row: str) -> bool:
    """Check whether a line is the heading of a list of remaining steps.

    ``plain_row`` is the line without its markup.
    """
    is_heading = row.startswith(("#", "**")) or plain_row.rstrip("*_").endswith(":")
    return (
        is_heading
        and len(plain_row) <= MAX_STEPS_HEADING_CHARACTERS
        and _STEPS_HEADING_PATTERN.match(plain_row.lstrip("*_ ")) is not None
    )
