"""The RayJob controller."""
