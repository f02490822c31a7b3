"""Ask a model which of the offered pieces of content are not needed, and return its valid choices.

If the pieces do not fit into one call, the model is called several times.

Invariant: a choice is valid only once, and only if its number was in the text of the same call.
Each line that is quoted from the session is indented, so that it cannot be mistaken for one of our
numbered lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import BaseModel, Field, StrictInt

from resume_hooks.derive.model.port import CallCosts, Model, ModelCalls, ProgressCallback
from resume_hooks.derive.trim.plan import ASSISTANT, EARLIER_SUMMARY, USER, TrimmableSession
from resume_hooks.errors import HeadlessFailed
from resume_hooks.parts.smart_trim.offered_contents import Candidate, OfferedContents
from resume_hooks.parts.smart_trim.plan import Verdict, build_model_verdict
from resume_hooks.reading.char_budget import fit_both_ends, indent_text
from resume_hooks.system.text import collapse_line, format_count, plain_line, plain_text
from resume_hooks.transcripts.trimmable_pieces import (
    ATTACHMENT_PIECE,
    INPUT_PIECE,
    MEDIA_PIECE,
    RESULT_PIECE,
    TEXT_PIECE,
)

# Maximum number of characters of offered content in one call, about 17,000 tokens. If a call
# contains more, small models make worse choices.
MAX_CALL_CHARACTERS = 60_000
# Maximum number of pieces of content in one call. The answer needs about 60 tokens for each choice.
MAX_PIECES_PER_MODEL_CALL = 60
# Maximum number of characters in the outline, which is part of every call.
MAX_OUTLINE_CHARACTERS = 8_000
# Maximum number of characters to show of the last prompt, and of the last answer.
MAX_CHARACTERS_OF_LAST_MESSAGE = 1_500
# Maximum number of characters to show of a compaction's summary, which replaces the turns before
# it.
MAX_SUMMARY_CHARACTERS = 3_000
# Maximum number of characters of a message that is not a compaction's summary.
MAX_MESSAGE_CHARACTERS = 200
# Maximum number of characters in the target of a call, for example a path or a command.
MAX_TARGET_CHARACTERS = 160
MAX_PRECEDING_MESSAGES = (
    3  # Maximum number of messages that are shown before each offered piece of content.
)

_PIECE_KIND_LABELS = {
    RESULT_PIECE: "output of",
    INPUT_PIECE: "input of",
    MEDIA_PIECE: "image or document",
    ATTACHMENT_PIECE: "attached by the client",
    TEXT_PIECE: "said by the assistant",
}


class ModelCallPrompt(NamedTuple):
    """The text for one call of the model, and the numbers that identify the pieces of content in it."""

    text: str
    content_numbers: frozenset[int]


class _MessageExcerpt(NamedTuple):
    """The beginning of a message.

    ``message_index`` is the message's index in the conversation.
    """

    message_index: int
    turn_number: int
    speaker: str
    excerpt: str


def build_call_prompts(offer: OfferedContents) -> list[ModelCallPrompt]:
    """Return the prompts that ask the model to judge the offered pieces of content, one for each call.

    The list is empty if there is nothing for the model to judge.
    """
    trimmable = offer.trimmable
    messages = list(_build_excerpts(offer))
    prompts = []
    for message in messages:
        if message.speaker != ASSISTANT:
            prompts.append(_format_message(message))
    outline = fit_both_ends(
        (
            f"OUTLINE of the conversation, {format_count(trimmable.context.tokens, 'token')}, in the "
            "user's words:"
        ),
        prompts,
        MAX_OUTLINE_CHARACTERS,
        lambda first, last: f"... {last - first + 1} turns are left out",
    )
    heading = "\n".join(
        [
            outline,
            _format_last_messages(trimmable),
            "",
            "PIECES, in order, with the messages between them:",
        ]
    )
    call_prompts: list[ModelCallPrompt] = []
    blocks: list[str] = []
    numbers: list[int] = []
    for candidate, block in zip(offer.candidates, _format_contents(offer, messages), strict=True):
        if blocks and (
            len(blocks) == MAX_PIECES_PER_MODEL_CALL
            or sum(map(len, blocks)) + len(block) > MAX_CALL_CHARACTERS
        ):
            call_prompts.append(ModelCallPrompt("\n".join([heading, *blocks]), frozenset(numbers)))
            blocks, numbers = [], []
        blocks.append(block)
        numbers.append(candidate.number)
    if blocks:
        return [*call_prompts, ModelCallPrompt("\n".join([heading, *blocks]), frozenset(numbers))]
    return call_prompts


def _build_excerpts(offer: OfferedContents) -> Iterator[_MessageExcerpt]:
    for spoken in offer.trimmable.read_messages():
        max_characters = (
            MAX_SUMMARY_CHARACTERS if spoken.speaker == EARLIER_SUMMARY else MAX_MESSAGE_CHARACTERS
        )
        if spoken.speaker == USER:
            words = spoken.text_beginning
        else:
            words = collapse_line(
                plain_line(spoken.text_beginning[: 10 * max_characters]), max_characters
            )
        if words:
            yield _MessageExcerpt(
                spoken.message_index,
                offer.material.find_turn_number(spoken.message_index),
                spoken.speaker,
                words,
            )


def _format_last_messages(trimmable: TrimmableSession) -> str:
    """Return the last prompt and the last answer as text, because they show the current work."""
    last_messages: dict[str, str] = {}
    for spoken in trimmable.read_messages():
        if spoken.speaker == USER or (spoken.speaker == ASSISTANT and spoken.text.strip()):
            last_messages[spoken.speaker] = _shorten_text(spoken.text)
    lines = ["", "HOW IT ENDS (this stays as it is):"]
    for speaker in (USER, ASSISTANT):
        if speaker in last_messages:
            lines += [speaker, indent_text(plain_text(last_messages[speaker]))]
    return "\n".join(lines)


def _shorten_text(text: str) -> str:
    """Return ``text``. If it is too long, return only its start and its end."""
    if len(text) <= MAX_CHARACTERS_OF_LAST_MESSAGE:
        return text
    return f"{text[: MAX_CHARACTERS_OF_LAST_MESSAGE // 2]}\n...\n{text[-MAX_CHARACTERS_OF_LAST_MESSAGE // 2 :]}"


def _format_contents(offer: OfferedContents, messages: Sequence[_MessageExcerpt]) -> Iterator[str]:
    """Yield the text of each piece of content, preceded by the last few messages before the piece."""
    remaining_messages = [message for message in messages if message.speaker != EARLIER_SUMMARY]
    for candidate in offer.candidates:
        position = offer.material.chain_indexes_by_line_number[candidate.piece.line_number]
        preceding_messages = [
            message for message in remaining_messages if message.message_index < position
        ]
        remaining_messages = remaining_messages[len(preceding_messages) :]
        yield "\n".join(
            [
                *(
                    _format_message(message)
                    for message in preceding_messages[-MAX_PRECEDING_MESSAGES:]
                ),
                _format_candidate(candidate),
            ]
        )


def _format_message(message: _MessageExcerpt) -> str:
    return f"turn {message.turn_number} · {message.speaker}\n{indent_text(message.excerpt)}"


def _format_candidate(candidate: Candidate) -> str:
    """Return the text that shows a piece of content to the model: a heading and an excerpt."""
    piece = candidate.piece
    kind_name = _PIECE_KIND_LABELS[piece.kind]
    description = collapse_line(
        plain_line(
            f"{kind_name} {candidate.tool} {candidate.target}"[: 10 * MAX_TARGET_CHARACTERS]
        ),
        MAX_TARGET_CHARACTERS,
    )
    if piece.character_count:
        characters = f"{piece.character_count:,} characters, "
    else:
        characters = ""
    size = f"{characters}about {candidate.token_count:,} tokens"
    heading = " · ".join(
        [
            f"#{candidate.number}",
            f"turn {candidate.turn_number}",
            description,
            size,
            *candidate.notes,
        ]
    )
    return f"{heading}\n{indent_text(candidate.excerpt)}"


TASK_TEXT = """\
You help a user to continue a long working session of a coding assistant. The conversation is close to the limit of \
its context, so contents that nobody needs any more are replaced by short placeholders. Nothing is lost: each \
placeholder names the original, and the assistant can read it again.

