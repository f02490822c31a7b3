"""Find the defects of a session, by record: one module for each group of them; ``diagnose`` runs them all."""
