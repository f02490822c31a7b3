"""The real client and ``resume_hooks.parts.smart_trim``, offline."""
