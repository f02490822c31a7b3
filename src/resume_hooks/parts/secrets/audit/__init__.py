"""Audit: which secrets lie where, told by kind, place and age; never what they are."""
