"""When the New York Stock Exchange is open: 09:30 to 16:00, half days to 13:00, closed on weekends and holidays.

The calendar is the package ``holidays``, which is maintained and needs no pandas. Importing it costs a fifth of a second
and some 18 MB, so that it is done when the first question about a weekday comes.
"""

from collections.abc import Callable, Container
from datetime import date, datetime, time
from functools import lru_cache
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("America/New_York")
OPENS, CLOSES, CLOSES_EARLY = time(9, 30), time(16), time(13)
SATURDAY = 5


def is_market_open(at: float) -> bool:
    """Whether stocks are traded at a moment in epoch seconds; the moment of closing is closed."""
    here = datetime.fromtimestamp(at, ZONE)
    if here.weekday() >= SATURDAY or not OPENS <= here.time() < CLOSES:
        return False
    closes = _closing(here.date())
    return closes is not None and here.time() < closes


@lru_cache(maxsize=64)
def _closing(day: date) -> time | None:
    """When trading ends on a weekday; None where it is a holiday."""
    from holidays.constants import HALF_DAY, PUBLIC
    from holidays.financial.ny_stock_exchange import NewYorkStockExchange

    exchange: Callable[..., Container[date]] = NewYorkStockExchange
    if day in exchange(years=[day.year], categories=PUBLIC):
        return None
    return CLOSES_EARLY if day in exchange(years=[day.year], categories=HALF_DAY) else CLOSES
