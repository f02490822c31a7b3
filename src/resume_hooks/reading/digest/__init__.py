"""The digest: what a session came to, computed without a model, each line with its reference."""
