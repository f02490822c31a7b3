"""Which session wrote a line: the answers of `search --file path:42`, beside what a replay of all edits tells."""
