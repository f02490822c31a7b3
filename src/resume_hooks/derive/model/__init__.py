"""Access to a model: the port, and its headless and forked implementations."""
