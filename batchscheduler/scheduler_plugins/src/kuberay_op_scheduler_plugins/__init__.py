"""The plugin scheduler-plugins: all of it stands in ``plugin.yaml``."""
