"""Images on the page, held in it; whatever is not surely one of a few kinds is told of in words."""

from __future__ import annotations

import re

from resume_hooks.reading.export.page.markup import Html, element
from resume_hooks.reading.export.parts import MediaPart
from resume_hooks.transcripts.records import IMAGE

KINDS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds that hold pixels and nothing that runs."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")


def picture(found: MediaPart) -> Html:
    """An image, or what it is in words."""
    if found.kind == IMAGE and found.media_type in KINDS and _BASE64.fullmatch(found.data):
        source = Html(f"data:{found.media_type};base64,{found.data}")
        return element("p", element("img", src=source, alt=found.about, loading="lazy"))
    return element("p", f"[{found.about}]", class_="note")
