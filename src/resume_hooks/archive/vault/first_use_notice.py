"""Said once: that sessions are kept beyond the client's period, and how to switch that off."""

from __future__ import annotations

import os
from collections.abc import Mapping

from resume_hooks.paths import private_folder, state_home
from resume_hooks.sessions.archived.layout import vault
from resume_hooks.storage.state_file import MODE
from resume_hooks.system.claude_settings import kept_days
from resume_hooks.system.invocation import typed

STAMP = "vault-told"
"""A file in the state folder: somebody was told."""


def line(environ: Mapping[str, str], cwd: str = "/") -> str:
    """What to tell when something is kept for the first time; ``""`` ever after, and where nothing can be written."""
    try:
        private_folder(state_home(environ))
        path = os.path.join(state_home(environ), STAMP)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
    except OSError:
        return ""
    days = kept_days(cwd, environ)
    period = "as long as the client does, and beyond" if days is None else f"beyond the client's {days} days"
    off = typed("config vault off", environ)
    return f"Transcripts are now kept {period}, in {vault(environ)}. Off, in a shell: {off}"
