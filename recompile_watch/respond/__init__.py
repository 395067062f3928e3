"""Actions become deeds: the diagnostic that measures a workload in its own interpreter."""
