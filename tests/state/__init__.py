"""What earlier engines left in a state folder, frozen."""
