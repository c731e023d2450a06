"""Ingot's own files, and directories of them."""
