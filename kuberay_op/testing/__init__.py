"""The test kit: what our own tests use, for authors of plugins too.

Installed with ``pip install kuberay-op[testing]``; pytest then finds the fixtures by itself:

- ``control_plane``: a real etcd, API server and controller manager, one per test run;
- ``namespace``: a fresh namespace on it, for one test;
- ``kwok_cluster``: a second cluster whose Pods get scheduled and run at once (by kwok);
- ``own_cluster``: a maker of private clusters, for tests that break things;
- ``golden``: compares with files in ``golden/`` beside the test; ``--update-golden`` writes them;
- ``loop_guard``: fails a test that holds the event loop;
- ``fake_ray``: Ray dashboards that are none.

To import: ``clock.FakeClock``, makers of objects in ``make``, a proxy that breaks the network in ``faults``.
"""
