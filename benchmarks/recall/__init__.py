"""Questions in users' words over the corpus, and how well a search answers them."""
