"""Stub of openai 2: the output items of a response, as the stub of agents needs them."""
