"""A bundle: sessions in one JSON document, each record on a line of its own, so that it is read piece by piece.

Invariant: a record stands in it with the bytes that it has, but for secrets that were left out.
"""
