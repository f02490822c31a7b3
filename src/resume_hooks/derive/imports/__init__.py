"""Import foreign transcripts as sessions of this folder: the conversation alone, or a bundle with everything.

The input is unpacked with limits into a private file, scanned like any transcript, and written like
any child: only message blocks on an allow-list, with a new id. A bundle is a JSON document framed
by its lines. No session is used before the digests of all of them match, and all sessions are
imported or none.
"""
