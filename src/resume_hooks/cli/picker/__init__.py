"""The session picker: a list that narrows as you type, with a preview of the selected session.

The state does no input or output, threads create lists and previews, and one module draws the
screen. Listing delays neither the first display nor leaving the picker. On a dumb terminal the
picker is a numbered list.
"""
