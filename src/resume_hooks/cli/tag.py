"""``tag``: gives a session a tag, or takes it away."""

from __future__ import annotations

from resume_hooks.cli.rename import answer
from resume_hooks.cli.verbs.sessions import TagOptions
from resume_hooks.errors import UsageError
from resume_hooks.sessions import rename


def give_tag(options: TagOptions) -> None:
    """Give a session a tag, or take it away."""
    tag: str | None = options.tag
    if (tag is None) is not options.clear:
        raise UsageError("Give either a TAG or --clear", "resume-hooks tag SESSION TAG")
    if tag is not None and not tag.strip():
        raise UsageError("An empty tag", "Give at least one character that can be seen, or --clear.")
    answer(options, rename.tagged(options.located(), tag or "", options.where), "tag")
