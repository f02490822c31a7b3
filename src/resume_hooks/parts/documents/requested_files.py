"""List or write the documents that a handoff's options or the settings ask for.

The other modules of this part are imported only if such documents are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resume_hooks import settings
from resume_hooks.derive.child.receipt import AccompanyingFiles, Receipt
from resume_hooks.derive.fresh_child import FreshChildPlan
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where


def require_path_for_out_option(options: Any) -> None:
    """Raise UsageError if ``--out`` is empty."""
    if options.out == "":
        raise UsageError("--out names no file", "Give the path of a .md file or of a folder.")


def require_out_option_with_force(options: Any) -> None:
    """Raise UsageError if ``--force`` is given without ``--out``."""
    if not options.out:
        raise UsageError("--force needs --out", "Overwrite a document that exists already.")


def make_document_writer(
    fresh_plan: FreshChildPlan, where: Where, options: Any
) -> Callable[[Receipt | None], AccompanyingFiles]:
    """Return a function that lists a handoff's documents, or writes them if it is called with a receipt.

    This function is registered as an answer to ``questions.make_handoff_file_writer``.
    """
    out_option = options.out if options else None
    if not (out_option or settings.load_settings(where)["handoff_dir"].value):
        return lambda _: AccompanyingFiles()
    # Imported here because it is only needed if documents are requested.
    from resume_hooks.parts.documents import document

    force = bool(options and options.force)
    if out_option:
        out_path = document.resolve_out_path(out_option, fresh_plan, force=force)
    else:
        out_path = ""

    def list_or_write_documents(receipt: Receipt | None) -> AccompanyingFiles:
        if receipt is None:
            return document.list_documents(fresh_plan, where, out_path)
        return document.write_documents(fresh_plan, receipt, where, out_path, force=force)

    return list_or_write_documents
