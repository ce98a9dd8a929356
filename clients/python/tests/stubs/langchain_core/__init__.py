"""Stub of langchain-core 1.4: the tool of a function."""
