"""The index of everything that was ever said: one SQLite file in the state folder, made anew whenever it must be."""
