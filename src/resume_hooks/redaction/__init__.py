"""Secrets in texts and transcript lines: found by rules that are data, and taken out without touching anything else.

Imports nothing of ours. Must not know what a session is.
"""
