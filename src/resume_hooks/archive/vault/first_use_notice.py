"""The first copy of what the client would delete: asked for where the client can ask, else told once.

Until the answer our links hold what the client deletes (``archive/held``), and nothing is copied.
"""

from __future__ import annotations

import os

from resume_hooks import settings
from resume_hooks.paths import Where, private_folder
from resume_hooks.seam import answers
from resume_hooks.sessions.archived.layout import vault
from resume_hooks.storage.state_file import MODE
from resume_hooks.system.claude_settings import kept_days, managed_days
from resume_hooks.system.invocation import typed

STAMP = "vault-told"
"""A file in the state folder: somebody was told, or has answered."""

CAN_ASK = os.path.join("pending", "can-ask")
"""One that ``hooks/offered`` leaves there: a client that can ask was started."""

TO_ASK = os.path.join("pending", "ask-vault")
"""One that has the module ask at the next start, which renames it."""

ASKING = os.path.join("pending", "asking-vault")
"""What it is called then, until the engine was asked for the question."""


def is_open(where: Where) -> bool:
    """Whether the user is to be asked first: there is a client that can, and nobody was told or has chosen.

    Not where an employer has decided.
    """
    return (
        os.path.exists(os.path.join(where.state, CAN_ASK))
        and not os.path.exists(os.path.join(where.state, STAMP))
        and settings.load(where)["vault"].source == "default"
        and not managed_days()[1]
    )


def ask_next(where: Where) -> None:
    """Have the next start ask. OSError where the state folder can't be written."""
    _leave(TO_ASK, where)


def take(where: Where) -> bool:
    """Whether this start is to ask; the next one is not."""
    try:
        os.unlink(os.path.join(where.state, ASKING))
    except OSError:
        return False
    return is_open(where)


def unanswered_until(where: Where) -> float:
    """When somebody who could be asked had answered, in seconds since the epoch: nobody yet, infinity; no need, 0."""
    if not os.path.exists(os.path.join(where.state, CAN_ASK)):
        return 0.0
    try:
        return os.lstat(os.path.join(where.state, STAMP)).st_mtime
    except OSError:
        return float("inf")


def settle(where: Where) -> None:
    """Note that there is an answer. OSError where the state folder can't be written."""
    _leave(STAMP, where)


def line(where: Where, cwd: str = "/") -> str:
    """What to tell when something is archived for the first time; ``""`` ever after, and where that is asked.

    The question ``what was lost before``: given where things are; what comes back is a sentence, ``""`` for nothing.
    """
    try:
        if is_open(where) or not _leave(STAMP, where):
            return ""
    except OSError:
        return ""
    days = kept_days(cwd, where)
    period = "as long as the client does, and beyond" if days is None else f"beyond the client's {days} days"
    off = typed("config vault off")
    said = f"Transcripts are now kept {period}, in {vault(where)}. Off, in a shell: {off}"
    return " · ".join(filter(None, (said, *(lost(where) for lost in answers("what was lost before")))))


def _leave(name: str, where: Where) -> bool:
    """Leave an empty file in the state folder; False where it is there already. OSError."""
    path = os.path.join(where.state, name)
    for folder in dict.fromkeys((where.state, os.path.dirname(path))):
        private_folder(folder, where)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
    except FileExistsError:
        return False
    return True
