"""Reading what the vault keeps: where it lies, the notes, and readable copies of what is packed."""
