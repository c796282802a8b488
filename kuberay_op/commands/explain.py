"""``kuberay-op explain``: what a field is for, without a cluster."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import click

from kuberay_op.api.crds import VERSIONS, find_kind, nearest_kind, schema_of
from kuberay_op.api.meta import GROUP, CustomResource
from kuberay_op.api.view import Json
from kuberay_op.hints import nearest

WIDTH: Final = 80


@click.command()
@click.argument("path", metavar="KIND[.FIELD]...")
@click.option(
    "--api-version", type=click.Choice(["v1", "v1alpha1"]), default="v1", show_default=True, help="Version."
)
@click.option("--recursive", is_flag=True, help="Show all fields below, with their types only.")
@click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the print.",
)
def explain(path: str, api_version: str, recursive: bool, output: str) -> None:
    """Say what a kind or field is for: type, default, allowed values, the fields below.

    For example: kuberay-op explain raycluster.spec.workerGroupSpecs.scaleStrategy

    Exit codes: 0 all is well, 1 there is no such field, 2 wrong use.
    """
    kind, *steps = path.split(".")
    view = _view(kind, api_version)
    schema, required = locate(view, steps)
    entry = describe(schema, required=required)
    entry = {"kind": view.KIND, "apiVersion": f"{GROUP}/{view.VERSION}", "path": ".".join(steps), **entry}
    fields = [{"name": name, **described} for name, described in _fields(schema)]
    if output == "json":
        click.echo(json.dumps({**entry, "fields": fields}, indent=2))
    else:
        click.echo("\n".join(_page(entry, fields, schema if recursive else None)))


def _view(name: str, version: str) -> type[CustomResource]:
    kind = find_kind(name)
    if kind is None:
        raise click.UsageError(nearest_kind(name))
    for view in VERSIONS[kind]:
        if version == view.VERSION:
            return view
    raise click.UsageError(f"{kind} has no version {version}; it has {VERSIONS[kind][0].VERSION}")


def locate(view: type[CustomResource], steps: list[str]) -> tuple[Json, bool]:
    """The schema at a path of field names, and whether the field is required; lists are passed through."""
    schema, required = schema_of(view), False
    for index, step in enumerate(steps):
        inner = _inside(schema)
        properties: Json = inner.get("properties", {})
        if step in properties:
            schema, required = properties[step], step in inner.get("required", ())
        elif "additionalProperties" in inner:
            schema, required = inner["additionalProperties"], False
        else:
            where = ".".join([view.KIND, *steps[:index]])
            if not properties:
                raise click.ClickException(f"{where} is of type {type_name(schema)} and has no fields")
            near = nearest(step, properties)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(properties))}"
            raise click.ClickException(f"{where} has no field {step!r}; {hint}")
    return schema, required


def _inside(schema: Json) -> Json:
    """The entry of a list, else the schema itself."""
    while schema.get("type") == "array":
        schema = schema["items"]
    return schema


def type_name(schema: Json) -> str:
    """The type in words: ``list of strings`` rather than ``array``."""
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if "pattern" in schema else "integer or string"
    kind = str(schema["type"])
    if kind == "array":
        return f"list of {_plural(type_name(schema['items']))}"
    if kind == "object" and "additionalProperties" in schema:
        return f"map of {_plural(type_name(schema['additionalProperties']))}"
    if schema.get("format") == "date-time":
        return "time"
    return kind


def _plural(name: str) -> str:
    return name.replace("quantity", "quantitie") + "s"


def describe(schema: Json, *, required: bool) -> Json:
    """What there is to say about one field, without the fields below."""
    entry: Json = {"type": type_name(schema), "required": required and "default" not in schema}
    for key, source in (("description", "description"), ("default", "default"), ("allowed", "enum")):
        if source in schema:
            entry[key] = schema[source]
    limits = {key: schema[key] for key in ("minimum", "minLength", "maxLength", "minItems") if key in schema}
    if limits:
        entry["limits"] = limits
    rules = [rule["message"] for rule in schema.get("x-kubernetes-validations", ())]
    if rules:
        entry["rules"] = rules
    return entry


def _fields(schema: Json) -> Iterator[tuple[str, Json]]:
    inner = _inside(schema)
    inner = inner.get("additionalProperties", inner)
    for name, entry in inner.get("properties", {}).items():
        yield name, describe(entry, required=name in inner.get("required", ()))


def _page(entry: Json, fields: list[Json], tree: Json | None) -> Iterator[str]:
    yield f"KIND:     {entry['kind']}"
    yield f"VERSION:  {entry['apiVersion']}"
    if entry["path"]:
        yield f"FIELD:    {entry['path']} <{entry['type']}>{_marks(entry)}"
    yield ""
    yield from _wrapped(entry.get("description", "A type of Kubernetes; see its documentation."), "")
    yield from _details(entry, "")
    if tree is not None:
        yield "\nFIELDS:"
        yield from _tree(tree, "  ")
    elif fields:
        yield "\nFIELDS:"
        for field in fields:
            yield f"  {field['name']} <{field['type']}>{_marks(field)}"
            if "description" in field:
                yield from _wrapped(field["description"], "    ")
            yield from _details(field, "    ")


def _marks(entry: Json) -> str:
    return " (required)" if entry["required"] else ""


def _details(entry: Json, indent: str) -> Iterator[str]:
    if "default" in entry:
        yield f"{indent}Default: {json.dumps(entry['default'])}"
    if "allowed" in entry:
        yield f"{indent}Allowed: {', '.join(map(str, entry['allowed']))}"
    for name, value in entry.get("limits", {}).items():
        yield f"{indent}{name}: {value}"
    for rule in entry.get("rules", ()):
        yield from _wrapped(f"Rule: {rule}", indent)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)


def _tree(schema: Json, indent: str) -> Iterator[str]:
    inner: Any = _inside(schema)
    inner = inner.get("additionalProperties", inner)
    for name, entry in inner.get("properties", {}).items():
        yield f"{indent}{name} <{type_name(entry)}>"
        yield from _tree(entry, f"{indent}  ")
