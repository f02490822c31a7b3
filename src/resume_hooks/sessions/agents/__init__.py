"""Give access to agents: programs with sessions on this machine, such as Claude Code.

``claude`` defines the interface of an agent and implements it for Claude Code. ``registry`` lists
all agents. Every other agent is in an installable part. The sessions of other agents are read
through copies in Claude Code's record format.
"""
