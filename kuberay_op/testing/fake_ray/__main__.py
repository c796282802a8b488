"""``python -m kuberay_op.testing.fake_ray``: a fake Ray to play with, or to measure against."""

from __future__ import annotations

import asyncio
import signal

import click

from kuberay_op.testing.fake_ray import AppScript, FakeRay, Fault, JobScript


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8265, show_default=True, help="Port to listen on; 0 for any free one.")
@click.option("--pending", default=1.0, show_default=True, help="Seconds a job is PENDING.")
@click.option("--running", default=10.0, show_default=True, help="Seconds a job is RUNNING.")
@click.option(
    "--outcome",
    type=click.Choice(["SUCCEEDED", "FAILED", "STOPPED"]),
    default="SUCCEEDED",
    show_default=True,
    help="How jobs end.",
)
@click.option("--deploying", default=2.0, show_default=True, help="Seconds a Serve application is DEPLOYING.")
@click.option(
    "--token", envvar="RAY_AUTH_TOKEN", help="Token that requests must carry; none: all are let in."
)
@click.option("--fault", help="slow:SECONDS, status:CODE, html, nonsense, truncated, hang or gone.")
def main(
    *,
    host: str,
    port: int,
    pending: float,
    running: float,
    outcome: str,
    deploying: float,
    token: str | None,
    fault: str | None,
) -> None:
    """Play a Ray dashboard until Ctrl-C.

    Every host name and every path /clusters/NAME/... is a cluster of its own. POST to /_fake changes them.
    """
    try:
        trouble = None if fault is None else Fault.parse(fault)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    fake = FakeRay(
        auto=True,
        token=token,
        jobs=JobScript(pending=pending, running=running, outcome=outcome),
        apps=AppScript(deploying=deploying),
        fault=trouble,
    )
    asyncio.run(_play(fake, host, port))


async def _play(fake: FakeRay, host: str, port: int) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    try:
        await fake.start(host=host, port=port)
    except OSError as error:
        raise click.ClickException(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    click.echo(f"fake Ray on http://{host}:{fake.port}")
    try:
        await over.wait()
    finally:
        await fake.close()


if __name__ == "__main__":
    main()
