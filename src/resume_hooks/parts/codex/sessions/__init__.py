"""Codex sessions: their rollout files, their rows in listings, and their copies in our record format.

This package never writes to Codex's folder. It reads Codex's databases only for the names of
threads.
"""
