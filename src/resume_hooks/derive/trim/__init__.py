"""Trim: a child whose bulky contents are placeholders, chosen by rule; decided purely, written once."""
