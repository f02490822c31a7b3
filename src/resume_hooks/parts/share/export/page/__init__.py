"""The page: one HTML file that needs no network and no script, folds its turns, and can be searched and printed."""
