"""Tests of team sharing with the real client and without network access."""
