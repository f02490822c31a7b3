"""Context rollover, with scripted models in place of real ones."""
