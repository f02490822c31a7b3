"""The options and help of the core's verbs. Only click is imported for them.

The options of an installed part are in the part's ``verbs``.
"""
