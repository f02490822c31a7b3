"""Tests of the part."""
