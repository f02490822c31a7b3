"""Tests of the hooks' scripts; they run a copy of the plugin with a stand-in engine."""
