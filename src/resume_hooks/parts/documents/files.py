"""The files that a handoff writes into a project if the user asked for them: its document, and a line of a ledger.

Invariant: a relative setting never leads out of the session's project, and no failure here costs the child.
"""

from __future__ import annotations

import os

from resume_hooks import settings
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fresh_child import FilesBeside, RolloverPlan
from resume_hooks.errors import UsageError, WriteFailed
from resume_hooks.parts.documents import ledger
from resume_hooks.parts.documents.document import current_session, document, file_name
from resume_hooks.parts.documents.places import ENDING
from resume_hooks.paths import Where, project_folders
from resume_hooks.redaction.texts import redact
from resume_hooks.storage import project_files


def out_path(out: str, decided: RolloverPlan, *, force: bool) -> str:
    """The file that ``--out`` names: itself, or a file of ours in that folder. UsageError if it can't be written.

    A folder that ends in a slash may be missing: it is made with the document.
    """
    path = os.path.abspath(out)
    new = out.endswith(os.sep) and not path.endswith(ENDING) and not os.path.lexists(path)
    if os.path.isdir(path) or (new and os.path.isdir(os.path.dirname(path))):
        path = os.path.join(path, file_name(decided))
    elif not path.endswith(ENDING) or out.endswith(os.sep):
        raise UsageError(f"--out {out} is no folder and no name that ends in .md", "Name a .md file, or a folder.")
    elif not os.path.isdir(os.path.dirname(path)):
        raise UsageError(f"There is no folder {os.path.dirname(path)}", "Make it first, or name another one.")
    if project_files.state_of(path) is not None and not force:
        raise UsageError(f"There is a file {path} already", "Give --force to overwrite it, or name another one.")
    return path


def wanted_for(decided: RolloverPlan, where: Where, out: str = "") -> FilesBeside:
    """The files that the settings and ``out`` (a path of ``out_path``) ask for; nothing is written."""
    home, warnings = _home(decided, where), []
    places = {}
    for setting, name in (("handoff_dir", file_name(decided)), ("ledger_file", "")):
        value = str(settings.load(where)[setting].value)
        folder, own = (value, name) if name else os.path.split(value)
        try:
            places[setting] = os.path.join(_folder(setting, folder, home), own) if value else ""
        except WriteFailed as error:
            warnings.append(error.message)
    documents = dict.fromkeys(path for path in (out, places.get("handoff_dir")) if path)
    return FilesBeside(tuple(documents), places.get("ledger_file", ""), tuple(warnings))


def write_for(
    decided: RolloverPlan, receipt: Receipt, where: Where, out: str = "", *, force: bool = False
) -> FilesBeside:
    """Write the files of a child that was just made; ``force`` overwrites ``out``. Failures are warnings."""
    wanted = wanted_for(decided, where, out)
    written, warnings = [], list(wanted.warnings)
    content = redact(document(decided, receipt))[0].encode("utf-8", "replace") if wanted.documents else b""
    for path in wanted.documents:
        try:
            with project_files.folder_made(os.path.dirname(path)):
                project_files.write(path, content, project_files.state_of(path) if force and path == out else None)
            written.append(path)
        except WriteFailed as error:
            warnings.append(f"The session is made, its document is not: {error.message}")
    renewed = ""
    if wanted.ledger:
        current, _ = redact(current_session(decided, receipt.title, _near(written[0], decided) if written else ""))
        try:
            with project_files.folder_made(os.path.dirname(wanted.ledger)):
                several = ledger.renew(wanted.ledger, current)
            renewed = wanted.ledger
            warnings += [several] if several else []
        except WriteFailed as error:
            warnings.append(f"The session is made, the ledger is as it was: {error.message}")
    return FilesBeside(tuple(written), renewed, tuple(warnings))


def _folder(setting: str, value: str, home: str) -> str:
    """The real path of the folder that a setting names; WriteFailed if a relative one is not within ``home``."""
    value = os.path.expanduser(value)
    if os.path.isabs(value):
        return os.path.realpath(value)
    if not home:
        raise WriteFailed(f"{setting} was passed over: the folder that this session belongs to is not here")
    path = os.path.realpath(os.path.join(home, value))
    if not _is_inside(path, home):
        raise WriteFailed(f"{setting} was passed over: {value} leads out of {home}")
    return path


def _home(decided: RolloverPlan, where: Where) -> str:
    """The project's folder, ``""`` unless the session lies where the client puts sessions of that folder.

    What the file itself says is no proof: it may come from anywhere, and name any folder.
    """
    folder = decided.draft.setting.cwd
    lies_in = os.path.realpath(os.path.dirname(decided.draft.parent_file))
    homes = [os.path.realpath(known) for known in project_folders(folder, where)]
    return folder if lies_in in homes and os.path.isdir(folder) else ""


def _is_inside(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, whatever links and dots are in it."""
    root = os.path.realpath(folder)
    return f"{os.path.realpath(path)}{os.sep}".startswith(f"{root.rstrip(os.sep)}{os.sep}")


def _near(path: str, decided: RolloverPlan) -> str:
    """A document as a ledger names it: relative to the project's folder if it lies in there."""
    project = decided.draft.setting.cwd
    return os.path.relpath(path, project) if _is_inside(path, project) else path
