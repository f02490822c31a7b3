"""The options and help of the core's verbs; only click is imported for them.

A part's are in its ``verbs``.
"""
