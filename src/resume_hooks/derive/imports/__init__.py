"""Import foreign transcripts as sessions of this folder: the conversation alone, or a bundle with everything.

The input is unpacked with limits into a private file, scanned like any transcript, and written like
any child, with a new id. Only message blocks on an allow-list are written. A bundle is a JSON
document in which every value is on a line of its own. No session is used before the digests of all
sessions match. Either all sessions are imported or none.
"""
