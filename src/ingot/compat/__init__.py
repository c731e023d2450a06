"""Other systems' own names and signatures over Ingot: change one import line."""
