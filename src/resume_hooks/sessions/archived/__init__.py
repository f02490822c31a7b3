"""Reading what the vault keeps: where it lies, the notes, and readable copies of what is packed.

A locator that fits nothing in the project folders is put to the vault's manifests. What it finds is opened, from the
files themselves or a checked copy of the pack, and read like any session; what would change it is refused.
"""
