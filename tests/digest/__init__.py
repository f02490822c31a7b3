"""The digest: what it makes of a session, where each line of it leads, what it withstands."""
