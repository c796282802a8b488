"""YAML as the reference's parser reads it, with the line of every value.

The reference reads its file with a YAML 1.1 parser that differs from PyYAML: ``y`` and ``n`` are booleans,
``3e2`` is a number, ``1:30`` and dates are text. A file must mean the same here, so plain scalars are
resolved by that parser's rules.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

#: The place of a value: keys and indices from the top.
Place = tuple[str | int, ...]

_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")

#: What a plain scalar is: the first that fits.
_SCALARS: Final = (
    ("merge", r"<<"),
    ("null", r"~|null|Null|NULL|"),
    ("bool", "|".join((*_TRUE, *_FALSE))),
    ("int", r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|0[0-7_]*|[1-9][0-9_]*)"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"),
)


class Unreadable(ValueError):
    """The text is no YAML; says why, and in which line if that is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(slots=True)
class Document:
    """What a file holds."""

    value: Any = None
    #: The line of every key and list item, counted from 1. Empty for JSON.
    lines: dict[Place, int] = field(default_factory=dict)
    #: Keys that are there twice; the last counts.
    repeated: list[Place] = field(default_factory=list)
    #: Whether more documents follow; they are not read.
    more: bool = False


class _Loader(yaml.SafeLoader):
    """PyYAML's parser with the other parser's opinion on plain scalars."""

    # The key None applies to every first character; the type stubs only know strings.
    yaml_implicit_resolvers: Any = {  # noqa: RUF012 - as the base class has it
        None: [(_TAG + name, re.compile(rf"(?:{pattern})\Z")) for name, pattern in _SCALARS]
    }


def load(text: str) -> Document:
    """Read the first document of ``text``, YAML or JSON."""
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith("{"):
        try:  # JSON may be indented with tabs, which YAML forbids
            return Document(json.loads(text))
        except ValueError:
            pass  # YAML in braces
    try:
        loader = _Loader(text)
        document = Document()
        if loader.check_node() and (root := loader.get_node()):
            _fill(document, loader, root)
            document.more = bool(loader.check_node())
        return document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(error.problem or "no valid YAML", mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise Unreadable(str(error).partition("\n")[0]) from None
    except RecursionError:
        raise Unreadable("nested too deeply") from None


def _fill(document: Document, loader: _Loader, root: yaml.Node) -> None:
    above: set[int] = set()  # nodes we are inside of: an anchor may refer to what it is part of

    def build(node: yaml.Node, place: Place) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if id(node) in above:
            raise Unreadable("a value contains itself", node.start_mark.line + 1)
        above.add(id(node))
        result = mapping(node, place) if isinstance(node, yaml.MappingNode) else sequence(node, place)
        above.remove(id(node))
        return result

    def sequence(node: yaml.Node, place: Place) -> list[Any]:
        items = []
        for index, item in enumerate(node.value):
            document.lines[*place, index] = item.start_mark.line + 1
            items.append(build(item, (*place, index)))
        return items

    def mapping(node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        own = [_key(key) for key, _ in node.value if key.tag != f"{_TAG}merge"]
        document.repeated += [(*place, key) for key in dict.fromkeys(own) if own.count(key) > 1]
        loader.flatten_mapping(node)
        items = {}
        for key_node, value in node.value:
            key = _key(key_node)
            document.lines[*place, key] = key_node.start_mark.line + 1
            items[key] = build(value, (*place, key))
        return items

    document.value = build(root, ())


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise Unreadable("a key must be a word", node.start_mark.line + 1)
    value = _scalar(node)
    return json.dumps(value) if isinstance(value, bool) else str(node.value)


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    try:
        match node.tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool":
                return text in _TRUE
            case "int":
                return _integer(text.replace("_", ""))
            case "float":
                return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan").lower())
            case _:
                return text
    except ValueError:
        raise Unreadable(f"{text!r} is no number", node.start_mark.line + 1) from None


def _integer(digits: str) -> int:
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
    return int(octal[1] + octal[2], 8) if octal else int(digits, 0)
