"""Tests of the parts. Each part has a folder."""
