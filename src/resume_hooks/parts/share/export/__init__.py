"""Export a session as an HTML page or Markdown document, without secrets or home folders.

Each file is scanned once in order to select and sort its records. ``redact`` removes the secrets
and the paths of home folders from all texts. ``page.markup`` escapes all texts from a session in
HTML. The page's content security policy identifies the page's own style and script by their digests
and allows no others. A document is written like a session: to a temporary file, which is checked
and then renamed.
"""

from __future__ import annotations

HTML, MARKDOWN, JSON = "html", "md", "json"
# The formats of a document, which are also the file extensions of documents.
DOCUMENT_FORMATS = (
    HTML,
    MARKDOWN,
    JSON,
)
MAX_TEXT_CHARACTERS = 100_000  # The default maximum number of characters of a text in a document.
