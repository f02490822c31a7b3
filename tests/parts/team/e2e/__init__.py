"""The real client and ``resume_hooks.parts.team``, offline."""
