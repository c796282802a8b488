"""Talking to Ray: its dashboard (jobs), Serve, and the Serve proxy's health.

``client`` carries requests, ``dashboard`` and ``serve`` know the two APIs, ``poller`` asks again and again
outside the reconcile loop. What can go wrong is in ``errors``; why it is built this way is in
docs/explanation/talking-to-ray.md.
"""
