"""A digest out of a session and its ancestors."""

from __future__ import annotations

from collections.abc import Mapping

from resume_hooks.digest.entries import Digest, Entry
from resume_hooks.glance import Glance, one_line
from resume_hooks.plain import plain_line
from resume_hooks.store import SessionFile


def digest_of(session: SessionFile, environ: Mapping[str, str]) -> Digest:  # noqa: ARG001
    """The digest of a session. SessionNotFound where it can't be read."""
    first = one_line(plain_line(Glance(session.path).first_prompt), 300)
    return Digest({"goal": (Entry(first, f"{session.session_id}:0", "first"),)} if first else {})
