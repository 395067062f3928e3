"""Tests that need an NVIDIA GPU: `make test-gpu` runs them; elsewhere they are skipped."""
