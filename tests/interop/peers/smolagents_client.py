"""The tools of our server as smolagents gives them to an agent, loaded and called by its own adapter; no model is used.

usage: smolagents_client.py STATUS_FILE (PYTHON SERVER_FILE | ADDRESS)
"""

import json
import sys

from mcp import StdioServerParameters
from saw import exit_status, server_command
from smolagents import MCPClient


def main(status: str, *server: str) -> None:
    if len(server) == 1:
        parameters = {"url": server[0], "transport": "streamable-http"}
    else:
        program, arguments = server_command(status, *server)
        parameters = StdioServerParameters(command=program, args=arguments)
    with MCPClient(parameters, structured_output=True) as tools:
        by_name = {tool.name: tool for tool in tools}
        seen = {
            "inputs": {tool.name: tool.inputs for tool in tools},
            "count": by_name["count"](),
            "describe": by_name["describe"](),
            "echo": by_name["echo"](text="hé"),
        }
    json.dump({**seen, "exit status": exit_status(status)}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
