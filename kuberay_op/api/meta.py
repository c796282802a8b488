"""What all our kinds share: metadata, conditions, and the head of a custom resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from kuberay_op.api.fields import Flag, Integer, Nested, NestedList, Text, TextList, TextMap, Time
from kuberay_op.api.view import Json, View

#: The API group of every kind here.
GROUP: Final = "ray.io"


class OwnerReference(View):
    """Which object this one belongs to."""

    api_version = Text("apiVersion", "Group and version of the owner.", required=True, min_length=1)
    kind = Text("kind", "Kind of the owner.", required=True, min_length=1)
    name = Text("name", "Name of the owner.", required=True, min_length=1)
    uid = Text("uid", "Unique id of the owner.", required=True, min_length=1)
    controller = Flag("controller", "Whether this owner is the one that manages the object.")
    block_owner_deletion = Flag("blockOwnerDeletion", "Whether the owner waits for this object to go first.")


class Metadata(View):
    """The part of ``metadata`` that we read or write. The API server has its own schema for it."""

    name = Text("name", "Name, unique in the namespace.")
    generate_name = Text("generateName", "Prefix from which the server makes a unique name.")
    namespace = Text("namespace", "Namespace of the object.")
    labels = TextMap("labels", "Labels, for selection.")
    annotations = TextMap("annotations", "Annotations, for information.")
    uid = Text("uid", "Unique id, given by the server.")
    self_link = Text("selfLink", "No longer filled in by the server.")
    resource_version = Text("resourceVersion", "Changes with every write.")
    generation = Integer("generation", "Goes up with every change of the spec.", bits=64)
    creation_timestamp = Time("creationTimestamp", "When the object was made.")
    deletion_timestamp = Time(
        "deletionTimestamp", "When the object was asked to go; unset while it may stay."
    )
    deletion_grace_period_seconds = Integer(
        "deletionGracePeriodSeconds", "Seconds the object was given to go.", bits=64
    )
    finalizers = TextList("finalizers", "What must be done before the object may go.")
    owner_references = NestedList("ownerReferences", "Which objects this one belongs to.", OwnerReference)


class Condition(View):
    """One aspect of the state of an object, as Kubernetes writes conditions."""

    type = Text(
        "type",
        "Which aspect this is about, in CamelCase.",
        required=True,
        max_length=316,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    )
    status = Text("status", "Whether it holds.", required=True, choices=("True", "False", "Unknown"))
    reason = Text(
        "reason",
        "Why, in one CamelCase word for programs.",
        required=True,
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    )
    message = Text("message", "Why, in a sentence for people.", required=True, max_length=32768)
    last_transition_time = Time("lastTransitionTime", "When the status last changed.", required=True)
    observed_generation = Integer(
        "observedGeneration", "The generation of the object this was computed from.", bits=64, minimum=0
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``."""

    name: str
    type: str
    path: str
    #: 0 is always shown, higher ones only with ``-o wide``.
    priority: int = 0

    def schema(self) -> Json:
        """The entry in ``additionalPrinterColumns``."""
        entry: Json = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.priority:
            entry["priority"] = self.priority
        return entry


class CustomResource(View):
    """A whole object of one of our kinds: apiVersion, kind, metadata, spec and status."""

    KIND: ClassVar[str] = ""
    PLURAL: ClassVar[str] = ""
    VERSION: ClassVar[str] = "v1"
    COLUMNS: ClassVar[tuple[Column, ...]] = ()

    api_version = Text("apiVersion", "Group and version of this object's schema.")
    kind = Text("kind", "Kind of the object.")
    metadata = Nested("metadata", "Standard Kubernetes metadata: name, labels and so on.", Metadata)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``, or ``default`` when it is not set."""
        return self.metadata.namespace or "default"

    @classmethod
    def schema(cls) -> Json:
        """The schema of the whole object; ``metadata`` is left to the API server."""
        schema = {"description": cls.__doc__ or "", **super().schema()}
        properties = schema["properties"]
        properties["metadata"] = {"type": "object"}
        for name in ("apiVersion", "kind"):
            properties[name] = {"type": "string"}
        return schema
