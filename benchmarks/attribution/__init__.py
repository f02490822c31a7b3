"""Which session wrote a line: compare the answers of `search --file path:42` with a replay of all edits."""
