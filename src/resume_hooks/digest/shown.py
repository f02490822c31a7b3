"""A digest as text: YAML-like, for a model and for people. Nothing in it is longer than its budget."""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.digest.entries import SECTIONS, Digest, Entry

OPENING = 3_600
"""Characters of the digest that a child opens with: about 900 tokens."""


def opening(digest: Digest, session_id: str, line: int) -> str:
    """The tier that goes into a child: ranked, cut to ``OPENING``; the whole is at ``<session_id>:<line>``."""
    return f"{facts(digest, SECTIONS, OPENING)}\n(whole: read {session_id[:8]}:{line})"


def full(digest: Digest) -> str:
    """Everything."""
    return facts(digest, SECTIONS, 0)


def facts(digest: Digest, sections: Sequence[str], limit: int) -> str:
    """Some sections, as many of their entries as ``limit`` characters hold (0: all); ``""`` for none."""
    lines = []
    for name in sections:
        if entries := digest.of(name):
            lines += [f"{name}:", *(f"  - {_shown(entry)}" for entry in entries)]
    text = "\n".join(lines)
    return text[:limit] if limit else text


def _shown(entry: Entry) -> str:
    note = f" ({entry.note})" if entry.note else ""
    ref = f" [{entry.ref}]" if entry.ref else ""
    return f"{entry.text}{note}{ref}"
