"""The plugin kubernetes-was: all of it stands in ``plugin.yaml``."""
