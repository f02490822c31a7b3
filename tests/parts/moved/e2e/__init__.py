"""The real client and ``resume_hooks.parts.moved``, offline."""
