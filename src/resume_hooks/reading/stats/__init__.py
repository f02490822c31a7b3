"""What the transcripts of this machine came to: turns, tokens, what children saved, how long hooks took."""
