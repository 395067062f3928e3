"""Tests of `recompile_watch.respond`."""
