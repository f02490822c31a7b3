"""What every child is made with: the chain in one line, sidecar files, links, checks as read back, the receipt."""
