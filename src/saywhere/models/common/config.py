"""What every description of a network's shape shares: plain values, checked when made, written and read by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from saywhere.core.errors import InvalidValue, UnknownName

_KINDS: dict[Any, tuple[Any, str]] = {
    "int": (int, "a whole number"),
    "float": (int | float, "a number"),
    "bool": (bool, "true or false"),
}


@dataclass(frozen=True, slots=True)
class ShapeConfig:
    """The base of every family's config. Counts are positive, real numbers are in [0, 1), unless a family says more.

    family: whose config it is, as errors name it. may_be_zero: counts that may be 0. added: names that configs of older
    weights do not have; their defaults are what those weights were.
    """

    family: ClassVar[str]
    may_be_zero: ClassVar[tuple[str, ...]] = ()
    added: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type in _KINDS:
                self._check_number(field.name, getattr(self, field.name), str(field.type))
        width, heads = getattr(self, "width", 0), getattr(self, "heads", 1)
        if width % heads:
            raise InvalidValue(f"{self.family} config width", f"{width} does not divide into {heads} heads")

    def _check_number(self, name: str, value: Any, kind: str) -> None:
        expected, called = _KINDS[kind]
        what = f"{self.family} config {name}"
        if not isinstance(value, expected) or (isinstance(value, bool) and kind != "bool"):
            raise InvalidValue(what, f"is {value!r}, not {called}")
        if kind == "float" and not 0 <= value < 1:
            raise InvalidValue(what, f"is {value}, not in [0, 1)")
        if kind == "int" and value < (name not in self.may_be_zero):
            raise InvalidValue(what, f"is {value}, not a positive number")

    def to_dict(self) -> dict[str, Any]:
        """For JSON, and for `from_dict`."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config that `to_dict` wrote, now or before some names were `added`; unknown names, missing ones and wrong
        types are refused."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise UnknownName(f"{cls.family} config key", name, known)
        missing = [name for name in known if name not in values and name not in cls.added]
        if missing:
            raise InvalidValue(f"{cls.family} config", f"does not say {', '.join(missing)}")
        return cls(**values)
