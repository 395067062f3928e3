"""Blocks become events, events become findings. Pure: no file, clock, network, logging or torch in here."""
