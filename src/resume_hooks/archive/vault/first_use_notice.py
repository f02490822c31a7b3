"""Said once: that sessions are archived beyond the client's period, how to stop that, and what was lost before."""

from __future__ import annotations

import os

from resume_hooks.paths import Where, private_folder
from resume_hooks.seam import answers
from resume_hooks.sessions.archived.layout import vault
from resume_hooks.storage.state_file import MODE
from resume_hooks.system.claude_settings import kept_days
from resume_hooks.system.invocation import typed

STAMP = "vault-told"
"""A file in the state folder: somebody was told."""


def line(where: Where, cwd: str = "/") -> str:
    """What to tell when something is archived for the first time; ``""`` ever after, or if nothing can be written.

    The question ``what was lost before``: given where things are; what comes back is a sentence, ``""`` for nothing.
    """
    try:
        private_folder(where.state, where)
        path = os.path.join(where.state, STAMP)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
    except OSError:
        return ""
    days = kept_days(cwd, where)
    period = "as long as the client does, and beyond" if days is None else f"beyond the client's {days} days"
    off = typed("config vault off")
    said = f"Transcripts are now kept {period}, in {vault(where)}. Off, in a shell: {off}"
    return " · ".join(filter(None, (said, *(lost(where) for lost in answers("what was lost before")))))
