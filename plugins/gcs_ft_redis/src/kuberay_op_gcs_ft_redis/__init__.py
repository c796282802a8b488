"""The plugin gcs-ft-redis: removes the keys of a deleted Ray cluster from Redis."""
