"""Tests that need a torch: `make test-torch` runs them; elsewhere they are skipped."""
