"""Prints how the servers of the page (page.py) are to be reached."""

import json
from page import over_http, over_stdio

for server in over_http(), over_stdio():
    print(json.dumps({**server.params, "patience": server.patience}))
