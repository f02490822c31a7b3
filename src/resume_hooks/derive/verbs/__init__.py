"""The verbs that create a child, one file each. All callers use the same functions."""
