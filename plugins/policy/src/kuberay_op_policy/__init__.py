"""The plugin policy: all of it stands in ``plugin.yaml``."""
