"""Feature gates: switches for what is new, with their stage and since when.

``Gates`` is an immutable set of gates with their states. It starts from the defaults (``Gates.default()``,
or ``Gates(extra)`` with those plugins add) and ``with_overrides("A=true,B=false")`` gives a new one, with
the rules of Kubernetes' own parser: blanks around names and values do not count, ``AllAlpha`` and
``AllBeta`` switch whatever of that stage is not named itself, the order of the names does not matter, and
of a name given twice the last counts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kuberay_op.errors import Misconfigured
from kuberay_op.hints import nearest


class Stage(enum.Enum):
    """How far a feature has come."""

    ALPHA = "alpha"  # off unless asked for; may change or go
    BETA = "beta"  # on; stays in some form
    STABLE = "stable"  # on; the gate itself will go


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """One switch. ``since`` is the release in which it reached its stage."""

    name: str
    stage: Stage
    since: str
    default: bool
    doc: str


#: Every gate of the operator itself.
GATES: Final[tuple[FeatureGate, ...]] = (
    FeatureGate(
        "RayClusterStatusConditions",
        Stage.BETA,
        "1.3",
        True,
        "Conditions in the status of a RayCluster, and suspension that reports through them.",
    ),
    FeatureGate(
        "RayJobDeletionPolicy",
        Stage.BETA,
        "1.6",
        True,
        "`deletionStrategy` of a RayJob, and suspending single worker groups.",
    ),
    FeatureGate(
        "RayMultiHostIndexing",
        Stage.BETA,
        "1.6",
        True,
        "Index labels on the Pods of multi-host replicas, which then live and die together.",
    ),
    FeatureGate(
        "RayServiceIncrementalUpgrade",
        Stage.BETA,
        "1.7",
        True,
        "Upgrades of a RayService that shift traffic step by step through the Gateway API.",
    ),
    FeatureGate("RayCronJob", Stage.ALPHA, "1.6", False, "The RayCronJob controller."),
    FeatureGate(
        "SidecarSubmitterRestart",
        Stage.ALPHA,
        "1.7",
        False,
        "A sidecar submitter that may restart. Needs Kubernetes 1.35 and Ray 2.54.",
    ),
    FeatureGate(
        "RayClusterNetworkPolicy",
        Stage.ALPHA,
        "1.7",
        False,
        "The controller for NetworkPolicies of RayClusters.",
    ),
    FeatureGate(
        "GCSFaultToleranceEmbeddedStorage",
        Stage.ALPHA,
        "1.7",
        False,
        "Fault tolerance of the head with a RocksDB store on a volume, without Redis.",
    ),
    FeatureGate(
        "RayClusterMTLS",
        Stage.ALPHA,
        "1.7",
        False,
        "`tlsOptions` and the controller that gets certificates from cert-manager.",
    ),
    FeatureGate(
        "RayClusterHistoryServer", Stage.ALPHA, "1.7", False, "The collector sidecar for the history server."
    ),
    FeatureGate(
        "KubernetesWAS",
        Stage.ALPHA,
        "1.7",
        False,
        "Gang scheduling by Kubernetes' own workload API. Excludes every batch scheduler.",
    ),
)

#: Gates the reference had in some release and has no more: accepted, without effect.
RETIRED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "AsyncJobInfoQuery": "Ray is always asked outside the reconcile loop",
    }
)

#: Names that stand for all gates of a stage.
GROUPS: Final[Mapping[str, Stage]] = MappingProxyType({"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA})

#: The spellings Go's ``strconv.ParseBool`` takes.
BOOLEANS: Final[Mapping[str, bool]] = MappingProxyType(
    {
        **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
        **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
    }
)


class Gates:
    """Which features are on. Immutable; every change gives a new object."""

    __slots__ = ("_enabled", "_known", "_set", "warnings")

    #: Sentences about overrides that were accepted but do nothing.
    warnings: tuple[str, ...]

    def __init__(self, known: Iterable[FeatureGate] = GATES) -> None:
        gates: dict[str, FeatureGate] = {}
        for gate in known:
            if gate.name in gates or gate.name in GROUPS:
                raise Misconfigured(
                    f"the feature gate {gate.name} is declared twice; gates need distinct names"
                )
            gates[gate.name] = gate
        self._known: Mapping[str, FeatureGate] = MappingProxyType(gates)
        self._enabled: Mapping[str, bool] = MappingProxyType({g.name: g.default for g in gates.values()})
        self._set: frozenset[str] = frozenset()
        self.warnings = ()

    @classmethod
    def default(cls) -> Gates:
        """The operator's own gates, each in its default state."""
        return cls()

    def enabled(self, name: str) -> bool:
        """Say whether the feature is on; a name nobody declared is a mistake in the code (KeyError)."""
        return self._enabled[name]

    def given(self, name: str) -> bool:
        """Say whether an override decided the state, by name or by group."""
        return name in self._set

    def __iter__(self) -> Iterator[FeatureGate]:
        return iter(self._known.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gates) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._enabled.items())))

    def __repr__(self) -> str:
        return f"Gates({self})"

    def __str__(self) -> str:
        """All gates and their states, in the form ``with_overrides`` takes."""
        return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(self._enabled.items()))

    def as_dict(self) -> dict[str, bool]:
        """Every gate's name and state."""
        return dict(self._enabled)

    def with_gates(self, more: Iterable[FeatureGate]) -> Gates:
        """The same with gates that others declare, in their default states. Overrides come after this."""
        if self._set:
            raise ValueError("declare all gates before the first override: AllAlpha must see them")
        return Gates((*self, *more))

    def with_overrides(self, text: str) -> Gates:
        """The states after ``A=true,B=false``. All mistakes in it are reported together."""
        wanted, problems = _parse(text)
        warnings: list[str] = []
        for name in wanted:
            if name in self._known or name in GROUPS:
                continue
            if name in RETIRED:
                warnings.append(f"the feature gate {name} no longer exists and is ignored: {RETIRED[name]}")
            else:
                problems.append(f"unknown feature gate {name!r}{self._hint(name)}")
        if problems:
            raise Misconfigured("; ".join(problems))
        states = self.as_dict()
        touched: set[str] = set()
        for group, stage in GROUPS.items():
            if group in wanted:
                members = {gate.name for gate in self if gate.stage is stage} - self._set
                states.update(dict.fromkeys(members, wanted[group]))
                touched |= members
        named = {name: on for name, on in wanted.items() if name in self._known}
        states.update(named)
        warnings.extend(
            f"the feature gate {name} is stable and will go; stop setting it"
            for name in named
            if self._known[name].stage is Stage.STABLE
        )
        result = Gates(self)
        result._enabled = MappingProxyType(states)
        result._set = self._set | touched | frozenset(named)
        result.warnings = (*self.warnings, *warnings)
        return result

    def _hint(self, name: str) -> str:
        names = [*self._known, *GROUPS]
        near = nearest(name, names)
        return f"; did you mean {near}?" if near else f"; known are {', '.join(sorted(names))}"


def _parse(text: str) -> tuple[dict[str, bool], list[str]]:
    """Split ``A=true,B=false``; the second value names what is wrong with it."""
    wanted: dict[str, bool] = {}
    problems: list[str] = []
    for item in text.split(","):
        if not item:
            continue
        name, equals, value = item.partition("=")
        name, value = name.strip(), value.strip()
        if not equals:
            problems.append(f"the feature gate {name!r} has no value; write {name}=true or {name}=false")
        elif value not in BOOLEANS:
            problems.append(f"the feature gate {name} cannot be {value!r}; allowed are true and false")
        else:
            wanted[name] = BOOLEANS[value]
    return wanted, problems
