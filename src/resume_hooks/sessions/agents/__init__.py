"""Agents: programs with sessions on this machine, each behind the same interface.

``claude`` defines the interface and implements it for Claude Code; ``registry`` lists all agents.
Every other agent is a part. Other agents' sessions are read through copies in Claude Code's record
format.
"""
