"""Export: a session as a document for people, as a page or Markdown, with secrets and home folders left out.

Each file is scanned once, and it is decided which records are told, in which order; texts all go
through one place that takes secrets and home folders out. Every foreign text becomes HTML in one
module, and a policy names the page's one style and one script by their digests. The document is
created as a session is: checked as read back, then named.
"""

from __future__ import annotations

HTML, MARKDOWN, JSON = "html", "md", "json"
FORMS = (HTML, MARKDOWN, JSON)  # by the endings of their files
LIMIT = 100_000  # characters of one text that a document has where nothing else is asked for
