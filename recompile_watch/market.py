"""When the New York Stock Exchange is open: 09:30 to 16:00, half days to 13:00, closed on weekends and holidays.

The calendar is the package ``holidays``, which is maintained and needs no pandas. Importing it costs a fifth of a second
and some 18 MB, so its days of a year are kept, for as long as the same version is installed.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

from recompile_watch.kept import read_once

ZONE = ZoneInfo("America/New_York")
OPENS, CLOSES, CLOSES_EARLY = time(9, 30), time(16), time(13)
SATURDAY = 5
_TELLS_VERSION = ("version.py", "financial/ny_stock_exchange.py")  # of the package holidays


def is_market_open(at: float) -> bool:
    """Whether stocks are traded at a moment in epoch seconds; the moment of closing is closed."""
    here = datetime.fromtimestamp(at, ZONE)
    if here.weekday() >= SATURDAY or not OPENS <= here.time() < CLOSES:
        return False
    closes = _closing(here.date())
    return closes is not None and here.time() < closes


def _closing(day: date) -> time | None:
    """When trading ends on a weekday; None where it is a holiday."""
    return {"closed": None, "half": CLOSES_EARLY}.get(_days(day.year).get(day.isoformat(), ""), CLOSES)


@lru_cache(maxsize=8)
def _days(year: int) -> Mapping[str, str]:
    """The weekdays of a year that are ``closed`` or ``half``, by ISO date."""
    spec = find_spec("holidays")
    folder = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path()
    return read_once(f"market-{year}.json", [folder / name for name in _TELLS_VERSION], lambda: _days_anew(year))


def _days_anew(year: int) -> dict[str, str]:
    from holidays.constants import HALF_DAY, PUBLIC
    from holidays.financial.ny_stock_exchange import NewYorkStockExchange

    exchange: Callable[..., Iterable[date]] = NewYorkStockExchange
    half = {day.isoformat(): "half" for day in exchange(years=[year], categories=HALF_DAY)}
    return half | {day.isoformat(): "closed" for day in exchange(years=[year], categories=PUBLIC)}
