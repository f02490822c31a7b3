"""Run the real client without a network: with a mock API, temporary homes, terminals and an X server."""
