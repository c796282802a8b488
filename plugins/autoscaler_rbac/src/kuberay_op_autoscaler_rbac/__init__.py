"""The plugin autoscaler-rbac: all of it stands in ``plugin.yaml``."""
