"""Tests of `recompile_watch.report`."""
