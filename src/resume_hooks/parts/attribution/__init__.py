"""Find the session that wrote a line, for ``search --file path:42``.

The answer is based only on the texts of edits in transcripts. If these texts do not show which
session wrote the line, no session is returned.
"""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Part

PART = Part(answers=(Answer(questions.answer_line_search, "line_search:answer_line_search"),))
