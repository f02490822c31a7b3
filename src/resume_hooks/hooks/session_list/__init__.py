"""A list of sessions to choose from, as the shell's chooser and the pane inside the client show it."""
