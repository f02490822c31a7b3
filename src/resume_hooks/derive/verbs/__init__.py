"""The verbs that create a child or trim a session in place, one file each. All callers use the same functions."""
