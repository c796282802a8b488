"""Sphinx configuration: Markdown in, HTML out, a warning is an error (see the Makefile)."""

project = "kuberay-op"
author = "The kuberay-op authors"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "kuberay-op"
