"""The parts: optional features, each in a folder of its own with its verbs, forms, logic, checks and settings.

May import everything below. Must not be imported by name: the core asks by ``seam``, and no part
knows another one.
"""

PART_NAMES = (
    "smart_trim", "marks", "moved", "rewind_files", "share", "team", "secrets", "stats", "codex", "lost",
    "documents", "subagents", "attribution",
)  # fmt: skip
"""Every part by the name of its folder, in the order of the help. ``part_table`` is made from their declarations."""
