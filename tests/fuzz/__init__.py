"""Fuzz tests: each target reads its decisions from bytes and makes hostile input.

The same bytes give the same case. In CI, hypothesis provides the bytes, always the same ones, and
shortens those that fail. ``python -m tests.fuzz`` provides random bytes for a given time.
"""
