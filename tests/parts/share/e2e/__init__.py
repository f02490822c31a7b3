"""The real client and ``resume_hooks.parts.share``, offline."""
