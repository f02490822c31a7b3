"""Codex's rollout files: their lines and items, the model's history, and the conversion to our records.

A rollout is an append-only JSONL file of ``{"timestamp", "type", "payload"}`` objects. A resumed
thread does not send the whole file. It sends the history that ``history.History`` builds from
``segments.read_thread_lines``. ``convert_lines`` converts that history, and the conversation before
the last compaction, to our records. These modules do not search for files.
"""
