"""The real client and ``resume_hooks.parts.stats``, offline."""
