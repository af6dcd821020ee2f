"""Configurations for other hardware, as far as they are changes of a graph."""
