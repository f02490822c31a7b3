"""Tests of the file history."""
