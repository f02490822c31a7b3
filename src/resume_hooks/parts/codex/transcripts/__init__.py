"""Codex's rollout files: their lines and items, the history that the model receives, and its conversion to our records.

A rollout is append-only JSONL of ``{"timestamp", "type", "payload"}``. A resumed thread does not
send the whole file, but the history that ``history.History`` builds from ``segments.chain_lines``.
``as_records`` converts that history, and the conversation before the last compaction, to the
records that the packages above use. These modules search for no files.
"""
