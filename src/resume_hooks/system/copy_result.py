"""Define the result of a copy, for code that displays it without access to the clipboard.

This module needs only the standard library and Python 3.9.
"""

from __future__ import annotations

from typing import NamedTuple


class CopyResult(NamedTuple):
    """The result of a copy; ``outcome`` is "copied", "sent" or "not copied".

    ``method_name`` is the name of the method, or ``""``.
    """

    outcome: str
    method_name: str = ""

    def describe(self, content_name: str) -> str:
        """Return a sentence that says whether the content called ``content_name`` was copied.

        The caller also shows the text, in case it was not copied.
        """
        if self.outcome == "not copied":
            return f"{content_name} not copied"
        if self.outcome == "copied":
            return f"{content_name} copied ({self.method_name})"
        return f"{content_name} sent to the clipboard"


NOT_COPIED = CopyResult("not copied")
