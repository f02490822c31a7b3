"""Export a session as a document for people, an HTML page or Markdown, without secrets and home folders.

Each file is scanned once to choose and order the records. All texts pass through one module that
removes secrets and home folders. Another module turns all foreign text into HTML, and a content
policy names the page's one style and one script by their digests. A document is written like a
session: it is checked as read back, then renamed into place.
"""

from __future__ import annotations

HTML, MARKDOWN, JSON = "html", "md", "json"
FORMATS = (HTML, MARKDOWN, JSON)  # also the file extensions
TEXT_LIMIT = 100_000  # default maximum characters of one text
