"""Export a session as an HTML page or Markdown document, without secrets and paths of home folders.

Each file is scanned once in order to select and sort the records. ``redact`` removes the secrets
and home folders from all texts. ``page.markup`` escapes all texts from a session in HTML. The
page's content security policy allows only its own style and script, which it names by their
digests. A document is written like a session: to a temporary file, which is checked and then
renamed.
"""

from __future__ import annotations

HTML, MARKDOWN, JSON = "html", "md", "json"
FORMATS = (
    HTML,
    MARKDOWN,
    JSON,
)  # The formats of a document, which are also the file extensions of documents.
MAX_TEXT_CHARACTERS = 100_000  # Default maximum number of characters of a text in a document.
