"""Texts and pictures of items as the blocks of our records."""

from __future__ import annotations

import re

from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, mapping, positive, string

MAX_PICTURE = 8 * 1024 * 1024  # characters of a picture's encoding; of a larger one a record says that it was there
_PICTURE = re.compile(r"</?image\b[^>]{0,200}>")
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,")
_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})\b")
TELLING = 400  # characters of an output's beginning that tell how a command ended


def message_blocks(item: Record) -> list[Record]:
    """The texts and pictures of a message, without the marks that stand around pictures."""
    found = [_block(part) for part in of_items.parts(item)]
    return [block for block in found if block and not _PICTURE.fullmatch(string(block, "text").strip())]


def _block(part: Record) -> Record | None:
    if string(part, "type") == "input_image":
        return _picture(part.get("image_url"))
    text = string(part, "text")
    return {"type": records.TEXT, "text": text} if text.strip() else None


def _picture(url: object) -> Record:
    where = url if isinstance(url, str) else ""
    match = _DATA.match(where)
    if len(where) > MAX_PICTURE:
        return {"type": records.TEXT, "text": f"[A picture of {len(where):,} characters, which is left out here.]"}
    if match is None:
        return {"type": records.IMAGE, "source": {"type": "url", "url": where}}
    source = {"type": "base64", "media_type": match[1], "data": where[match.end() :]}
    return {"type": records.IMAGE, "source": source}


def output_blocks(item: Record) -> tuple[str | list[Record], bool]:
    """What an output says, and whether it says that the call failed."""
    found = [block for part in of_items.parts(item) if (block := _block(part))]
    text = string(found[0], "text") if found else ""
    failed = mapping(item, "output").get("success") is False
    if text.startswith('{"output":'):  # how old clients told how a command ended
        inner = records.parse(text.encode()) or {}
        failed = failed or bool(positive(mapping(inner, "metadata").get("exit_code")))
        text = string(inner, "output") if inner else text
        found[0] = {"type": records.TEXT, "text": text}
    match = _EXIT.search(text[:TELLING])
    failed = failed or (match is not None and int(match[1]) != 0)
    return (text if len(found) == 1 and "text" in found[0] else found or ""), failed
