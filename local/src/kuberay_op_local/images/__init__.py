"""Building the project's images without Docker, from the same Dockerfiles that Docker builds elsewhere."""
