"""What a symbol's name tells."""

import re

_CRYPTO = re.compile(r"[A-Z0-9]{3,}[/-]?USD[TC]?")


def is_crypto(symbol: str) -> bool:
    """True for ``BTCUSD`` and ``ETH/USD``: traded day and night. Stocks have at most five letters and no currency."""
    return _CRYPTO.fullmatch(symbol.upper()) is not None
