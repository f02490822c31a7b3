"""Write the document of a handoff into a project.

The document is the opening of a fresh session as Markdown. Words from the transcript appear in its
front matter as JSON strings, which YAML can read, and in the text without Markdown that loads or
runs anything. A relative setting never leads out of the session's project, and a failure here does
not prevent the child.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator

from resume_hooks import settings
from resume_hooks.derive.child.receipt import FilesBeside, Receipt
from resume_hooks.derive.fresh_child import FreshPlan, digest_reference
from resume_hooks.errors import UsageError, WriteFailed
from resume_hooks.parts.documents.places import ENDING, SETTING
from resume_hooks.paths import Where, project_folders
from resume_hooks.reading.digest.opening import BULLET, INDENT, full
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.opening_layout import next_step_of
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.storage import project_files
from resume_hooks.system.text import plain_line, plain_text

SLUG = 48  # maximum characters of the title in a file name, at most 192 bytes

_ACTIVE = re.compile(r"(\\*)(<(?=[A-Za-z/!?])|\](?=[(\[:]))")
"""The start of a tag, or the end of a link's text, with preceding backslashes, which would cancel ours."""

_BLOCK = re.compile(r"(?:#{1,6}|[-+*])(?:\s|$)|>|~~~|```|(?:[-*_=]\s*){3}")
_NOT_YAML = re.compile(
    "[\ufffe\uffff]"
)  # characters that JSON does not escape but YAML parsers reject

_FENCE = re.compile("`+")


def out_path(out: str, decided: FreshPlan, *, force: bool) -> str:
    """Return the file for ``--out``: a named file, or a new name in a named folder.

    Raise UsageError if it cannot be written.

    A missing folder that ends in a slash is created with the document.
    """
    path = os.path.abspath(out)
    new = out.endswith(os.sep) and not path.endswith(ENDING) and not os.path.lexists(path)
    if os.path.isdir(path) or (new and os.path.isdir(os.path.dirname(path))):
        path = os.path.join(path, name_of_document(decided))
    elif not path.endswith(ENDING) or out.endswith(os.sep):
        raise UsageError(
            f"--out {out} is neither a folder nor a name that ends in .md",
            "Name a .md file, or a folder.",
        )
    elif not os.path.isdir(os.path.dirname(path)):
        raise UsageError(
            f"The folder {os.path.dirname(path)} does not exist",
            "Make it first, or name another one.",
        )
    if project_files.file_state(path) is not None and not force:
        raise UsageError(
            f"The file {path} exists already", "Give --force to overwrite it, or name another one."
        )
    return path


def list_wanted_files(decided: FreshPlan, where: Where, out: str = "") -> FilesBeside:
    """Return the files for the setting and for ``out`` (from ``out_path``).

    Nothing is written.
    """
    value, paths, warnings = str(settings.load_settings(where)[SETTING].value), [out], []
    if value:
        try:
            paths.append(
                os.path.join(
                    _folder_of_setting(value, _project_home(decided, where)),
                    name_of_document(decided),
                )
            )
        except WriteFailed as error:
            warnings.append(error.message)
    return FilesBeside(tuple(dict.fromkeys(filter(None, paths))), tuple(warnings))


def write_documents(
    decided: FreshPlan, receipt: Receipt, where: Where, out: str = "", *, force: bool = False
) -> FilesBeside:
    """Write the documents of a new child; ``force`` overwrites ``out``.

    Failures become warnings.
    """
    wanted = list_wanted_files(decided, where, out)
    written, warnings = [], list(wanted.warnings)
    if wanted.documents:
        content = redact(document_of_child(decided, receipt))[0].encode("utf-8", "replace")
    else:
        content = b""
    for path in wanted.documents:
        try:
            with project_files.ensure_folder(os.path.dirname(path)):
                project_files.write_project_file(
                    path, content, project_files.file_state(path) if force and path == out else None
                )
            written.append(path)
        except WriteFailed as error:
            warnings.append(f"The session was created, but its document was not: {error.message}")
    return FilesBeside(tuple(written), tuple(warnings))


def _folder_of_setting(value: str, home: str) -> str:
    """Return the real path of the folder in the setting.

    Raise WriteFailed if a relative path leads outside ``home``.
    """
    value = os.path.expanduser(value)
    if os.path.isabs(value):
        return os.path.realpath(value)
    if not home:
        raise WriteFailed(
            f"{SETTING} was ignored: the folder that this session belongs to is not here"
        )
    path = os.path.realpath(os.path.join(home, value))
    if not _is_inside(path, home):
        raise WriteFailed(f"{SETTING} was ignored: {value} leads out of {home}")
    if path != os.path.normpath(os.path.join(os.path.realpath(home), value)):
        raise WriteFailed(
            f"{SETTING} was ignored: a link leads from {value} to {path}"
        )  # for example a link in the repository
    return path


