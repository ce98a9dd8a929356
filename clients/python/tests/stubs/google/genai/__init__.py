"""Stub of google-genai 1: the contents that models of ADK exchange."""
