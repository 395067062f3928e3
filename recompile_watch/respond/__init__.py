"""Respond: what was decided becomes deeds. Messages are delivered, a workload is measured in its own interpreter."""
