"""Whether a handoff is to write files: by the options of the verb, by the settings. Who asked for none waits little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resume_hooks import settings
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fresh_child import FilesBeside, RolloverPlan
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where


def require_name(options: Any) -> None:
    """UsageError for an ``--out`` that names nothing."""
    if options.out == "":
        raise UsageError("--out names no file", "Name a .md file, or a folder.")


def require_out(options: Any) -> None:
    """UsageError for a ``--force`` without what it is for."""
    if not options.out:
        raise UsageError("--force needs --out", "It is for a document that is there already.")


def beside(decided: RolloverPlan, where: Where, options: Any) -> Callable[[Receipt | None], FilesBeside]:
    """The answer to ``beside a handoff``: see ``derive.fresh_child``."""
    given = options.out if options else None
    if not (given or settings.load(where)["handoff_dir"].value):
        return lambda _: FilesBeside()
    from resume_hooks.parts.documents import document  # only who asked for files waits for what writes them

    force = bool(options and options.force)
    out = document.out_path(given, decided, force=force) if given else ""

    def done(receipt: Receipt | None) -> FilesBeside:
        if receipt is None:
            return document.wanted_for(decided, where, out)
        return document.write_for(decided, receipt, where, out, force=force)

    return done
