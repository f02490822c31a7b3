"""Write the document of a handoff into a project.

The document contains the opening of the new session as Markdown. In the front matter, text from the
transcript is always written as a JSON string, which is also valid YAML. The body contains no
Markdown that loads or runs anything. If the setting is a relative path, it must not lead outside
the session's project. If the document cannot be written, the new session is still created.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator

from resume_hooks import settings
from resume_hooks.derive.child.receipt import AccompanyingFiles, Receipt
from resume_hooks.derive.fresh_child import FreshChildPlan, format_digest_reference
from resume_hooks.errors import UsageError, WriteFailed
from resume_hooks.parts.documents.document_folders import (
    DOCUMENT_FOLDER_SETTING_NAME,
    DOCUMENT_SUFFIX,
)
from resume_hooks.paths import Where, project_folders
from resume_hooks.reading.digest.opening import BULLET, INDENT, format_whole_digest
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.opening_layout import extract_next_step
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.storage import project_files
from resume_hooks.system.text import plain_line, plain_text

# The maximum number of characters of the title that are used in a file name. In UTF-8, they take up
# at most 192 bytes.
MAX_SLUG_CHARACTERS = 48

_TAG_OR_LINK_PATTERN = re.compile(r"(\\*)(<(?=[A-Za-z/!?])|\](?=[(\[:]))")
"""Matches the start of a tag, or the end of a link's text, with any backslashes before it. The
backslashes must be escaped too, because otherwise they would cancel the added backslash."""

_BLOCK_START_PATTERN = re.compile(r"(?:#{1,6}|[-+*])(?:\s|$)|>|~~~|```|(?:[-*_=]\s*){3}")
# Matches characters that JSON does not escape but YAML parsers reject.
_INVALID_YAML_CHARACTER_PATTERN = re.compile("[\ufffe\uffff]")

_BACKTICK_RUN_PATTERN = re.compile("`+")


def resolve_out_path(out_option: str, fresh_plan: FreshChildPlan, *, force: bool) -> str:
    """Return the path to which ``--out`` writes the document.

    If ``out_option`` is a folder, the document gets a default name in it. If ``out_option`` ends in
    a slash and does not exist, the folder will be created together with the document. Raise
    UsageError if the document cannot be written.
    """
    path = os.path.abspath(out_option)
    is_new_folder = (
        out_option.endswith(os.sep)
        and not path.endswith(DOCUMENT_SUFFIX)
        and not os.path.lexists(path)
    )
    if os.path.isdir(path) or (is_new_folder and os.path.isdir(os.path.dirname(path))):
        path = os.path.join(path, format_document_name(fresh_plan))
    elif not path.endswith(DOCUMENT_SUFFIX) or out_option.endswith(os.sep):
        raise UsageError(
            f"--out {out_option} is neither a folder nor a name that ends in .md",
            "Give the path of a .md file or of a folder.",
        )
    elif not os.path.isdir(os.path.dirname(path)):
        raise UsageError(
            f"The folder {os.path.dirname(path)} does not exist",
            "Create the folder first, or choose another one.",
        )
    if project_files.read_file_state(path) is not None and not force:
        raise UsageError(
            f"The file {path} already exists",
            "Use --force to overwrite the file, or choose another file name.",
        )
    return path


def list_documents(
    fresh_plan: FreshChildPlan, where: Where, out_path: str = ""
) -> AccompanyingFiles:
    """Return the paths of the documents of a handoff, without writing the documents.

    The paths come from the setting and from ``out_path``, the result of ``resolve_out_path``.
    """
    value, paths, warnings = (
        str(settings.load_settings(where)[DOCUMENT_FOLDER_SETTING_NAME].value),
        [out_path],
        [],
    )
    if value:
        try:
            paths.append(
                os.path.join(
                    _resolve_setting_folder(value, _find_project_folder(fresh_plan, where)),
                    format_document_name(fresh_plan),
                )
            )
        except WriteFailed as error:
            warnings.append(error.message)
    return AccompanyingFiles(tuple(dict.fromkeys(filter(None, paths))), tuple(warnings))


def write_documents(
    fresh_plan: FreshChildPlan,
    receipt: Receipt,
    where: Where,
    out_path: str = "",
    *,
    force: bool = False,
) -> AccompanyingFiles:
    """Write the documents of a new session, and return their paths and the warnings.

    If ``force`` is true, an existing file at ``out_path`` is replaced. A document that cannot be
    written causes a warning, not an error.
    """
    documents = list_documents(fresh_plan, where, out_path)
    written_paths, warnings = [], list(documents.warnings)
    if documents.documents:
        content = redact(format_document(fresh_plan, receipt))[0].encode("utf-8", "replace")
    else:
        content = b""
    for path in documents.documents:
        try:
            with project_files.ensure_folder(os.path.dirname(path)):
                project_files.write_project_file(
                    path,
                    content,
                    project_files.read_file_state(path) if force and path == out_path else None,
                )
            written_paths.append(path)
        except WriteFailed as error:
            warnings.append(f"The session was created, but its document was not: {error.message}")
    return AccompanyingFiles(tuple(written_paths), tuple(warnings))


def _resolve_setting_folder(value: str, home: str) -> str:
    """Return the folder that the setting contains, as an absolute path with symbolic links resolved.

    Raise WriteFailed if ``value`` is a relative path that leads outside the folder ``home``.
    """
    value = os.path.expanduser(value)
    if os.path.isabs(value):
        return os.path.realpath(value)
    if not home:
        raise WriteFailed(
            f"{DOCUMENT_FOLDER_SETTING_NAME} was ignored: it is uncertain which folder this session belongs to"
        )
    path = os.path.realpath(os.path.join(home, value))
    if not _is_inside(path, home):
        raise WriteFailed(f"{DOCUMENT_FOLDER_SETTING_NAME} was ignored: {value} is outside {home}")
    if path != os.path.normpath(os.path.join(os.path.realpath(home), value)):
        # A repository may contain such a link.
        raise WriteFailed(
            f"{DOCUMENT_FOLDER_SETTING_NAME} was ignored, because a link leads from {value} to {path}"
        )
    return path


def _find_project_folder(fresh_plan: FreshChildPlan, where: Where) -> str:
    """Return the folder of the session's project.

    Return ``""`` if the session is not in the client's folder for this project. The folder named in
    the transcript is not enough evidence, because a transcript from another machine can name any
    folder.
    """
    folder = fresh_plan.draft.attributes.cwd
    session_folder = os.path.realpath(os.path.dirname(fresh_plan.draft.parent_file))
    homes = []
    for project_folder in project_folders(folder, where):
        homes.append(os.path.realpath(project_folder))
    if session_folder in homes and os.path.isdir(folder):
        return folder
    return ""


def _is_inside(path: str, folder: str) -> bool:
    """Check whether ``path`` is inside ``folder`` once symbolic links and ``..`` have been resolved."""
    real_folder = os.path.realpath(folder)
    return f"{os.path.realpath(path)}{os.sep}".startswith(f"{real_folder.rstrip(os.sep)}{os.sep}")


def format_document_name(fresh_plan: FreshChildPlan) -> str:
    """Return the default file name of a document, for example ``2026-01-31-fix-the-parser-5e12a303.md``.

    The name consists of the date in UTC, words from the first session's title, and the beginning of
    the child's id.
    """
    title = unicodedata.normalize("NFC", fresh_plan.draft.root_title.lower())
    words = "".join(letter if letter.isalnum() else " " for letter in title).split()
    slug = "-".join(words)[:MAX_SLUG_CHARACTERS].rstrip("-") or "session"
    draft = fresh_plan.draft
    return f"{draft.attributes.created_at[:10]}-{slug}-{draft.session_id[:SHORT_ID_CHARACTERS]}.md"


def format_document(fresh_plan: FreshChildPlan, receipt: Receipt) -> str:
    """Return the text of the document for a new session. ``receipt`` is the receipt of its creation."""
    return (
        "\n\n".join(
            ["\n".join(_build_front_matter(fresh_plan, receipt)), *_build_body(fresh_plan, receipt)]
        )
        + "\n"
    )


def format_markdown_line(text: str) -> str:
    """Return a text as one line of Markdown without active HTML, links or images."""
    return _TAG_OR_LINK_PATTERN.sub(r"\1\1\\\2", plain_line(text))


def _build_front_matter(fresh_plan: FreshChildPlan, receipt: Receipt) -> Iterator[str]:
    child = fresh_plan.draft
    yield "---"
    yield f"title: {_format_json_string(receipt.title)}"
    yield f"session_id: {_format_json_string(child.session_id)}"
    yield f"parent_session_id: {_format_json_string(child.parent.session_id)}"
    yield "lineage:"
    for ancestor in child.ancestors:
        yield f"  - session_id: {_format_json_string(ancestor.session_id)}"
        yield f"    title: {_format_json_string(ancestor.title)}"
        yield f"    kind: {_format_json_string(ancestor.kind)}"
    yield f"created: {_format_json_string(child.attributes.created_at)}"
    yield f"branch: {_format_json_string(child.attributes.branch)}"
    yield f"next_step: {_format_json_string(extract_next_step(fresh_plan.opening) or '')}"
    yield f"command: {_format_json_string(receipt.shell_command)}"
    yield "---"


def _build_body(fresh_plan: FreshChildPlan, receipt: Receipt) -> Iterator[str]:
    contents, child = fresh_plan.contents, fresh_plan.draft
    yield f"# {format_markdown_line(receipt.title)}"
    if step := extract_next_step(fresh_plan.opening):
        yield f"## Next step, as the user put it\n\n{_format_code_block(step)}"
    if contents.summary:
        yield f"## Summary (written by a model)\n\n{_format_code_block(contents.summary)}"
    if contents.edited_digest:
        yield (
            "## The opening of the fresh session, edited by the user"
            f"\n\n{_format_code_block(contents.edited_digest)}"
        )
    if contents.digest:
        yield from _build_digest_sections(format_whole_digest(contents.digest))
    commands = [
        f"In Claude Code:\n\n{_format_code_block(receipt.client_command)}",
        f"In a shell:\n\n{_format_code_block(receipt.shell_command)}",
    ]
    digest_text = format_digest_reference(child.session_id)
    read_hint = (
        "To read a reference, run `resume-hooks read <reference>`. "
        f"To read the whole digest, run `{digest_text}`."
    )
    yield "\n\n".join(["## How to continue", *commands, *([read_hint] if contents.digest else [])])


def _build_digest_sections(digest_text: str) -> Iterator[str]:
    """Yield the sections of a digest as Markdown, with entries as list items and messages as block quotes.

    The first section contains the lines that describe the session.
    """
    blocks: list[list[str]] = []
    for line in digest_text.split("\n"):
        if line.startswith(BULLET) and blocks and blocks[-1][0].startswith("## "):
            blocks[-1].append(f"- {_escape_markdown_block_start(line.removeprefix(BULLET))}")
        elif line.startswith(INDENT) and blocks:
            blocks[-1].append(f"> {_escape_markdown_block_start(line.removeprefix(INDENT))}\\")
        elif line.endswith(":"):
            blocks.append([f"## {_escape_markdown_block_start(line[:1].upper() + line[1:-1])}\n"])
        else:
            blocks.append(
                [
                    f"**{_escape_markdown_block_start(line)}**\n"
                    if blocks
                    else _escape_markdown_block_start(line)
                ]
            )
    for block in blocks:
        yield "\n".join(block).removesuffix("\\")


def _escape_markdown_block_start(text: str) -> str:
    """Return a text as one line of Markdown that does not start a heading, list, quote, rule or fence."""
    line = format_markdown_line(text)
    if _BLOCK_START_PATTERN.match(line):
        return f"\\{line}"
    return line


def _format_code_block(text: str) -> str:
    """Return a text in a code block whose fence does not occur in the text."""
    longest_run = max(map(len, _BACKTICK_RUN_PATTERN.findall(text)), default=0)
    fence = "`" * max(3, longest_run + 1)
    return f"{fence}\n{plain_text(text)}\n{fence}"


def _format_json_string(text: str) -> str:
    """Return a text as a JSON string on one line. The string is also valid YAML."""
    encoded = json.dumps(plain_text(text), ensure_ascii=False)
    return _INVALID_YAML_CHARACTER_PATTERN.sub(lambda sign: f"\\u{ord(sign.group()):04x}", encoded)
