"""Hook events in, replies out: triggers, cards, the links that the client makes itself."""
