"""Tests that run the real Claude Code client offline.

A mock of the Messages API on the loopback interface answers the client's requests.
"""
