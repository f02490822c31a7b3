"""Read Codex's rollouts (.jsonl files of threads), and convert them to Claude Code's record format.

A rollout is a JSONL file of ``{"timestamp", "type", "payload"}`` objects. Codex only appends lines
to it. When Codex resumes a thread, it sends the model only part of the file: the history.
``history.ThreadHistory`` builds the history from the lines that ``segments.read_thread_lines``
reads. ``convert_lines`` converts the history, and the conversation before the last compaction, to
records. The modules in this package do not search for files.
"""
