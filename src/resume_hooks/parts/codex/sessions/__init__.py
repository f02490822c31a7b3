"""Codex sessions: their rollout files, their rows in listings, and their copies in our record format.

This package never writes to the folder of Codex. It reads Codex's databases only for the names of
threads.
"""
