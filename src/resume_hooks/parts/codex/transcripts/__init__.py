"""The rollout files of Codex: their lines and items, what the model gets back of them, and our form of record for it.

A rollout is append-only JSONL of ``{"timestamp", "type", "payload"}``. What a resumed thread sends
is not the file, but what ``history.History`` makes of ``segments.chain_lines``. ``as_records`` says
the same, and what was said before the last compaction, in the records that everything above knows.
As its parent package: no file is looked for here.
"""
