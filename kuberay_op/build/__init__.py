"""From a custom resource to the objects it stands for. Pure: no clock, no chance, no network.

Builders are nouns (:func:`kuberay_op.build.pod.head_pod`, :func:`kuberay_op.build.service.head_service`).
They take a typed view and the configuration, never change what they are given, and give plain dicts.
"""
