"""Checkpoints: a mark in a session, and the way back to it in a child that keeps a report of what came after."""
