"""From names in the configuration to plugins that can be asked: discover, choose, load."""
