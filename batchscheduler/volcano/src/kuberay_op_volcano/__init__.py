"""The plugin volcano: all of it stands in ``plugin.yaml``."""
