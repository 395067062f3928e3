"""Tests of `recompile_watch.sources`."""
