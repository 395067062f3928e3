"""The colours of the HTML report, light and dark, as a style sheet.

Every colour that a letter can have stands out by at least 4.5 to 1 from every ground it can stand on (WCAG 2.2, level
AA); a test holds that.
"""

from collections.abc import Mapping

GROUNDS = ("ground", "surface", "inset")
LIGHT: Mapping[str, str] = {
    "ground": "#f7f6f3", "surface": "#ffffff", "inset": "#f2f1ed", "line": "#dfdcd5", "text": "#1d2125", "muted": "#585f66", "accent": "#235a8c",
    "critical": "#ab1f17", "warning": "#875200", "info": "#46586a", "ok": "#1d6b41", "unknown": "#6a3d9c", "grid": "#e3e1db",
    "one": "#235f8f", "two": "#a8480f", "three": "#3f6f22", "four": "#7f4399", "five": "#725a00", "six": "#a02a5c",
}  # fmt: skip
DARK: Mapping[str, str] = {
    "ground": "#121518", "surface": "#1a1e22", "inset": "#22272c", "line": "#343b42", "text": "#e8eaec", "muted": "#a7b0b8", "accent": "#8dbbe8",
    "critical": "#ff8f86", "warning": "#f2b75f", "info": "#afbdca", "ok": "#80d2a0", "unknown": "#cdaef3", "grid": "#30363d",
    "one": "#7ab7e6", "two": "#f3a673", "three": "#a0d07a", "four": "#d3a6e8", "five": "#dcc568", "six": "#f298ba",
}  # fmt: skip


def style_sheet() -> str:
    """The colours as variables: what the reader's system prefers, unless the page says otherwise; light on paper."""
    light, dark = _variables(LIGHT, "light"), _variables(DARK, "dark")
    inks = "".join(f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}" for name in LIGHT)
    return (
        f":root{{{light}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f":root[data-theme=light]{{{light}}}:root[data-theme=dark]{{{dark}}}"
        f"@media print{{:root,:root[data-theme]{{{light}--ground:#ffffff;}}}}"
        f"{inks}.f-paper{{fill:var(--surface)}}.s-paper{{stroke:var(--surface)}}\n"
    )


def _variables(colors: Mapping[str, str], scheme: str) -> str:
    return f"color-scheme:{scheme};" + "".join(f"--{name}:{color};" for name, color in colors.items())
