"""A drawing by matplotlib becomes SVG for a page: its colours are names that the page's style sheet fills in.

Inside, every colour is a stand-in (``INKS``); outside it is a class, ``f-NAME`` where a shape is filled and ``s-NAME``
where a line is drawn, so that one drawing serves a light and a dark page. Text stays text. There is no style attribute
in it, which a page with a strict content policy would ignore.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from markupsafe import Markup

# The inks of a drawing; each stand-in is a colour that nothing else has.
_INK_NAMES = ("text", "muted", "grid", "critical", "warning", "info", "ok", "one", "two", "three", "four", "five", "six", "paper")
INKS = {name: f"#0{number:x}a5c3" for number, name in enumerate(_INK_NAMES)}
_NAMES = {color: name for name, color in INKS.items()}
_PROPERTIES = frozenset(
    {
        "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "opacity", "fill-opacity",
        "stroke-opacity", "text-anchor", "font-size", "font-weight",
    }
)  # fmt: skip
_FONT_SIZE = re.compile(r"([\d.]+)px")
_REFERENCE = re.compile(r"#(?=[A-Za-z])([\w-]+)")


def themed(drawing: bytes, name: str, title: str, description: str) -> Markup:
    """The drawing with the names of its inks as classes. name: makes its ids unique in the page."""
    root = ElementTree.fromstring(drawing)
    used = {match for element in root.iter() for value in element.attrib.values() for match in _REFERENCE.findall(value)}
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = dict(_attributes(element, used, name))
        for child in [child for child in element if _local(child.tag) in ("metadata", "style")]:
            element.remove(child)
    box = root.attrib["viewBox"]
    root.attrib = {"viewBox": box, "role": "img", "aria-labelledby": f"{name}-title {name}-desc", "class": f"chart {name.rsplit('-', 1)[-1]}"}
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        words = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        words.text = text
        root.insert(place, words)
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=True))


def _attributes(element: ElementTree.Element, used: set[str], name: str) -> Iterator[tuple[str, str]]:
    classes: list[str] = []
    plain = _plain(element)
    for key, value in [*plain, *_declared(element.get("style", ""))]:
        ink = _NAMES.get(value)
        if key == "id":
            if value in used:
                yield key, f"{name}-{value}"
        elif ink is not None:
            classes.append(f"{'f' if key == 'fill' else 's'}-{ink}")
        elif key == "font":
            size = _FONT_SIZE.search(value)
            yield "font-size", size[1] if size else "12"
            if "bold" in value or "600" in value:
                yield "font-weight", "600"
        elif key in _PROPERTIES or (key, value) in plain:
            yield key, _REFERENCE.sub(lambda match: f"#{name}-{match[1]}" if match[1] in used else match[0], value)
    if element.tag == "text" and not classes:
        classes.append("f-text")
    if classes:
        yield "class", " ".join(dict.fromkeys(classes))


def _plain(element: ElementTree.Element) -> list[tuple[str, str]]:
    return [(_local(key), value) for key, value in element.attrib.items() if key != "style"]


def _declared(style: str) -> list[tuple[str, str]]:
    """The declarations of a style attribute."""
    pairs = [part.partition(":") for part in style.split(";") if ":" in part]
    return [(key.strip(), value.strip()) for key, _, value in pairs]


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