You are given an outline of the conversation, how it ends, and numbered pieces of it. Of each piece you see its size, \
what became of it, and its beginning and end. Choose the pieces that are no longer needed to continue the work:
- outputs that nothing refers to any more, such as listings, searches and logs whose findings were said in words;
- attempts that were abandoned, and their errors;
- versions of files or texts that were superseded;
- contents that are also elsewhere in the conversation.
Keep what the work at the end builds on: current contents of files being worked on, decisions, requirements, facts \
that were not said again, errors that are still open. When in doubt, keep it.

For each piece that you choose give its number, a description that tells the assistant what was there in at most 12 \
words (what it was and its result, such as "test run, 3 failures in test_parser, fixed later"), and a rationale for \
the user in at most 15 words. Choose nothing if everything is needed. Pieces that you don't name stay as they are."""

USER_INSTRUCTIONS_HEADING = "The user's own instructions, which override all of this:"
SUPERSEDED_NOTE_INSTRUCTION = (
    "Where a note says that a piece was superseded, repeated or undone, it can be "
    "dropped unless these instructions want it."
)

MIN_SHOWN_COST_USD = 0.0001  # Minimum cost, in US dollars, that a message mentions.
ADVICE_TO_TRIM_WITHOUT_MODEL = (
    "Nothing was written. To trim without a model: resume-hooks trim {session}"
)


