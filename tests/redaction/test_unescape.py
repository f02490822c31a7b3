"""Tests that the three decoders of escapes return the same text."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.redaction.unescape import View, Views, decode_layer

ESCAPED_TEXT_STRATEGY = st.text(
    st.sampled_from('\\\\\\\\"/ntbrfu0041dD8cC\n\x00 é\U0001f511a'), max_size=20
)


@given(ESCAPED_TEXT_STRATEGY)
def test_decode_layer_returns_the_same_text_as_a_view(text: str) -> None:
    """``decode_layer`` returns the same text as ``View``, or None if there is nothing to decode."""
    raw = text.encode()
    decoded = View(raw).text
    assert decode_layer(raw) == (None if decoded == raw else decoded)


@given(ESCAPED_TEXT_STRATEGY, st.booleans())
def test_a_json_string_is_decoded_to_the_same_text_as_its_view(text: str, is_ascii: bool) -> None:
    """A JSON string is decoded to the text that ``View`` returns, even if the JSON is invalid."""
    for raw in (text.encode(), json.dumps(text, ensure_ascii=is_ascii)[1:-1].encode()):
        decoded = View(raw).text
        assert next(iter(Views(raw, in_json=True))) == (
            (0, raw) if decoded == raw else (1, decoded)
        )
