"""Whose sessions there are: an agent is a strategy, and everything above works on what it hands out.

``claude`` says what an agent must tell, and tells it of this client, ``registry`` which there are;
each other agent is a part of ours. What is read of another agent's session is a copy of it in our
form of record.
"""
