"""``rename`` and ``tag``: a session's title and tag, written as the client writes them."""

from __future__ import annotations

from resume_hooks.cli.output import table
from resume_hooks.cli.verbs.sessions import RenameOptions, TagOptions
from resume_hooks.errors import UsageError
from resume_hooks.sessions import rename
from resume_hooks.sessions.rename import LabelChange


def give_title(options: RenameOptions) -> None:
    """Give a session a title."""
    change = rename.renamed(options.located(), options.title, options.where, force=options.force)
    answer(options, change, "title")


def answer(options: RenameOptions | TagOptions, change: LabelChange, what: str) -> None:
    """Make a change unless it is a dry run, and say what was done; ``what`` is a title or a tag."""
    written = bool(change.records) and not options.dry_run
    if written:
        rename.write(change)
    data = {
        "session_id": change.session.session_id,
        "file": change.session.path,
        "old": change.old,
        "new": change.new,
        "written": written,
    }

    def text() -> str:
        if not change.records:
            return f"Its {what} is {change.new or 'none'} already. Nothing was written."
        facts = [(f"new {what}", change.new or "none"), (f"old {what}", change.old or "none")]
        facts += [("id", change.session.session_id), ("file", change.session.path)]
        return table(facts) + ("" if written else "\n\nNothing was written.")

    options.emit(data, text, change.warnings)


def give_tag(options: TagOptions) -> None:
    """Give a session a tag, or take it away."""
    tag: str | None = options.tag
    if (tag is None) is not options.clear:
        raise UsageError("Give either a TAG or --clear", "resume-hooks tag SESSION TAG")
    if tag is not None and not tag.strip():
        raise UsageError("An empty tag", "Give at least one character that can be seen, or --clear.")
    answer(options, rename.tagged(options.located(), tag or "", options.where), "tag")
