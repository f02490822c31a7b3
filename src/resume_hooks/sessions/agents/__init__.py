"""Whose sessions there are: an agent is a strategy, and everything above works on what it hands out.

``protocol`` says what an agent must tell, ``registry`` which there are; ``claude`` is this client, each other agent a
folder here (where its sessions lie) and one in ``transcripts`` (their format). What is read of another agent's session
is a copy of it in our form of record.
"""
