"""The mTLS controller: has cert-manager give each RayCluster an authority and certificates of its own.

Pods are watched, since a certificate must name the address of every Pod that uses it; so are the objects of
cert-manager. A pass over a cluster at rest makes no call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kuberay_op.api import labels, names, reasons
from kuberay_op.api.names import is_ours
from kuberay_op.api.predicates import tls_enabled
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.clock import Clock
from kuberay_op.config import Config
from kuberay_op.controllers.companion import Companion, first_error
from kuberay_op.controllers.hold import Hold
from kuberay_op.controllers.mtls_plan import SECRET_KEYS, expiring, not_ready, plan_pki, ready_condition
from kuberay_op.controllers.resources import CERTIFICATES, ISSUERS
from kuberay_op.errors import Retry
from kuberay_op.frozen import FrozenDict
from kuberay_op.hooks.scope import Scope
from kuberay_op.kube.cache import OWNER, Store
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import Conflict, NotFound
from kuberay_op.kube.resource import PODS, SECRETS, Key, Object, Resource
from kuberay_op.plan.actions import Manifest, Outcome, Update
from kuberay_op.runtime.manager import Manager
from kuberay_op.runtime.result import Result

NAME: Final = "raycluster-mtls"
LOGGER: Final = "RayClusterMTLS"

#: Seconds until certificates that are not issued are looked at again, should no event come.
NOT_READY_SECONDS: Final = 30.0

#: Seconds until certificates that are all well are looked at again, to see whether one ends soon.
READY_SECONDS: Final = 3600.0

#: Seconds until Pods that wait for certificates are looked at again, should no event come.
PODS_SECONDS: Final = 10.0

#: Reason of the condition ``Ready`` while Pods wait for certificates.
CERTIFICATES_MISSING: Final = "WaitingForCertificates"


class MtlsController(Companion):
    """Keeps the certificates of RayClusters with TLS. What TLS has made stays when it is switched off."""

    def __init__(
        self, manager: Manager, *, config: Config, clock: Clock, shared: Sequence[Resource] = ()
    ) -> None:
        super().__init__(
            manager,
            name=NAME,
            logger=LOGGER,
            resources=(ISSUERS, CERTIFICATES),
            gates=config.gates,
            shared=shared,
        )
        self._config = config
        self._clock = clock
        self._pods = manager.cache(PODS)
        self.wiring.owns(PODS, when=address_news)
        #: What each cluster was told last, so that it is not told again.
        self._said: dict[Key, set[str]] = {}
        #: Certificates whose Secret is known to belong to them, with the issue for which that holds.
        self._adopted: dict[Key, set[tuple[str, Any]]] = {}

    async def work(self, key: Key, cluster: RayCluster, children: Sequence[Manifest]) -> Result:
        """Make and change certificates, and say how they stand."""
        if not tls_enabled(cluster.spec, self._gates.enabled):
            self.forget(key)
            return Result.done()
        pods = [
            pod
            for pod in self._pods.by_index(OWNER, cluster.metadata.uid)
            if is_ours(dict(pod), cluster.metadata.uid)
        ]
        plan = plan_pki(cluster, self._config, pods, children, self._clock.now())
        outcomes = await self.actor.act(key, plan.actions)
        self._report_changes(cluster, outcomes)
        error = first_error(outcomes)
        if error is not None:
            self._said.pop(key, None)
            note = f"mTLS objects of {key} could not be written: {error}"
            self.recorder.warning(
                cluster.raw, reasons.MTLS_FAILED_TO_RECONCILE, reasons.ACTION_RECONCILE, note
            )
            raise error
        await self._adopt(key, children)
        return self._stand(key, cluster, children, changed=bool(outcomes), wait=plan.wait)

    def forget(self, key: Key) -> None:
        """The cluster is gone, or has no TLS any more."""
        self._said.pop(key, None)
        self._adopted.pop(key, None)

    def _stand(
        self,
        key: Key,
        cluster: RayCluster,
        children: Sequence[Manifest],
        *,
        changed: bool,
        wait: float | None,
    ) -> Result:
        """Say how the certificates stand, and when to look again; changes of them come sooner."""
        missing = not_ready(cluster, children)
        if missing:
            note = f"Waiting for cert-manager to issue {', '.join(missing)}"
            self._say(key, cluster, {note: ("Normal", reasons.MTLS_CERTS_NOT_READY)})
        if missing or changed:  # what was changed is not ready either, once the caches show it
            seconds = NOT_READY_SECONDS if wait is None else min(wait, NOT_READY_SECONDS)
            return Result.after(seconds).saying(waiting=missing or "what was changed")
        said = {"The certificates of head and workers are issued": ("Normal", reasons.MTLS_PKI_READY)}
        for name, end in expiring(children, self._clock.now()):
            note = f"Certificate {key.namespace}/{name} ends at {end:%Y-%m-%dT%H:%M:%SZ} and was not renewed"
            said[note] = ("Warning", reasons.MTLS_CERTIFICATE_EXPIRING_SOON)
        self._say(key, cluster, said)
        return Result.after(READY_SECONDS if wait is None else wait)

    def _say(self, key: Key, cluster: RayCluster, notes: Mapping[str, tuple[Any, str]]) -> None:
        """Record the events that were not said in the last pass."""
        before = self._said.get(key, set())
        for note, (kind, reason) in notes.items():
            if note not in before:
                self.recorder.event(cluster.raw, kind, reason, reasons.ACTION_RECONCILE, note)
        self._said[key] = set(notes)

    def _report_changes(self, cluster: RayCluster, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome.action, Update) and outcome.error is None and outcome.changed:
                name = outcome.action.obj["metadata"]["name"]
                note = f"Updated Certificate {cluster.metadata.namespace}/{name}: {outcome.action.reason}"
                self.recorder.normal(
                    cluster.raw, reasons.MTLS_CERTIFICATES_UPDATED, reasons.ACTION_UPDATE, note
                )

    async def _adopt(self, key: Key, children: Sequence[Manifest]) -> None:
        """Let the Secret of each certificate go when the certificate goes."""
        known = self._adopted.setdefault(key, set())
        current = set()
        for certificate in children:
            secret = (certificate.get("spec") or {}).get("secretName")
            if certificate["kind"] != CERTIFICATES.kind or not secret:
                continue
            issue = (str(certificate["metadata"]["uid"]), (certificate.get("status") or {}).get("revision"))
            if issue in known or await self._adopted_now(key, certificate, secret):
                current.add(issue)
        self._adopted[key] = current

    async def _adopted_now(self, key: Key, certificate: Manifest, name: str) -> bool:
        """Whether the Secret belongs to the certificate now; not if there is none yet."""
        try:
            secret = await self.client.get(SECRETS, name, key.namespace, owner=key)
        except NotFound:
            return False
        body = adoption(secret, certificate)
        if body is not None:
            try:
                await self.client.patch(
                    SECRETS, name, key.namespace, body, reason="it belongs to its Certificate", owner=key
                )
            except Conflict:  # cert-manager writes it, too
                raise Retry(f"Secret {name} has changed meanwhile", after=1.0) from None
        return True


def adoption(secret: Object, certificate: Manifest) -> Object | None:
    """The patch that makes a certificate an owner of its Secret, beside others; None if it is one. Pure."""
    metadata = secret["metadata"]
    owners = list(metadata.get("ownerReferences") or ())
    uid = certificate["metadata"]["uid"]
    if any(owner.get("uid") == uid for owner in owners):
        return None
    reference = {
        "apiVersion": CERTIFICATES.api_version,
        "kind": CERTIFICATES.kind,
        "name": certificate["metadata"]["name"],
        "uid": uid,
    }
    # With the version, so that an owner that somebody adds meanwhile is not lost.
    version = metadata["resourceVersion"]
    return {"metadata": {"ownerReferences": [*owners, reference], "resourceVersion": version}}


def address_news(old: FrozenDict, new: FrozenDict) -> bool:
    """Whether a Pod has changed in what its certificate says."""
    return _address(old) != _address(new)


def _address(pod: Manifest) -> tuple[Any, ...]:
    status = pod.get("status") or {}
    return status.get("podIP"), status.get("phase"), "deletionTimestamp" in pod["metadata"]


def issue_news(old: FrozenDict, new: FrozenDict) -> bool:
    """Whether a certificate was issued, or is no longer good."""
    return _issue(old) != _issue(new)


def _issue(certificate: Manifest) -> tuple[Any, ...]:
    condition = ready_condition(certificate) or {}
    return condition.get("status"), (certificate.get("status") or {}).get("revision")


class TlsSecrets:
    """What Pods of clusters with TLS wait for: the Secrets that they mount. Asked when a Pod is to be made.

    A certificate that is only being issued anew holds up nobody: a Pod waits by itself until the one it
    mounts names its address.
    """

    def __init__(self, client: Client, certificates: Store) -> None:
        self._client = client
        self._certificates = certificates

    async def missing(self, scope: Scope) -> Hold | None:
        """Why no Pod can be made yet; None if they can."""
        cluster = RayCluster(dict(scope.owner))
        if not tls_enabled(cluster.spec, scope.gate):
            return None
        key = Key(scope.namespace, scope.name)
        for role in (labels.HEAD, labels.WORKER):
            lacking = await self._lacking(key, cluster, role)
            if lacking:
                text = f"mTLS secrets not ready: {lacking}"
                return Hold(CERTIFICATES_MISSING, text, PODS_SECONDS, by_plugin=False)
        return None

    async def _lacking(self, key: Key, cluster: RayCluster, role: str) -> str:
        name = names.certificate(cluster.name, role)
        if self._certificates.get(Key(key.namespace, name)) is None:
            return f"Certificate {name} does not exist yet"
        secret = names.tls_secret(cluster.name, role)
        try:
            data = (await self._client.get(SECRETS, secret, key.namespace, owner=key)).get("data") or {}
        except NotFound:
            return f"Secret {secret} does not exist yet; cert-manager makes it for Certificate {name}"
        absent = [entry for entry in SECRET_KEYS if not data.get(entry)]
        return f"Secret {secret} lacks {', '.join(absent)}" if absent else ""
