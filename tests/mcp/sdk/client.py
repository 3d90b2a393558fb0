"""One call of a tool by the Python SDK, as an agent makes it: scenario and outcome are those of client.mjs beside this file.

`era` is "legacy" for the versions that begin with `initialize`, "auto" for the newest that the server speaks.
"""

import asyncio
import json
import sys

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

METHOD_NOT_ALLOWED = 405


async def main(scenario):
    questions, progress, resumed = [], [], []
    settled = asyncio.Event()

    async def answered(response):
        request = response.request
        if request.method == "GET" and "last-event-id" in request.headers:
            resumed.append(response.status_code)
            if len(resumed) >= 2 or response.status_code == METHOD_NOT_ALLOWED:
                settled.set()

    async def ask(_context, params):
        questions.append(params.message)
        answer = scenario.get("answer")
        if answer is None:
            await asyncio.Event().wait()
        await asyncio.sleep(scenario.get("delay_ms", 0) / 1000)
        if answer in ("decline", "cancel"):
            return types.ElicitResult(action=answer)
        if answer == "nothing":
            return types.ElicitResult(action="accept", content={})
        return types.ElicitResult(action="accept", content={"decision": answer})

    async def tell(done, total, message):
        progress.append({"progress": done, "total": total, "message": message})

    async def list_roots(_context):
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in scenario["roots"]])

    server = scenario["server"]
    if "url" in server:
        headers = {"Authorization": f"Bearer {server['token']}"}
        http = httpx2.AsyncClient(headers=headers, timeout=60, event_hooks={"response": [answered]})
        transport = streamable_http_client(server["url"], http_client=http)
    else:
        transport = StdioServerParameters(
            command=server["command"], args=server["arguments"], cwd=server["directory"], env=server["environment"]
        )
    named = list_roots if "roots" in scenario else None
    client = Client(
        transport, mode=scenario.get("era", "auto"), elicitation_callback=ask, list_roots_callback=named
    )
    async with client:
        patience = scenario.get("timeout_ms", 60_000) / 1000
        try:
            result = await client.call_tool(
                scenario["tool"], scenario["arguments"], read_timeout_seconds=patience, progress_callback=tell
            )
            outcome = {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}
        except MCPError as error:
            outcome = {"error": {"code": error.error.code, "message": error.error.message}}
        if scenario.get("linger"):
            await asyncio.wait_for(settled.wait(), 30)
        told = {"questions": questions, "progress": progress, "resumed": resumed}
        print(json.dumps(outcome | told), flush=True)


asyncio.run(main(json.loads(sys.argv[1])))
