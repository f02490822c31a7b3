"""What can be wrong with the index."""

from __future__ import annotations

from resume_hooks.errors import ResumeHooksError


class IndexDamaged(ResumeHooksError):
    """The index can't be read as one; it is to be built anew."""

    code = "index-damaged"


class IndexUnusable(ResumeHooksError):
    """The index can't be kept where it belongs: a read-only or full disk, or one that a newer version wrote."""

    code = "index-unusable"
