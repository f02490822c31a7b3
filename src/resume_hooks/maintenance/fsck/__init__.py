"""Find what is broken in a session, by record: one module a group of defects; ``diagnose`` runs them all."""
