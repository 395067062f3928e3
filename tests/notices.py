"""Notices for tests: one incident as the bot's day has it, and what can be said of it."""

from __future__ import annotations

from dataclasses import replace

from recompile_watch.core.advice import Advice
from recompile_watch.core.notices import Alert, Excerpt, Notice, NoticeSort, Place

BEGAN = 1_761_815_289.0  # 2025-10-30 09:08:09 UTC
NOW = BEGAN + 252.0
LIMIT_LINE = "W1030 09:12:01.402000 4242 torch/_dynamo/convert_frame.py:1016] [6/8] torch._dynamo hit config.recompile_limit (8)"
ADVICE = Advice(
    remedy="allow_unspec_int_on_nn_module", title="Let torch treat integer attributes of modules as dynamic", kind="config",
    apply="import torch._dynamo\ntorch._dynamo.config.allow_unspec_int_on_nn_module = True",
    where="in the bot's process, before the model is compiled", restart=True, torch="2.1 and later",
    expect="no recompile for each value of the index",
    verified="measured on 2.5.1, 2.7.1, 2.9.1 and 2.13",
    caution=None, docs="https://docs.pytorch.org/docs/stable/torch.compiler.html",
)  # fmt: skip
ALERT = Alert(
    incident="17", fingerprint="5f0c2a9e81d4b377", kind="recompile_limit_hit", severity="critical", state="open",
    what="positional_embedding hit the recompile limit of 8 because the KV cache index changed",
    cost="From here on torch runs this function in eager mode: slower by the measured factor, and no further compile helps.",
    why="A limit was hit; ops gets everything from warning on.", model="toto", function="positional_embedding",
    file="/srv/bot/toto/model/attention.py", line_no=105, since=BEGAN, until=BEGAN + 232.0, count=8, counts=(1, 0, 2, 1, 0, 3, 0, 1),
    places=(Place("/srv/bot/alpaca_cli.log", 4712, 381_204, LIMIT_LINE),), advice=(ADVICE, replace(ADVICE, remedy="disable_compile_for_model")),
    excerpt=Excerpt(
        "/srv/bot/alpaca_cli.log", 4710,
        ("2025-10-30 09:12:01 UTC DEBUG INFO forecasting AAPL", "2025-10-30 09:12:01 UTC DEBUG INFO sampling 256 paths", LIMIT_LINE,
         "W1030 09:12:01.402000 4242 torch/_dynamo/convert_frame.py:1016] [6/8]    function: 'positional_embedding' (attention.py:105)",
         "W1030 09:12:01.402000 4242 torch/_dynamo/convert_frame.py:1016] [6/8]    last reason: 6/7: kv_cache._current_idx[7] == 0"),
        (2, 3, 4),
    ),
    explains=("A CUDA graph is skipped: mutated inputs",),
)  # fmt: skip
QUOTES = replace(
    ALERT, incident="18", fingerprint="a0b1", kind="synthetic_quote", severity="warning", advice=(), excerpt=None, explains=(), model=None, file=None,
    line_no=None, function=None, what="12 symbols are priced without a real quote", cost="Orders are placed at made-up prices.", count=36,
    symbols=("AAPL", "MSFT", "NVDA"), why="Quotes were made up in market hours; ops gets everything from warning on.", counts=(),
    places=(Place("/srv/bot/trade.log", 88, 9_001, "2025-10-30 09:08:30 | Using synthetic bid/ask for AAPL"),),
)  # fmt: skip


def notice(sort: NoticeSort = NoticeSort.OPENED, *alerts: Alert, receiver: str = "ops", id: str = "n1") -> Notice:
    """A notice of this sort; of the recompile limit where no other incident is given."""
    told = alerts or (ALERT,)
    return Notice(id, receiver, sort, told[0].severity, NOW, "bot1", told)
