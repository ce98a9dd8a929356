"""Stub of google-adk 1.38.0: a run of one agent, the callbacks of its tools, and confirmations that call a tool again."""
