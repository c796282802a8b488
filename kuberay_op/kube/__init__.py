"""Everything that talks to the Kubernetes API server: client, reflector, cache, apply, events.

This package knows nothing of Ray. Objects are plain JSON dicts; a :class:`~kuberay_op.kube.resource.Resource`
says where on the server they live.
"""
