"""How a digest is recognised: how its text begins, and the kind of the record that keeps it."""

from __future__ import annotations

HEAD = "digest of what was done before"
KIND = "resume-hooks-digest"
