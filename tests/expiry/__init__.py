"""What the client is about to delete, kept before that; ancestors, kept when a child is born."""
