"""Programs that make parts of the repository."""
