"""The init container in which a worker waits for the control store of the head."""

from __future__ import annotations

from typing import Final

from kuberay_op.api.view import Json
from kuberay_op.build.draft import Draft, items, same_resources, shell
from kuberay_op.frozen import thaw

WAIT_FOR_GCS: Final = "wait-gcs-ready"

#: Seconds for which a head that does not answer is no news.
_QUIET: Final = 120
_HELP: Final = "https://docs.ray.io/en/master/cluster/kubernetes/troubleshooting.html"

#: Copied from the Ray container: what is needed to reach the head the way Ray does.
_COPIED: Final = ("image", "imagePullPolicy", "securityContext", "env", "volumeMounts")


def add_wait_for_gcs(draft: Draft) -> None:
    """Let the worker wait, unless the operator is told not to. Comes before anything else is added."""
    if draft.config.enable_init_container_injection:
        items(draft.spec, "initContainers").append(_container(draft))


def _container(draft: Draft) -> Json:
    copied = {key: thaw(draft.ray[key]) for key in _COPIED if draft.ray.get(key) is not None}
    return {
        "name": WAIT_FOR_GCS,
        **copied,
        "command": shell(draft.config),
        "args": [_script(f"{draft.head_host}:{draft.head_port}")],
        "resources": same_resources("200m", "256Mi"),
    }


def _script(address: str) -> str:
    return f"""\
check="ray health-check --address {address}"
SECONDS=0
while true; do
  if [ "$SECONDS" -le {_QUIET} ]; then
    if $check > /dev/null 2>&1; then break; fi
    echo "waiting for the head at {address} ($SECONDS s)"
  else
    if $check; then break; fi
    echo "still waiting for the head at {address} ($SECONDS s); see {_HELP}"
  fi
  sleep 5
done
echo "the head at {address} answers"
"""
