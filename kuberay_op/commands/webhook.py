"""``kuberay-op webhook``: what a cluster needs besides the operator to use the webhook."""

from __future__ import annotations

import click

#: Where cert-manager is told whose authority to inject.
INJECT = "cert-manager.io/inject-ca-from"


@click.group()
def webhook() -> None:
    """Set up the validating webhook."""


@webhook.command()
@click.option("--namespace", default="ray-system", show_default=True, help="Namespace of the operator.")
@click.option("--service", "name", default="webhook-service", show_default=True, help="Name of the Service.")
@click.option(
    "--configuration",
    default="kuberay-validating-webhook-configuration",
    show_default=True,
    help="Name of the ValidatingWebhookConfiguration.",
)
@click.option(
    "--selector",
    default="app.kubernetes.io/name=kuberay-operator",
    show_default=True,
    metavar="LABEL=VALUE",
    help="Label of the operator's Pods.",
)
@click.option("--port", default=9443, show_default=True, help="Port of the webhook in those Pods.")
@click.option(
    "--cert-manager",
    default="",
    metavar="CERTIFICATE",
    help="Let cert-manager inject the authority of this Certificate; without, the operator does.",
)
@click.option("--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def manifests(
    namespace: str, name: str, configuration: str, selector: str, port: int, cert_manager: str, output: str
) -> None:
    """Print the Service and the ValidatingWebhookConfiguration, ready for `kubectl apply -f -`.

    Start the operator with ENABLE_WEBHOOKS=true first: what is printed refuses every new Ray object until the
    webhook answers. Exit codes: 0 printed, 2 wrong use.
    """
    # Late: not needed to show help.
    from kuberay_op.commands.output import show
    from kuberay_op.webhook import manifests as build

    label, equals, value = selector.partition("=")
    if not equals:
        raise click.UsageError(f"--selector is {selector!r}; allowed is LABEL=VALUE")
    notes = {INJECT: f"{namespace}/{cert_manager}"} if cert_manager else None
    objects = [
        build.service(name, namespace, {label: value}, port),
        build.configuration(configuration, build.by_service(name, namespace), notes),
    ]
    show({"apiVersion": "v1", "kind": "List", "items": objects}, output)
