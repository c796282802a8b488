"""RayCluster: one head Pod for each cluster, and its state in the status."""
