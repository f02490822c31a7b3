"""What the client is about to delete, and keeping it before that; keeping what becomes an ancestor."""
