"""What stats counts and shows."""
