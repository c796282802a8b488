"""The plugin kai-scheduler: all of it stands in ``plugin.yaml``."""
