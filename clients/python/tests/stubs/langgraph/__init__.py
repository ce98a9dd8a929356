"""Stub of langgraph 1.2.11: nodes, retries, interrupts and checkpoints, one node at a time."""
