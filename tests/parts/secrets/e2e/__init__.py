"""The real client and ``resume_hooks.parts.secrets``, offline."""
