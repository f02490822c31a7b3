"""The optional features of the plugin, which are called parts.

Each part is a folder with its verbs, forms, logic, checks and settings. A part may import the
packages below this one. No other package imports a part by name: the core asks the parts through
``seam``, and a part knows no other part.
"""

PART_NAMES = (
    "smart_trim", "marks", "moved", "rewind_files", "share", "team", "secrets", "stats", "codex", "lost",
    "documents", "subagents", "attribution",
)  # fmt: skip
"""The names of the parts' folders, in the order of the help. ``part_table`` is generated from the
declarations in these folders."""
