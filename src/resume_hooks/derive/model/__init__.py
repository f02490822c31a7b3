"""The one way to a model: a port, and the headless client behind it."""
