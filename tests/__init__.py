"""Tests; they mirror src/."""
