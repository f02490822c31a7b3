"""Tests against the real Claude Code client, offline: a loopback mock replaces the Messages API."""
