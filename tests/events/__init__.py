"""Tests of hook events."""
