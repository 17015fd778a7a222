"""What runs inside the target process: standard library only, and little of that."""
