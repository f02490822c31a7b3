"""The list of sessions in the shell's chooser and in the client's pane."""
