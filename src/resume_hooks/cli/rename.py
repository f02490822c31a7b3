"""``rename``: a session's title and tag, written as the client writes them."""

from __future__ import annotations

from resume_hooks.cli.output import table
from resume_hooks.cli.verbs.sessions import RenameOptions
from resume_hooks.errors import UsageError
from resume_hooks.sessions import rename


def rename_session(options: RenameOptions) -> None:
    """Give a session a title or a tag, or take its tag away, unless it is a dry run; say what was done."""
    if (options.title is not None) + (options.tag is not None) + options.no_tag != 1:
        raise UsageError("Give either a TITLE, --tag or --no-tag", "resume-hooks rename --help")
    if options.tag is not None and not options.tag.strip():
        raise UsageError("An empty tag", "Give at least one character that can be seen, or --no-tag.")
    what = "tag" if options.title is None else "title"
    if options.title is None:
        change = rename.tagged(options.located(), options.tag or "", options.where)
    else:
        change = rename.renamed(options.located(), options.title, options.where, force=options.force)
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
