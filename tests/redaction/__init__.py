"""Tests of the scanner for secrets, and the measure of what it finds."""
