"""Tests that compare resume-hooks with the official SDK."""