def _project_home(decided: FreshPlan, where: Where) -> str:
    """Return the project's folder, or ``""`` unless the session is in the client's folder for that project.

    The transcript's own words prove nothing: it may come from anywhere and name any folder.
    """
    folder = decided.draft.setting.cwd
    lies_in = os.path.realpath(os.path.dirname(decided.draft.parent_file))
    homes = []
    for known in project_folders(folder, where):
        homes.append(os.path.realpath(known))
    if lies_in in homes and os.path.isdir(folder):
        return folder
    return ""


def _is_inside(path: str, folder: str) -> bool:
    """Check whether a path is inside a folder, with links and dots resolved."""
    root = os.path.realpath(folder)
    return f"{os.path.realpath(path)}{os.sep}".startswith(f"{root.rstrip(os.sep)}{os.sep}")


def name_of_document(decided: FreshPlan) -> str:
    """Return ``<YYYY-MM-DD>-<slug of the root's title>-<first 8 of the child's id>.md``, with the UTC date."""
    title = unicodedata.normalize("NFC", decided.draft.root_title.lower())
    words = "".join(letter if letter.isalnum() else " " for letter in title).split()
    slug = "-".join(words)[:SLUG].rstrip("-") or "session"
    return f"{decided.draft.setting.at[:10]}-{slug}-{decided.draft.session_id[:SHORT]}.md"


def document_of_child(decided: FreshPlan, receipt: Receipt) -> str:
    """Return the complete document of a child; ``planned_receipt`` belongs to its plan."""
    return (
        "\n\n".join(["\n".join(_front_matter(decided, receipt)), *_document_body(decided, receipt)])
        + "\n"
    )


def markdown_line(text: str) -> str:
    """Return foreign text as one line of Markdown without active HTML, links and images."""
    return _ACTIVE.sub(r"\1\1\\\2", plain_line(text))


def _front_matter(decided: FreshPlan, receipt: Receipt) -> Iterator[str]:
    child = decided.draft
    yield "---"
    yield f"title: {_json_string(receipt.title)}"
    yield f"session_id: {_json_string(child.session_id)}"
    yield f"parent_session_id: {_json_string(child.parent.session_id)}"
    yield "lineage:"
    for row in child.ancestors:
        yield f"  - session_id: {_json_string(row.session_id)}"
        yield f"    title: {_json_string(row.title)}"
        yield f"    kind: {_json_string(row.kind)}"
    yield f"created: {_json_string(child.setting.at)}"
    yield f"branch: {_json_string(child.setting.branch)}"
    yield f"next_step: {_json_string(next_step_of(decided.opening) or '')}"
    yield f"command: {_json_string(receipt.shell)}"
    yield "---"


def _document_body(decided: FreshPlan, receipt: Receipt) -> Iterator[str]:
    given, child = decided.contents, decided.draft
    yield f"# {markdown_line(receipt.title)}"
    if step := next_step_of(decided.opening):
        yield f"## Next step, as the user put it\n\n{_fence_plain(step)}"
    if given.summary:
        yield f"## Summary, by a model\n\n{_fence_plain(given.summary)}"
    if given.edited:
        yield (
            "## The opening of the fresh session, as the user edited "
            f"it\n\n{_fence_plain(given.edited)}"
        )
    if given.digest:
        yield from _digest_sections(full(given.digest))
    commands = [
        f"In Claude Code:\n\n{_fence_plain(receipt.in_client)}",
        f"In a shell:\n\n{_fence_plain(receipt.shell)}",
    ]
    whole = digest_reference(child.session_id)
    more = f"To read a reference: `resume-hooks read <reference>`; the digest itself: `{whole}`."
    yield "\n\n".join(["## How to go on", *commands, *([more] if given.digest else [])])


def _digest_sections(whole: str) -> Iterator[str]:
    """Yield a full digest as Markdown sections, with lists, and with messages as block quotes.

    The first lines name its session.
    """
    blocks: list[list[str]] = []
    for row in whole.split("\n"):
        if row.startswith(BULLET) and blocks and blocks[-1][0].startswith("## "):
            blocks[-1].append(f"- {_inert_line(row.removeprefix(BULLET))}")
        elif row.startswith(INDENT) and blocks:
            blocks[-1].append(f"> {_inert_line(row.removeprefix(INDENT))}\\")
        elif row.endswith(":"):
            blocks.append([f"## {_inert_line(row[:1].upper() + row[1:-1])}\n"])
        else:
            blocks.append([f"**{_inert_line(row)}**\n" if blocks else _inert_line(row)])
    for block in blocks:
        yield "\n".join(block).removesuffix("\\")


def _inert_line(text: str) -> str:
    """Return foreign text as one line of Markdown that starts no heading, list, quote, rule or fence."""
    line = markdown_line(text)
    if _BLOCK.match(line):
        return f"\\{line}"
    return line


def _fence_plain(text: str) -> str:
    """Return text in a code block that it cannot end."""
    longest = max(map(len, _FENCE.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{plain_text(text)}\n{fence}"


def _json_string(text: str) -> str:
    """Return foreign text as a JSON string on one line, which is also valid YAML."""
    written = json.dumps(plain_text(text), ensure_ascii=False)
    return _NOT_YAML.sub(lambda sign: f"\\u{ord(sign.group()):04x}", written)
