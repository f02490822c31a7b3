"""Measure which session is named as the writer of a line, compared with a replay of all edits."""
