"""Respond: what was decided becomes deeds. Messages are delivered here."""
