"""The controllers, a folder for each kind: observe, decide, act, report."""
