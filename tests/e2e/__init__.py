"""Tests against the real Claude Code client, offline: a loopback mock stands where the Messages API would."""
