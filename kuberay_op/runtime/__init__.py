"""The controller runtime: queue, workers, leader lease, health and shutdown. It knows nothing of Ray."""
