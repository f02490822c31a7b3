"""Drives the real client without a network: a mock API, throw-away homes, terminals, an X server."""
