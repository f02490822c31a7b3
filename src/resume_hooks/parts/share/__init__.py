"""A session as one file to give away, and such a file, or what an address leads to, as a session of ours."""
