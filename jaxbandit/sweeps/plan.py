"""What a store holds, block by block, and how it grows to hold what is asked."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Content(NamedTuple):
    """Of a policy: ``digests`` of its numbers in every cell (``None`` where it was never asked for), the fingerprint
    of its program, and the names of what it reports."""

    digests: list[str | None]
    code: str
    diagnostics: list[str]


class Ask(NamedTuple):
    """What a call asks for: ``values``, ``digests``, ``gaps`` [cells, K] and those of the policies are by cell.

    ``kept`` is how many seeds keep their curves, or None for as many as the store keeps, by default ``default_kept``;
    ``room`` is that of a new store's blocks.
    """

    names: list[str]
    values: list[list[float]]
    digests: list[str]
    gaps: np.ndarray
    code: str
    policies: dict[str, Content]
    seeds: int
    kept: int | None
    default_kept: int
    room: tuple[int, int]


class Plan(NamedTuple):
    """``values`` and all digests are of the cells in the order in which the store got them, as are ``policies``.

    Block (i, j) of a policy holds cells ``cell_edges[i]`` up to ``cell_edges[i+1]`` and the seeds from the first to the
    second number of ``seed_ranges[j]``, and has room for ``room`` = [cells, seeds] at most. Ranges may overlap.
    """

    room: tuple[int, int]
    kept: int
    code: str
    values: list[list[float]]
    digests: list[str]
    cell_edges: list[int]
    seed_ranges: list[tuple[int, int]]
    policies: dict[str, Content]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.cell_edges) - 1, len(self.seed_ranges)

    def extent(self, i: int, j: int) -> tuple[int, int, int, int]:
        """First and last cell, first and last seed of a block (the last ones excluded)."""
        return *self.cell_edges[i : i + 2], *self.seed_ranges[j]  # pyright: ignore[reportReturnType]

    def places(self, values: list[list[Any]]) -> np.ndarray:
        """Where the cells are."""
        index = {tuple(cell): at for at, cell in enumerate(self.values)}
        return np.array([index[tuple(cell)] for cell in values])

    def rows(self, places: np.ndarray) -> list[int]:
        """The blocks of cells that hold any of these."""
        return np.unique(np.searchsorted(self.cell_edges, places, side="right") - 1).tolist()

    def columns(self, seeds: int) -> list[int]:
        """The ranges of seeds that make up ``0..seeds``, in order."""
        path = _path(self.seed_ranges, seeds)
        return [self.seed_ranges.index(part) for part in path]

    def other_code(self, name: str, policy: Content) -> bool:
        return name in self.policies and self.policies[name].code != policy.code

    def to_json(self) -> dict[str, Any]:
        policies = [{"name": name} | content._asdict() for name, content in self.policies.items()]
        ranges = [list(part) for part in self.seed_ranges]
        return self._asdict() | {"room": list(self.room), "seed_ranges": ranges, "policies": policies}

    @classmethod
    def from_json(cls, stored: Any) -> "Plan":
        plan = cls(**stored)
        return plan._replace(
            room=tuple(plan.room),
            seed_ranges=[tuple(part) for part in plan.seed_ranges],
            policies={policy.pop("name"): Content(**policy) for policy in map(dict, stored["policies"])},
        )


def room_for(cells: int, seeds: int, runs: int) -> tuple[int, int]:
    """Blocks of about ``runs`` runs each, of equal size; with room for more seeds to come if these are few."""
    tall = max(1, min(cells, runs // seeds))
    tall = -(-cells // -(-cells // tall))
    if seeds >= runs:
        return tall, -(-seeds // -(-seeds // runs))
    return tall, max(seeds, runs // tall)


def edges(start: int, stop: int, most: int) -> list[int]:
    """Where to cut ``start..stop`` into equal parts of at most ``most``, without ``start`` itself."""
    parts = -(-(stop - start) // most)
    return [start + (stop - start) * (i + 1) // parts for i in range(parts)]


def _path(ranges: list[tuple[int, int]], seeds: int) -> list[tuple[int, int]]:
    """Ranges one after another, from 0 as far as they go without passing ``seeds``."""
    paths: dict[int, list[tuple[int, int]]] = {0: []}
    for start, stop in sorted(ranges):
        if start in paths and stop <= seeds and stop not in paths:
            paths[stop] = [*paths[start], (start, stop)]
    return paths[max(paths)]


def extended(plan: Plan | None, ask: Ask) -> Plan:
    """``plan``, with blocks for the cells, seeds and policies that it lacks."""
    kept = ask.default_kept if ask.kept is None else ask.kept
    plan = plan or Plan(ask.room, kept, ask.code, [], [], [0], [], {})
    stored = set(map(tuple, plan.values))
    new = [at for at, cell in enumerate(ask.values) if tuple(cell) not in stored]
    before, cells = len(plan.values), len(plan.values) + len(new)
    path = _path(plan.seed_ranges, ask.seeds)
    reached = path[-1][1] if path else 0
    ends = edges(reached, ask.seeds, plan.room[1]) if ask.seeds > reached else []
    plan = plan._replace(
        values=plan.values + [ask.values[at] for at in new],
        digests=plan.digests + [ask.digests[at] for at in new],
        cell_edges=plan.cell_edges + (edges(before, cells, plan.room[0]) if new else []),
        seed_ranges=plan.seed_ranges + list(zip([reached, *ends], ends, strict=False)),
    )
    unknown = {name: content for name, content in ask.policies.items() if name not in plan.policies}
    policies: dict[str, Content] = {}
    places = plan.places(ask.values).tolist()
    for name, content in {**plan.policies, **unknown}.items():
        digests: list[str | None] = [*content.digests, *[None] * len(new)] if name in plan.policies else [None] * cells
        if name in ask.policies:
            for at, digest in zip(places, ask.policies[name].digests, strict=True):
                digests[at] = digest
        policies[name] = content._replace(digests=digests)
    return plan._replace(policies=policies)


def differences(plan: Plan, ask: Ask, stored: Mapping[str, Any], same: Mapping[str, Any]) -> list[str]:
    """What a store was made with that a call has otherwise, in words. It names nothing but what a caller has set."""
    found = [
        f"{name}: {_short(stored.get(name))} in the store, {_short(same.get(name))} in the call"
        for name in sorted({*stored, *same})
        if stored.get(name) != same.get(name)
    ]
    if ask.kept is not None and min(ask.kept, ask.seeds) > plan.kept:
        found.append(f"curves: {plan.kept} in the store, {ask.kept} in the call")
    if stored["axes"] != same["axes"]:
        return found
    index = {tuple(cell): at for at, cell in enumerate(plan.values)}
    at = [index.get(tuple(cell)) for cell in ask.values]
    compared: dict[str, tuple[list[Any], list[Any]]] = {"an instance": (plan.digests, list(ask.digests))}
    for name, content in ask.policies.items():
        if name in plan.policies:
            compared[f"a policy {name!r}"] = plan.policies[name].digests, list(content.digests)
    for what, (before, now) in compared.items():
        other = [i for i, j in enumerate(at) if j is not None and before[j] not in (None, now[i])]
        if other:
            cell = dict(zip(ask.names, ask.values[other[0]], strict=True))
            found.append(
                f"build: gives {what} with other numbers than what was stored, at {len(other)} cells such as {cell}"
            )
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(value)} entries)"
