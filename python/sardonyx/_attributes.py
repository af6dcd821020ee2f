"""Attributes of options, typed as onnxruntime's are."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ._suggest import close_to
from .errors import Fail, InvalidArgument

T = TypeVar("T")
_told: set[str] = set()


def tell_once(name: str, reason: str, stacklevel: int = 3) -> None:
    """Warns that something which onnxruntime has does nothing here, the first time in a process."""
    if name not in _told:
        _told.add(name)
        warnings.warn(f"{name} has no effect in Sardonyx: {reason}", stacklevel=stacklevel)


def flag(value) -> bool:
    if value is not None and not hasattr(type(value), "__bool__"):
        raise TypeError
    return bool(value)


def integer(value) -> int:
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise TypeError
    return number


def text(value) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError
    return os.fspath(value)


def names(value) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(name, str) for name in value):
        raise TypeError
    return tuple(value)


def anything(value) -> Any:
    return value


def member_of(kind: type[T]) -> Callable[[Any], T]:
    def check(value):
        if not isinstance(value, kind):
            raise TypeError
        return value

    check.__name__ = kind.__name__
    return check


class Attribute(Generic[T]):
    """An attribute with a default, a check and a docstring. `hint`: why it does nothing, where it does; as it asks only
    for another way to the same results, nothing is said of it when it is set."""

    def __init__(self, default: T, check: Callable[[Any], T], doc: str, hint: str = ""):
        self.default, self.check, self.hint = default, check, hint
        self.__doc__ = f"{doc} No effect: {hint}." if hint else doc

    def __set_name__(self, owner, name):
        self.owner, self.name = owner.__name__, name

    @overload
    def __get__(self, instance: None, owner=None) -> Attribute[T]: ...
    @overload
    def __get__(self, instance: object, owner=None) -> T: ...
    def __get__(self, instance, owner=None):
        return self if instance is None else instance.__dict__.get(self.name, self.default)

    def __set__(self, instance, value: T) -> None:
        try:
            value = self.check(value)
        except TypeError:
            kind = {"flag": "a bool", "integer": "an int of 32 bits", "text": "a str", "names": "a list of str"}.get(
                self.check.__name__, f"a {self.check.__name__}"
            )
            raise TypeError(f"{self.owner}.{self.name} takes {kind}, got {value!r}") from None
        instance.__dict__[self.name] = value


class Options:
    """Has only the attributes that its class tells of, and entries of text."""

    # The keys that onnxruntime has; what is none of them, but looks like one, is refused.
    _known_entries: Iterable[str] = frozenset()

    def __init__(self):
        self._entries: dict[str, str] = {}

    if not TYPE_CHECKING:  # which know by themselves

        def __setattr__(self, name, value):
            if not name.startswith("_") and not hasattr(type(self), name):
                like = close_to(name, (known for known in dir(type(self)) if not known.startswith("_")))
                hint = f" (did you mean {like}?)" if like else ""
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")
            object.__setattr__(self, name, value)

    def __repr__(self):
        """Those attributes that are not as they are at first."""
        names = sorted(name for name in dir(type(self)) if isinstance(getattr(type(self), name), Attribute))
        given = [(name, getattr(self, name)) for name in names]
        changed = [f"{name}={value!r}" for name, value in given if value != getattr(type(self), name).default]
        changed += [f"{key!r}: {value!r}" for key, value in self._entries.items()]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _add_entry(self, key, value) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"a config entry is two str, got {key!r} and {value!r}")
        if not 0 < len(key.encode()) <= 1024:
            raise Fail("Config key is empty or longer than maximum length 1024")
        if len(value.encode()) > 8192:
            raise Fail("Config value is longer than maximum length: 8192")
        if key not in self._known_entries:
            # Custom operators and other releases have keys of their own, which differ from these by more than a letter or two.
            if like := close_to(key, self._known_entries, 0.93):
                raise InvalidArgument(f"{type(self).__name__} has no config entry '{key}' (did you mean {like}?)")
            tell_once(f"the config entry '{key}' of {type(self).__name__}", "there is no such setting", 4)
        self._entries[key] = value

    def _get_entry(self, key) -> str:
        if not isinstance(key, str):
            raise TypeError(f"the key of a config entry is a str, got {key!r}")
        if key not in self._entries:
            like = close_to(key, self._entries)
            hint = f" (did you mean {like}?)" if like else ""
            raise Fail(f"{type(self).__name__} does not have configuration with key: {key}{hint}")
        return self._entries[key]
