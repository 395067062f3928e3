"""Tests of `recompile_watch.core`."""
