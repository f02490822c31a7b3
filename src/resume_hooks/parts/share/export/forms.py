"""What a document may be asked to be; what the help of ``export`` names stands apart from all that makes one."""

from __future__ import annotations

HTML, MARKDOWN, JSON = "html", "md", "json"
FORMS = (HTML, MARKDOWN, JSON)  # by the endings of their files
LIMIT = 100_000  # characters of one text that a document has where nothing else is asked for
