"""Documents: what a handoff writes into a project if the user asked for it."""
