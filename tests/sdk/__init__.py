"""The official SDK as an oracle."""
