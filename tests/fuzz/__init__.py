"""Hostile input made from bytes: each target takes its decisions from them.

The same bytes give the same case. In CI hypothesis provides them, always the same ones, and
shortens a failure. ``python -m tests.fuzz`` provides random ones for a given time.
"""
