"""What is to be said of a session wherever it is shown or continued."""

from __future__ import annotations

from resume_hooks.paths import Where
from resume_hooks.seam import answers


def notes_of(session_id: str, where: Where) -> list[str]:
    """What parts say of a session: each is given its id and where things are, and answers with a note or ``""``."""
    return [note for told in answers("notes on a session") if (note := told(session_id, where))]
