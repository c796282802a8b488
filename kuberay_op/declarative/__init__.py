"""Plugins that need no Python: a page of YAML with named steps, in the manner of Ansible."""
