"""The session picker: a list of sessions that narrows as the user types, with a preview.

One module keeps the state and does no input or output. Threads read the list and the previews, so
that neither the first display nor the exit waits for them. Another module draws the screen. On a
dumb terminal the picker is a numbered list.
"""
