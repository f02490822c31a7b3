"""Tests of the hooks' scripts.

They run a copy of the plugin whose engine only records how it was called.
"""
