"""The session picker: a list that narrows as you type, with a preview of the selected session.

The state is pure, threads create lists and previews, and one module draws the screen. Listing
blocks neither the first paint nor leaving. On a dumb terminal the picker is a numbered list.
"""
