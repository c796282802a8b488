"""Whole passes over a RayCluster, whatever happens in between.

The pipeline is the real one, with a server in memory. Whatever the events and their order:

* in the end a pass writes nothing (plan, apply, plan again is empty);
* what is there then is what the spec says, no matter how it came to that;
* labels, annotations and fields that others have put on our objects are still there;
* objects of others are as they were;
* a deleted cluster is gone, and only finalizers of others can hold it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kuberay_op.api import labels
from kuberay_op.config import Config
from kuberay_op.controllers.act import Actor
from kuberay_op.controllers.pauses import Pauses
from kuberay_op.controllers.pipeline import Observed, Pipeline
from kuberay_op.controllers.raycluster.desired import RayClusterKind
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.errors import OperatorError
from kuberay_op.frozen import freeze
from kuberay_op.hooks import Done, Refuse, Wait, hookimpl
from kuberay_op.kube.apply import controller_uid
from kuberay_op.kube.errors import Forbidden
from kuberay_op.kube.resource import INGRESSES, PODS, SECRETS, SERVICES, Key
from kuberay_op.runtime.expectations import Expectations
from kuberay_op.testing import make
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.operator import make_hooks
from tests.property.memory_server import MemoryServer, Place

Json = dict[str, Any]
Event = tuple[str, int, int]

KEY = Key("ns", "c")
OWNER: Place = ("RayCluster", "ns", "c")
FINALIZER = "ray.io/test"
#: More passes than any of these clusters needs to come to rest.
ROUNDS = 25

EVENTS = st.tuples(
    st.sampled_from(
        [
            *(
                "pass",
                "pass",
                "pass",
                "pass",
                "kubelets",
                "kubelets",
                "scale",
                "scale",
                "suspend",
                "ingress",
                "hosts",
                "recreate",
            ),
            *("invalid", "valid", "lose", "fail", "label", "annotate", "spoil", "quota", "restart", "minute"),
        ]
    ),
    st.integers(0, 99),
    st.integers(0, 4),
)


class Silent:
    """A recorder that nobody reads."""

    def event(self, *_: Any) -> None:
        """An event."""

    normal = warning = event


class Particular:
    """A plugin with a finalizer, whose clean-up goes through a list of answers before it is done."""

    def __init__(self, answers: Sequence[str] = ()) -> None:
        self.answers = list(answers)

    @hookimpl
    def kuberay_finalizers(self) -> list[str]:
        return [FINALIZER]

    @hookimpl
    async def kuberay_finalize(self, finalizer: str) -> Any:
        if finalizer != FINALIZER:
            return None
        match self.answers.pop(0) if self.answers else "done":
            case "wait":
                return Wait("not yet", seconds=1)
            case "refuse":
                return Refuse("no")
            case "raise":
                raise RuntimeError("a mistake")
        return Done()


class Server(MemoryServer):
    """With a quota: no more Pods than that, when it is set."""

    quota: int | None = None

    async def create(self, resource: Any, obj: Any, **options: Any) -> Json:
        """Make an object, if there is room."""
        there = sum(place[0] == "Pod" for place in self.objects)
        if resource == PODS and self.quota is not None and there >= self.quota:
            raise Forbidden("exceeded quota: q")
        return await super().create(resource, obj, **options)


class Life:
    """One cluster, its operator and all that happens to both."""

    def __init__(self, seed: int, *parts: make.Part, plugin: Any = None) -> None:
        self.rng = Random(seed)  # noqa: S311 (seeded on purpose)
        self.server = Server()
        self.clock = FakeClock()
        self.plugins = {"particular": plugin} if plugin else {}
        self.parts = parts
        self.foreign: dict[Place, Json] = {}
        #: Labels and annotations that others have put on our objects, by UID.
        self.marks: dict[str, set[tuple[str, str]]] = {}
        self.restart()

    async def begin(self) -> None:
        cluster = make.raycluster("c", make.namespace("ns"), make.workers(1), *self.parts)
        await self.server.create(RAY_CLUSTERS, cluster, reason="a user")
        mark = {labels.CLUSTER: "c", labels.NODE_TYPE: labels.WORKER, labels.GROUP: "workers"}
        self.server.elsewhere.add("other")
        other = {"apiVersion": "x/v1", "kind": "X", "name": "c", "uid": "other", "controller": True}
        for resource, name, metadata in (
            (PODS, "theirs", {"labels": mark, "ownerReferences": [other]}),
            (PODS, "nobodys", {"labels": mark}),
            (SERVICES, "theirs", {"labels": {labels.CLUSTER: "c", labels.NODE_TYPE: labels.HEAD}}),
        ):
            body: Json = {"metadata": {"name": name, "namespace": "ns", **metadata}, "spec": {}}
            await self.server.create(resource, body, reason="somebody else")
            place = resource.kind, "ns", name
            self.foreign[place] = self.server.objects[place]

    # --- the operator

    def restart(self) -> None:
        recorder: Any = Silent()
        client: Any = self.server
        kinds = (PODS, SERVICES, INGRESSES, SECRETS)
        actor = Actor(
            client,
            owner=RAY_CLUSTERS,
            resources={(resource.api_version, resource.kind): resource for resource in kinds},
            stores={},
            expectations=Expectations(clock=self.clock),
            recorder=recorder,
        )
        pauses = Pauses(clock=self.clock, rng=self.rng)
        config = Config()
        self.pipeline = Pipeline(
            RayClusterKind(config, rng=self.rng, begun=pauses.begun),
            hooks=make_hooks(self.plugins),
            actor=actor,
            recorder=recorder,
            gates=config.gates,
            clock=self.clock,
            rng=self.rng,
            pauses=pauses,
        )

    async def look(self) -> list[str]:
        """One pass; gives what it wrote."""
        before = len(self.server.writes)
        if OWNER in self.server.objects:
            owner = freeze(self.server.objects[OWNER])
            children = [freeze(obj) for obj in self.server.of(owner["metadata"]["uid"])]
            self.rng.shuffle(children)  # a cache has no order
            with contextlib.suppress(OperatorError):  # the queue would come back later, and so do we
                await self.pipeline.run(KEY, Observed(owner, children))
        return self.server.writes[before:]

    # --- events

    async def happen(self, event: Event) -> None:
        what, which, much = event
        match what:
            case "pass":
                await self.look()
            case "kubelets":
                self.kubelets()
            case "restart":
                self.restart()
            case "minute":
                self.clock.skip(60)
            case "quota":
                self.server.quota = 2 + much
            case "lose" | "fail" | "label" | "annotate" | "spoil":
                self._to_a_child(what, which)
            case _:
                self._edit(what, much)

    def _edit(self, what: str, much: int) -> None:
        spec: Json = self.server.objects[OWNER]["spec"]
        group = dict(spec["workerGroupSpecs"][0])
        match what:
            case "scale":
                group["replicas"] = much
            case "hosts":
                group["numOfHosts"] = 1 + much % 3
            case "suspend":
                self.server.put(OWNER, spec={"suspend": bool(much % 2)})
            case "ingress":
                self.server.put(OWNER, spec={"headGroupSpec": {"enableIngress": True}})
            case "recreate":
                changes = {"upgradeStrategy": {"type": "Recreate"}, "rayVersion": f"2.5{much}.0"}
                self.server.put(OWNER, spec=changes)
            case "invalid":
                self.server.put(
                    OWNER,
                    spec={"headGroupSpec": {"resources": {"CPU": "1"}, "rayStartParams": {"num-cpus": "1"}}},
                )
            case "valid":
                self._mend()
        self.server.put(OWNER, spec={"workerGroupSpecs": [group]})

    def _mend(self) -> None:
        none: Json = {"resources": None, "rayStartParams": {"num-cpus": None}}
        self.server.put(OWNER, spec={"headGroupSpec": none})

    def _to_a_child(self, what: str, which: int) -> None:
        uid = self.server.objects[OWNER]["metadata"]["uid"]
        children = sorted(place for place, obj in self.server.objects.items() if controller_uid(obj) == uid)
        if not children:
            return
        place = children[which % len(children)]
        obj = self.server.objects[place]
        match what:
            case "lose":
                self.server.remove(place, graceful=place[0] == "Pod")
            case "fail" if place[0] == "Pod":
                self.server.put(place, status={"phase": "Failed"})
            case "spoil" if place[0] == "Ingress":
                self.server.put(place, spec={"rules": []})
            case "label" | "annotate":
                kind = "labels" if what == "label" else "annotations"
                self.server.put(place, metadata={kind: {f"example.com/{which}": "theirs"}})
                self.marks.setdefault(obj["metadata"]["uid"], set()).add((kind, f"example.com/{which}"))

    def kubelets(self) -> None:
        kept = dict(self.foreign)
        self.server.kubelets()
        for place in kept:  # kubelets do report about the Pods of others
            self.foreign[place] = self.server.objects[place]

    # --- the end

    async def calm(self) -> None:
        """Let time pass: even where a quota fits only a part, nothing is made and removed for ever."""
        seen: list[set[str]] = []
        for _ in range(ROUNDS):
            await self.look()
            self.kubelets()
            self.clock.skip(61)
            seen.append(
                {obj["metadata"]["uid"] for place, obj in self.server.objects.items() if place[0] == "Pod"}
            )
        assert all(pods == seen[-1] for pods in seen[-5:]), "Pods come and go"

    async def settle(self) -> None:
        """Let time pass until nothing more is written."""
        self.server.quota = None
        self._mend()
        for _ in range(ROUNDS):
            wrote = await self.look()
            pending = any("deletionTimestamp" in obj["metadata"] for obj in self.server.objects.values())
            self.kubelets()
            self.clock.skip(61)
            if not wrote and not pending and not await self.look():
                return
        raise AssertionError(f"it never comes to rest: {self.server.writes[-10:]}")

    def check(self) -> None:
        for place, obj in self.foreign.items():
            assert self.server.objects[place] is obj, "what is not ours was touched"
        for obj in self.server.objects.values():
            for kind, mark in self.marks.get(obj["metadata"]["uid"], ()):
                assert obj["metadata"].get(kind, {}).get(mark) == "theirs", "what others wrote is gone"

    def shape(self) -> Json:
        """What there is in the end, without what depends on the way there.

        Pods run what the spec said when they were made, and have the place that was free then; so they are
        counted. The Service of a group with several hosts stays when the group has one again.
        """
        owner = self.server.objects[OWNER]
        children = self.server.of(owner["metadata"]["uid"])
        pods = [obj["metadata"]["labels"] for obj in children if obj["kind"] == "Pod"]
        hosts = owner["spec"]["workerGroupSpecs"][0].get("numOfHosts", 1)
        self._check_places([marks for marks in pods if marks[labels.NODE_TYPE] == labels.WORKER], hosts)
        names = {f"{obj['kind']} {obj['metadata']['name']}" for obj in children if obj["kind"] != "Pod"}
        return {
            "pods": Counter(marks[labels.GROUP] for marks in pods),
            "objects": names - {"Service c-headless"},
            "status": self._status(),
        }

    def _check_places(self, workers: Sequence[Json], hosts: int) -> None:
        """Every place in the group is taken once, and every replica is whole."""
        places = [(marks[labels.REPLICA_INDEX], marks.get(labels.HOST_INDEX)) for marks in workers]
        if hosts > 1 or not any(host for _, host in places):
            assert len(set(places)) == len(places)
        if hosts > 1:
            replicas = Counter(marks[labels.REPLICA_NAME] for marks in workers)
            assert set(replicas.values()) <= {hosts}

    def _status(self) -> Json:
        status = dict(self.server.objects[OWNER]["status"])
        said = {each["type"]: (each["status"], each["reason"]) for each in status.pop("conditions")}
        for way in ("lastUpdateTime", "stateTransitionTimes", "observedGeneration", "head"):
            status.pop(way, None)
        # Whether it was ever up is a matter of history.
        said.pop("RayClusterProvisioned", None)
        return {**status, "conditions": said}


async def live(seed: int, events: Sequence[Event]) -> Life:
    life = Life(seed)
    await life.begin()
    for event in events:
        await life.happen(event)
        life.check()
    await life.calm()
    await life.settle()
    life.check()
    return life


async def same_again(life: Life) -> Life:
    """A cluster with the same spec to which nothing ever happened."""
    spec = life.server.objects[OWNER]["spec"]
    new = Life(0, lambda obj: obj.update(spec=spec))
    await new.begin()
    await new.settle()
    return new


async def many_ways(seed: int, events: Sequence[Event]) -> None:
    life = await live(seed, events)
    fresh = await same_again(life)
    assert life.shape() == fresh.shape()


async def deleted(seed: int, events: Sequence[Event], answers: Sequence[str], others: bool) -> None:
    life = Life(seed, plugin=Particular(answers))
    await life.begin()
    for event in events:
        await life.happen(event)
    if others:
        held = life.server.objects[OWNER]["metadata"].get("finalizers") or []
        life.server.put(OWNER, metadata={"finalizers": [*held, "example.com/theirs"]})
    life.server.remove(OWNER)
    for _ in range(ROUNDS + 2 * len(answers)):
        await life.look()
        life.clock.skip(61)
        life.kubelets()
    if others:
        assert life.server.objects[OWNER]["metadata"]["finalizers"] == ["example.com/theirs"]
        life.server.put(OWNER, metadata={"finalizers": None})
        life.kubelets()
    life.kubelets()
    assert set(life.server.objects) == set(life.foreign), "all that was ours is gone, and nothing else"


QUICK = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    phases=(Phase.generate,),  # making a failing story shorter takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LONG = settings(QUICK, max_examples=1000, derandomize=False)
#: Long ones: left alone, hypothesis likes stories in which nothing happens.
STORIES = st.lists(EVENTS, min_size=15, max_size=50)
ANSWERS = st.lists(st.sampled_from(["wait", "refuse", "raise"]), max_size=5)


@QUICK
@given(st.integers(0, 999), STORIES)
def test_any_order_of_events_ends_alike(seed: int, events: list[Event]) -> None:
    asyncio.run(many_ways(seed, events))


@QUICK
@given(st.integers(0, 999), STORIES, ANSWERS, st.booleans())
def test_deletion_always_ends(seed: int, events: list[Event], answers: list[str], others: bool) -> None:
    asyncio.run(deleted(seed, events, answers, others))


@pytest.mark.slow
@LONG
@given(st.integers(0, 999), STORIES)
def test_any_order_of_events_ends_alike_at_length(seed: int, events: list[Event]) -> None:
    asyncio.run(many_ways(seed, events))


@pytest.mark.slow
@LONG
@given(st.integers(0, 999), STORIES, ANSWERS, st.booleans())
def test_deletion_always_ends_at_length(
    seed: int, events: list[Event], answers: list[str], others: bool
) -> None:
    asyncio.run(deleted(seed, events, answers, others))
