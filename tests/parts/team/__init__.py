"""Tests of team sharing with a real PostgreSQL server."""
