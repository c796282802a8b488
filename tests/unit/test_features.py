"""Feature gates: the rules of Kubernetes' own parser, plus hints for what is misspelt."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.errors import Misconfigured
from kuberay_op.features import GATES, RETIRED, FeatureGate, Gates, Stage

NAMES = [gate.name for gate in GATES]
ON = {"RayClusterStatusConditions", "RayJobDeletionPolicy", "RayMultiHostIndexing"}
ON |= {"RayServiceIncrementalUpgrade"}


def test_beta_is_on_and_alpha_is_off() -> None:
    assert {name for name, on in Gates.default().as_dict().items() if on} == ON
    assert {gate.name for gate in GATES if gate.stage is Stage.BETA} == ON
    assert len(NAMES) == 11


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", {}),
        (",,", {}),
        ("RayCronJob=true", {"RayCronJob": True}),
        (
            "  RayCronJob = true , RayMultiHostIndexing =F",
            {"RayCronJob": True, "RayMultiHostIndexing": False},
        ),
        ("RayCronJob=1,RayCronJob=0", {}),
        ("RayCronJob=T", {"RayCronJob": True}),
        ("AllBeta=false", dict.fromkeys(ON, False)),
        ("AllBeta=false,RayJobDeletionPolicy=true", dict.fromkeys(ON - {"RayJobDeletionPolicy"}, False)),
        ("RayCronJob=false,AllAlpha=true", dict.fromkeys(set(NAMES) - ON - {"RayCronJob"}, True)),
        ("AllAlpha=true", dict.fromkeys(set(NAMES) - ON, True)),
    ],
)
def test_overrides(text: str, changed: dict[str, bool]) -> None:
    gates = Gates.default().with_overrides(text)
    assert gates.as_dict() == {**Gates.default().as_dict(), **changed}
    assert gates.warnings == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("RayCronjob=true", "unknown feature gate 'RayCronjob'; did you mean RayCronJob?"),
        ("AllAlfa=true", "did you mean AllAlpha?"),
        ("Xyz=true", "unknown feature gate 'Xyz'; known are AllAlpha, AllBeta, GCSFault"),
        ("RayCronJob", "the feature gate 'RayCronJob' has no value; write RayCronJob=true"),
        ("RayCronJob=yes", "the feature gate RayCronJob cannot be 'yes'; allowed are true and false"),
        ("RayCronJob=tRuE", "cannot be 'tRuE'"),
        ("RayCronJob=", "cannot be ''"),
        (" ,RayCronJob=true", "the feature gate '' has no value"),
        ("RayCronJob=true=false", "cannot be 'true=false'"),
    ],
)
def test_mistakes(text: str, says: str) -> None:
    with pytest.raises(Misconfigured) as error:
        Gates.default().with_overrides(text)
    assert says in str(error.value)


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(Misconfigured) as error:
        Gates.default().with_overrides("RayCronJob=maybe,Nope=true,KubernetesWAS")
    for name in ("RayCronJob", "Nope", "KubernetesWAS"):
        assert name in str(error.value)


@pytest.mark.parametrize("name", sorted(RETIRED))
def test_a_gate_the_reference_once_had_is_accepted_with_a_warning(name: str) -> None:
    gates = Gates.default().with_overrides(f"{name}=true")
    assert gates == Gates.default()
    assert gates.warnings == (f"the feature gate {name} no longer exists and is ignored: {RETIRED[name]}",)


def test_given_tells_what_an_override_decided() -> None:
    gates = Gates.default().with_overrides("AllBeta=true,RayCronJob=true")
    assert {gate.name for gate in gates if gates.given(gate.name)} == ON | {"RayCronJob"}


def test_others_add_gates_before_overrides() -> None:
    mine = FeatureGate("MyPlugin", Stage.ALPHA, "0.1", False, "Does a thing.")
    gates = Gates.default().with_gates([mine])
    assert not gates.enabled("MyPlugin")
    assert gates.with_overrides("AllAlpha=true").enabled("MyPlugin")
    with pytest.raises(Misconfigured, match="MyPlugin is declared twice"):
        gates.with_gates([mine])
    with pytest.raises(ValueError, match="before the first override"):
        gates.with_overrides("RayCronJob=true").with_gates([mine])


def test_a_stable_gate_warns_when_set() -> None:
    stable = FeatureGate("Old", Stage.STABLE, "1.0", True, "Long since there.")
    gates = Gates([stable]).with_overrides("Old=true")
    assert gates.warnings == ("the feature gate Old is stable and will go; stop setting it",)


def test_an_earlier_override_stands_against_a_later_group() -> None:
    gates = Gates.default().with_overrides("RayCronJob=false").with_overrides("AllAlpha=true")
    assert not gates.enabled("RayCronJob")
    assert gates.enabled("KubernetesWAS")


def test_an_undeclared_gate_is_a_mistake_in_the_code() -> None:
    with pytest.raises(KeyError):
        Gates.default().enabled("Nope")


@given(st.dictionaries(st.sampled_from(NAMES), st.booleans()), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_text_form_round_trips(states: dict[str, bool], rng: Random) -> None:
    items = [f"{name}={on}" for name, on in states.items()]
    gates = Gates.default().with_overrides(",".join(items))
    rng.shuffle(items)
    assert Gates.default().with_overrides(",".join(items)) == gates
    assert Gates.default().with_overrides(str(gates)) == gates
    assert hash(Gates.default().with_overrides(str(gates))) == hash(gates)


@given(st.text(max_size=60))
def test_any_text_gives_gates_or_a_clear_error(text: str) -> None:
    try:
        outcome = str(Gates.default().with_overrides(text))
    except Misconfigured as error:
        outcome = str(error)
    assert "RayCronJob=" in outcome or "feature gate" in outcome
