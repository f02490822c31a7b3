"""Transcripts of others as sessions of this folder: the conversation alone, or a bundle whole."""
