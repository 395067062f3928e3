"""Bytes in: finds logs, opens them, unpacks them and hands them on as blocks of bytes; knows nothing of their meaning."""
