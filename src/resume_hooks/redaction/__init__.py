"""Secrets in texts and transcripts: found by rules that are data, and taken out without touching anything else."""
