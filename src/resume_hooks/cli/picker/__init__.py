"""The session picker: a list that is searched as you type, beside a preview of the selected session.

State is pure, lists and previews are made in threads, one module touches the screen. Nobody waits
for a listing: not the first paint, not leaving. On a dumb terminal it is a numbered list.
"""
