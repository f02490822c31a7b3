"""The list of sessions in the shell's picker and in the client's pane."""
