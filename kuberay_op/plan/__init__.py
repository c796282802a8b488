"""Pure: what is there and what should be there, turned into actions that each have a reason."""
