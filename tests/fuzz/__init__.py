"""Mutations of real logs, and what must hold for any bytes: shared by the property tests and the longer `make fuzz`."""
