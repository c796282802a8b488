"""The rules that need to see more than one field: one implementation for controllers, webhook and command.

- :func:`validate` gives every mistake in an object, in the order in which the reference looks for them.
- :func:`failure` gives what a controller has to say about the first part of the object that is wrong.
- :func:`warnings` gives what is allowed but will not do what it seems to.
- :func:`admission_problems` gives what the optional webhook refuses.
- :data:`CATALOGUE` lists every rule with its id.

Objects are expected as the API server stores them, with the defaults of the schema filled in
(:func:`kuberay_op.api.defaults.with_defaults`); their structure is the business of
:func:`kuberay_op.api.schema.schema_problems`. Nothing here fails on an object that breaks it.
"""

from __future__ import annotations

from kuberay_op.api.validation.entry import (
    KINDS,
    Failure,
    admission_problems,
    failure,
    validate,
    warnings,
)
from kuberay_op.api.validation.rules import CATALOGUE, RuleInfo

__all__ = [
    "CATALOGUE",
    "KINDS",
    "Failure",
    "RuleInfo",
    "admission_problems",
    "failure",
    "validate",
    "warnings",
]
