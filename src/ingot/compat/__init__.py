"""The APIs of other packages over Ingot: change one import line."""
