"""Reading what the vault holds: where it lies, the manifests, and readable copies of what is packed.

A locator that fits nothing in the project folders is put to the vault's manifests. What it finds is
opened as a checked copy of the pack, and read like any session; what would change it is refused.
"""