class ModelChoice(BaseModel):
    """The model's choice of a piece of content that is not needed."""

    number: StrictInt = Field(description="the number of the piece, as shown")
    description: str = Field(description="what was there, at most 12 words")
    rationale: str = Field(description="why the work does not need it any more, at most 15 words")


class ModelAnswer(BaseModel):
    """The answer of the model. The list of choices may be empty."""

    choices: list[ModelChoice]


class ModelResult(NamedTuple):
    """The choices of a model.

    ``unknown_number_count`` is the number of choices that name a number which is not in the text
    for the model. ``duplicate_choice_count`` is the number of choices that name the number of an
    earlier choice.
    """

    verdicts: tuple[Verdict, ...] = ()
    unknown_number_count: int = 0
    duplicate_choice_count: int = 0
    costs: CallCosts = CallCosts()


def ask_model_about_offer(
    model: Model,
    offer: OfferedContents,
    instructions: str,
    max_seconds: float,
    progress: ProgressCallback,
) -> ModelResult:
    """Ask the model about all offered pieces of content, in at most ``max_seconds`` seconds.

    Raises HeadlessFailed if a call fails.
    """
    call_prompts, calls = build_call_prompts(offer), ModelCalls(model, max_seconds, progress)
    verdicts: list[Verdict] = []
    unknown_count = repeated_count = 0
    tasks = ((format_task(instructions), call_prompt.text) for call_prompt in call_prompts)
    try:
        for call_prompt, answer in zip(
            call_prompts, calls.ask_all(tasks, len(call_prompts), ModelAnswer), strict=True
        ):
            valid_choices = []
            for choice in answer.choices:
                if choice.number in call_prompt.content_numbers:
                    valid_choices.append(choice)
            first_choices = {choice.number: choice for choice in reversed(valid_choices)}
            for choice_of_number in first_choices.values():
                verdicts.append(
                    build_model_verdict(
                        offer,
                        choice_of_number.number,
                        choice_of_number.description,
                        choice_of_number.rationale,
                    )
                )
            unknown_count += len(answer.choices) - len(valid_choices)
            repeated_count += len(valid_choices) - len(first_choices)
    except HeadlessFailed as error:
        cost = calls.spent.cost_usd or 0.0
        if cost >= MIN_SHOWN_COST_USD:
            cost_text = f" ({cost:.4f} USD were spent)"
        else:
            cost_text = ""
        message = f"The model chose nothing: {error.message}{cost_text}"
        remedy = ADVICE_TO_TRIM_WITHOUT_MODEL.format(session=offer.trimmable.session.session_id)
        raise HeadlessFailed(
            message, f"{error.remedy} {remedy}".strip(), calls.spent.cost_usd
        ) from error
    return ModelResult(tuple(verdicts), unknown_count, repeated_count, calls.spent)


def format_task(instructions: str) -> str:
    """Return the task for the model. If the user gave instructions, they are part of it."""
    return "\n\n".join(
        [TASK_TEXT, USER_INSTRUCTIONS_HEADING, instructions.strip(), SUPERSEDED_NOTE_INSTRUCTION]
        if instructions.strip()
        else [TASK_TEXT]
    )
