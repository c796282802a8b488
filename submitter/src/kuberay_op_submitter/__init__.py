"""Submits one Ray job over HTTP and follows its log, without Ray."""
