"""Import transcripts from elsewhere as sessions of this folder: a conversation, or a whole bundle.

The input is unpacked into a private file, up to a maximum size. Then it is scanned like any other
transcript, and written like any other child, with a new id. From a single transcript, only message
blocks of known types are imported.

A bundle is a JSON document in which every value is on a separate line. Its sessions are used only
after the checksums of all sessions have been verified. If one session fails, no session of the
bundle is imported.
"""
