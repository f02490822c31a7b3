"""Which session wrote a line: `search --file path:42` answers by the texts of edits alone, or not at all."""

from __future__ import annotations

from resume_hooks.part import Answer, Part

PART = Part(answers=(Answer("which session wrote a line", "answer:answer_line_search"),))
