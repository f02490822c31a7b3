"""Documents: what stands in them, what was taken out, where they go, and the page in a browser."""
