"""A model's summary of a session, put into the fresh child beside the digest: ``rollover`` with a summary.

The child with the digest is written first. The model gets the session in pieces, and what it answers, checked and on
single lines, replaces that child in one step; whatever fails leaves the digest.
"""
