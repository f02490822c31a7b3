"""The vault: sessions kept beyond the client's period, packed, verified, rewritten, forgotten, brought back."""
