"""Tests of the scrub."""
