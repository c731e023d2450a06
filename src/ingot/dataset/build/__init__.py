"""Building data sets from inputs."""
