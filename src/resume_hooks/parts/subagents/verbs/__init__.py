"""What the option of this part does."""
