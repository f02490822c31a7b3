"""Tests of the team on a real PostgreSQL."""
