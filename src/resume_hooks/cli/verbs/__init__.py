"""What each verb of the core takes, and its help; click alone is imported for that.

A part's stand in its ``verbs``.
"""
