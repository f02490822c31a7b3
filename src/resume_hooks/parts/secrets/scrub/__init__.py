"""Scrub: secrets taken out of a session, and of every place that holds a copy of them.

Before anything is changed it is found out which sessions share records and where copies of them lie. Secrets that
were found by their looks are then looked for as text, in the forms that JSON, addresses and base64 give them. Place
by place is rewritten, the session's own transcript last; then all places are looked at again until nothing new turns
up.
"""
