"""Tests against the real Claude Code client, offline: a mock of the Messages API answers on loopback."""
