"""Attributes of options, typed as onnxruntime's are; those that do nothing say so once."""

from __future__ import annotations

import operator
import os
import warnings

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


def member_of(kind):
    def check(value):
        if not isinstance(value, kind):
            raise TypeError
        return value

    check.__name__ = kind.__name__
    return check


class Attribute:
    """One of onnxruntime's attributes. `inert`: why it does nothing, where it does; `like_default` are values
    that ask for what is done anyway."""

    def __init__(self, default, check, inert: str = "", like_default=()):
        self.default, self.check, self.inert = default, check, inert
        self.like_default = (default, *like_default)

    def __set_name__(self, owner, name):
        self.owner, self.name = owner.__name__, name

    def __get__(self, instance, owner=None):
        return self if instance is None else instance.__dict__.get(self.name, self.default)

    def __set__(self, instance, value):
        try:
            value = self.check(value)
        except TypeError:
            kind = {"flag": "a bool", "integer": "an int of 32 bits", "text": "a str"}.get(
                self.check.__name__, f"a {self.check.__name__}"
            )
            raise TypeError(f"{self.owner}.{self.name} takes {kind}, got {value!r}") from None
        if self.inert and value not in self.like_default:
            tell_once(f"{self.owner}.{self.name}", self.inert, 4)
        instance.__dict__[self.name] = value


class Options:
    """Has only the attributes that its class tells of, and entries of text."""

    _entry_effects: frozenset[str] = frozenset()

    def __init__(self):
        self._entries: dict[str, str] = {}

    def __setattr__(self, name, value):
        if not name.startswith("_") and not hasattr(type(self), name) and name not in self._own:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        object.__setattr__(self, name, value)

    # Plain attributes, beside those that the class describes.
    _own: frozenset[str] = frozenset()

    def _add_entry(self, key, value) -> None:
        from .errors import Fail

        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"a config entry is two str, got {key!r} and {value!r}")
        if not 0 < len(key.encode()) <= 1024:
            raise Fail("Config key is empty or longer than maximum length 1024")
        if len(value.encode()) > 8192:
            raise Fail("Config value is longer than maximum length: 8192")
        if key not in self._entry_effects:
            tell_once(f"the config entry '{key}' of {type(self).__name__}", "there is no such setting", 4)
        self._entries[key] = value

    def _get_entry(self, key) -> str:
        from .errors import Fail

        if not isinstance(key, str):
            raise TypeError(f"the key of a config entry is a str, got {key!r}")
        if key not in self._entries:
            raise Fail(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]
