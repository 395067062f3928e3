"""Core values become words, tables and JSON."""
