"""The plugin yunikorn: all of it stands in ``plugin.yaml``."""
