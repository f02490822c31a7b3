"""Fuzz tests: each target draws values from bytes and makes hostile input from them.

The same bytes give the same case. In CI, hypothesis provides the bytes, always the same ones, and
shortens those that fail. ``python -m tests.fuzz`` provides random bytes for a given time.
"""
