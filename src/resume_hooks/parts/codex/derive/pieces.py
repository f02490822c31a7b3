"""What a trim may replace in the items of a Codex session, and how: outputs, inputs, images, pastes, long answers.

Never what is encrypted: the provider takes it back whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules import TrimMaterial, protected_from
from resume_hooks.derive.trim.selection import HEAD, TAIL, Choice
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.transcripts.attachments import Address
from resume_hooks.transcripts.placeholders import (
    SHORTEST,
    is_placeholder,
    stands_for_answer,
    stands_for_something,
)
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.trimmable_pieces import INPUT, MEDIA, PROMPT, RESULT, TEXT, Piece, ToolCall

IMAGE_TOKENS = 1_600  # what an image costs at most; its size is not looked at

_TARGETS = ("cmd", "command", "path", "file_path", "query", "url", "input")
_FAILED = re.compile(r'(?:exited with code|Exit code:|"exit_code":)\s*[1-9]')
_REACH = 400  # characters at an output's start in which its exit code stands


def material(payloads: Sequence[Record], options: Options) -> TrimMaterial:
    """What can be trimmed of the items of a history, by their places in it."""
    found: list[Piece] = []
    calls: dict[str, ToolCall] = {}
    answered: dict[str, int] = {}
    failed: set[str] = set()
    for place, item in enumerate(payloads):
        kind, own = of_items.kind(item), of_items.call_id(item)
        if kind in of_items.CALLS:
            calls[own] = _call(item, place)
            found += _of_call(item, place, own)
        elif kind in of_items.OUTPUTS and own in calls:
            answered[own] = place
            if _FAILED.search(of_items.text(item)[:_REACH]):
                failed.add(own)
            found += _of_output(item, place, own)
        elif kind == of_items.MESSAGE:
            found += _of_message(item, place)
    prompts = [place for place, item in enumerate(payloads) if of_items.is_prompt(item)]
    return TrimMaterial(
        pieces=tuple(found),
        places={place: place for place in range(len(payloads))},
        protected=protected_from(prompts, sorted(answered.values()), len(payloads), options),
        last_turn=prompts[-1] if prompts else 0,
        calls=calls,
        answered=frozenset(answered),
        failed=frozenset(failed),
        answers_gone=sum(
            string(item, "role") == "assistant" and stands_for_answer(of_items.text(item)) for item in payloads
        ),
        prompts=tuple(prompts),
    )


def value(payload: Record, address: Address) -> Any:
    """What stands at a piece's address in an item."""
    found: Any = payload
    for step in address:
        found = of_items.arguments(found) if step == "arguments" else found[step]
    return found


def edited(payload: Record, choices: Sequence[Choice]) -> Record:
    """An item in which each chosen piece is its placeholder; the one that is given stays as it is."""
    for choice in choices:
        payload = _replaced(payload, choice.piece.address, choice)
    return payload


def _call(item: Record, place: int) -> ToolCall:
    """A call, with what it is about; a command may be a list of words."""
    given = of_items.arguments(item)
    values = (value if isinstance(value, list) else [value] for value in map(given.get, _TARGETS))
    targets = (" ".join(word for word in words if isinstance(word, str)) for words in values)
    return ToolCall(place, string(item, "name") or of_items.kind(item), next(filter(None, targets), ""), ())


def _of_call(item: Record, place: int, own: str) -> Iterator[Piece]:
    if of_items.kind(item) == "custom_tool_call":
        given: Record = {"input": item.get("input")}
        at: tuple[str, ...] = ()
    elif isinstance(item.get("arguments"), str):
        given, at = of_items.arguments(item), ("arguments",)
    else:
        return
    for key, text in given.items():
        if isinstance(text, str) and len(text) > SHORTEST and not stands_for_something(text):
            yield Piece(place, (*at, key), INPUT, len(text), call=own)


def _of_output(item: Record, place: int, own: str) -> Iterator[Piece]:
    told = item.get("output")
    if isinstance(told, str):
        if len(told) > SHORTEST and not is_placeholder(told):
            yield Piece(place, ("output",), RESULT, len(told), call=own, digest=hash(told))
        return
    for index, part in enumerate(told if isinstance(told, list) else ()):
        if not isinstance(part, dict):
            continue
        if string(part, "type") == "input_image":
            yield Piece(place, ("output", index), MEDIA, 0, IMAGE_TOKENS, call=own)
        elif len(text := string(part, "text")) > SHORTEST and not is_placeholder(text):
            yield Piece(place, ("output", index, "text"), RESULT, len(text), call=own, digest=hash(text))


def _of_message(item: Record, place: int) -> Iterator[Piece]:
    assistant, prompt = string(item, "role") == "assistant", of_items.is_prompt(item)
    content = item.get("content")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict) or not (assistant or prompt):
            continue
        if string(part, "type") == "input_image":
            yield Piece(place, ("content", index), MEDIA, 0, IMAGE_TOKENS)
        elif len(text := string(part, "text")) > SHORTEST and not stands_for_something(text):
            yield Piece(place, ("content", index, "text"), TEXT if assistant else PROMPT, len(text))


def _replaced(value: Any, path: Address, choice: Choice) -> Any:
    """``value`` with the piece at ``path`` replaced; what does not lie on the way is not copied."""
    if not path:
        if choice.piece.kind == MEDIA:
            return {"type": "input_text", "text": choice.placeholder}
        if choice.piece.kind == PROMPT:
            return f"{value[:HEAD]}\n{choice.placeholder}\n{value[-TAIL:]}"
        return choice.placeholder
    step, *rest = path
    if step == "arguments":
        return {**value, step: orjson.dumps({**of_items.arguments(value), str(rest[0]): choice.placeholder}).decode()}
    changed: Any = list(value) if isinstance(value, list) else dict(value)
    changed[step] = _replaced(value[step], tuple(rest), choice)
    return changed
