"""How much of a session a digest keeps, measured against what readers labelled."""
