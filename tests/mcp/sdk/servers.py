"""A session with servers of others behind `toolcrib serve`, by the Python SDK: scenario and outcome are those of servers.mjs beside this file."""

import asyncio
import json
import sys

import httpx2
import jsonschema
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def transport(server):
    if "url" in server:
        headers = {"Authorization": f"Bearer {server['token']}"}
        return streamable_http_client(server["url"], http_client=httpx2.AsyncClient(headers=headers, timeout=60))
    return StdioServerParameters(
        command=server["command"], args=server["arguments"], cwd=server["directory"], env=server["environment"]
    )


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def listed(client):
    page = await client.list_tools()
    tools = page.tools
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


def refusals(tools):
    refused = []
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema or {}):
            try:
                jsonschema.validators.validator_for(schema).check_schema(schema)
            except jsonschema.SchemaError as error:
                refused.append(f"{tool.name}: {error.message}")
    return refused


async def call(client, given):
    progress, has_begun = [], asyncio.Event()

    async def tell(done, total, _message):
        progress.append({"progress": done, "total": total})
        has_begun.set()

    running = asyncio.create_task(client.call_tool(given["tool"], given["arguments"], progress_callback=tell))
    if given["cancel"]:
        await has_begun.wait()
        running.cancel()
    try:
        outcome = {"result": plain(await running)}
    except MCPError as error:
        outcome = {"error": {"code": error.error.code, "message": error.error.message}}
    except asyncio.CancelledError:
        outcome = {"cancelled": True}
    return outcome | {"progress": progress}


async def main(scenario):
    async with Client(transport(scenario["server"]), mode=scenario["era"]) as client:
        tools = await listed(client)
        outcomes = [await call(client, given) for given in scenario["calls"]]
        prompts, prompt = (await client.list_prompts()).prompts, scenario["prompt"]
        got = plain(await client.get_prompt(prompt["name"], prompt["arguments"]))
        read = plain(await client.read_resource(scenario["uri"]))
        resources = (await client.list_resources()).resources
        told = {"version": client.protocol_version, "tools": [plain(tool) for tool in tools], "refused": refusals(tools)}
        told |= {"prompts": [plain(prompt) for prompt in prompts], "resources": [plain(resource) for resource in resources]}
        print(json.dumps(told | {"outcomes": outcomes, "got": got, "read": read}), flush=True)


asyncio.run(main(json.loads(sys.argv[1])))
