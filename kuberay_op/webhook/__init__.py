"""The optional validating webhook: an HTTPS server that the API server asks before it stores a Ray object.

::

    admission      decides about one request: our rules and plugins', refusals and warnings
    server         the paths, and the TLS context that gets new certificates while it serves
    certificates   authorities and serving certificates as such; pure
    authority      the authorities in a Secret that all replicas share
    injection      telling the API server, in its webhook configurations, whom to trust
    sources        where certificates come from: made here, or files that somebody else renews
    service        all of it, as the operator runs it
"""
