"""The real client and ``resume_hooks.parts.lost``, offline."""
