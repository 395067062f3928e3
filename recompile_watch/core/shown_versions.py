"""The versions of torch that a log shows, as far as it shows them."""

from collections.abc import Collection

from recompile_watch.core.findings import LIMIT_KIND
from recompile_watch.core.groups import Group
from recompile_watch.core.late import pattern
from recompile_watch.core.versions import ANY_VERSION, Version, VersionRange, dotted, exactly, told_range, version_of

# A guard on a local: torch before 2.7 wraps it, L['x'].
_NEW_SOURCE = pattern(
    r"tensor '(?![LG]\[|___)\w[^']*' (?:size|stride|dtype|rank|requires_grad) mismatch|___check_(?:obj|type)_id\((?![LG]\[|___)"
    r"|(?!(?:[LG]\[|___|torch\b|utils_device))\w[\w.]* == "
)


def settled(named: str | None, groups: Collection[Group]) -> tuple[Version | None, VersionRange]:
    """The version, if it is known, and those that it may be. named: what somebody said that it is, who is believed."""
    version = version_of(named)
    torch = shown_versions(groups) if version is None else exactly(version)
    return version or torch.only, torch


def shown_version(groups: Collection[Group]) -> str | None:
    """The version that the log shows, ``2.13``; None where it may be several."""
    only = shown_versions(groups).only
    return None if only is None else dotted(only)


def shown_versions(groups: Collection[Group]) -> VersionRange:
    """The versions of torch that print what the log holds, all of one version where its prefixes name torch's own lines.

    Else: 2.7 renamed the limit, and took ``L['…']`` off the sources in guards; a graph break carries the number of its entry in torch's
    registry since a later version.
    """
    by_line = {str(found) for group in groups for event in (group.first, group.last) if (found := event.extra.get("torch")) is not None}
    shown = [told_range(text) for text in by_line]
    if shown and all(one.overlaps(other) for one in shown for other in shown):
        return VersionRange(max(one.first for one in shown), min((one.end for one in shown if one.end is not None), default=None))
    names = {str(group.values.get("limit_name")) for group in groups}
    if any("recompile_limit" in name for name in names):
        return VersionRange((2, 7), None)
    if any("cache_size_limit" in name for name in names) or any(_has_old_source(group) for group in groups):
        return VersionRange((2, 0), (2, 7))
    is_new = any(group.first.extra.get("gb_id") is not None or _has_new_source(group) for group in groups)
    return VersionRange((2, 7), None) if is_new else ANY_VERSION


def _has_old_source(group: Group) -> bool:
    """True for a guard on a local as torch before 2.7 prints it: ``tensor 'L['x']' size mismatch …``."""
    is_recompile = group.key.kind in ("recompile", LIMIT_KIND)
    return is_recompile and any("L['" in reason.text and not reason.text.startswith("Cache line") for reason in group.last.reasons[:1])


def _has_new_source(group: Group) -> bool:
    """True for a guard on a local as torch from 2.7 on prints it: ``6/7: tensor 'x' size mismatch …``; the torchdynamo of 2022 named no entry."""
    is_recompile = group.key.kind in ("recompile", LIMIT_KIND)
    return is_recompile and any(reason.entry is not None and _NEW_SOURCE.match(reason.text) for reason in group.last.reasons[:1])
