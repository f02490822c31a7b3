"""Export a session as a document for people, in HTML or Markdown, without secrets and home folders.

Each file is scanned once to select and order the records. One module removes secrets and home
folders from all texts. Another module escapes all foreign text in HTML, and a content policy names
the page's only style and only script by their digests. A document is written like a session: it is
checked after writing and then renamed.
"""

from __future__ import annotations

HTML, MARKDOWN, JSON = "html", "md", "json"
FORMATS = (HTML, MARKDOWN, JSON)  # the formats, which are also the file extensions
MAX_TEXT_CHARACTERS = 100_000  # the default maximum number of characters in a text
