"""Tests of the hooks' scripts.

The tests run a copy of the plugin whose engine only records how it was called.
"""
