"""Find the session that wrote a line: `search --file path:42` answers from the texts of edits alone, or not at all."""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Part

PART = Part(answers=(Answer(questions.answer_line_search, "line_search:answer_line_search"),))
