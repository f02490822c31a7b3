"""Find the folders into which handoffs write documents, according to the setting."""

from __future__ import annotations

import os
from collections.abc import Iterator

from resume_hooks import settings
from resume_hooks.paths import Where
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail

DOCUMENT_SUFFIX = ".md"
"""The file extension of a document."""

DOCUMENT_FOLDER_SETTING_NAME = "handoff_dir"


def build_note_on_written_files(where: Where) -> str:
    """Return a sentence about the documents that remain after an uninstallation.

    Return ``""`` if the setting for documents is empty.
    """
    value = settings.load_settings(where)[DOCUMENT_FOLDER_SETTING_NAME].value
    if value:
        return (
            "The documents that handoffs wrote into your projects are kept "
            f"({DOCUMENT_FOLDER_SETTING_NAME}: {value})."
        )
    return ""


def find_document_folder_and_suffix(
    session: SessionFile, where: Where
) -> Iterator[tuple[str, str]]:
    """Yield the folder with the documents of a session, and the file extension of the documents.

    Yield nothing if the setting is empty or if the session's folder does not exist.
    """
    if value := os.path.expanduser(
        str(settings.load_settings(where)[DOCUMENT_FOLDER_SETTING_NAME].value)
    ):
        if os.path.isabs(value):
            home = os.sep
        else:
            home = home_folder_of_session(HeadTail(session.path), where)
        if os.path.isdir(home):
            yield os.path.join(home, value), DOCUMENT_SUFFIX
