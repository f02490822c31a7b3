"""Questions in users' words about the corpus, and the quality of a search's answers."""
