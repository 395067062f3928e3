"""Tests of `recompile_watch.cli`."""
