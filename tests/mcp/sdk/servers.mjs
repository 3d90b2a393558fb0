// A session with servers of others behind `toolcrib serve`, by the TypeScript SDK. The scenario is the only argument, as JSON:
//
//   server  as for client.mjs
//   package the SDK: "@modelcontextprotocol/sdk", which speaks the versions that begin with `initialize`, or "@modelcontextprotocol/client"
//   era     "legacy" or "auto", as for client.py
//   calls   [{ tool, arguments, cancel }], made one after the other; with `cancel` a call is given up when its first progress comes
//   prompt  { name, arguments } of a prompt that is asked for
//   uri     the address of a resource that is read
//
// Prints { version, tools, refused, outcomes, prompts, got, resources, read }: the version of the protocol, where the SDK tells it; the tools
// that are listed; what is wrong with the schemas that the SDK's own validator refuses; what came of each call: { result | error | cancelled,
// progress }; and the prompts and resources that are listed after that, with what was asked for and read.
const { server, package: name, era, calls, prompt, uri } = JSON.parse(process.argv[2]);
const isFirst = name === "@modelcontextprotocol/sdk";
const files = isFirst
    ? ["/client/index.js", "/client/stdio.js", "/client/streamableHttp.js", "/validation/ajv"]
    : ["", "/stdio", "/validators/ajv"];
const modules = await Promise.all(files.map((file) => import(name + file)));
const { Client, StdioClientTransport, StreamableHTTPClientTransport, AjvJsonSchemaValidator } = Object.assign({}, ...modules);

const transport = server.url
    ? new StreamableHTTPClientTransport(new URL(server.url), {
          requestInit: { headers: { Authorization: `Bearer ${server.token}` } },
      })
    : new StdioClientTransport({
          command: server.command,
          args: server.arguments,
          cwd: server.directory,
          env: server.environment,
      });

async function listed(client) {
    const tools = [];
    let cursor;
    do {
        const page = await client.listTools(cursor === undefined ? {} : { cursor });
        tools.push(...page.tools);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
}

function refusals(tools) {
    const validator = new AjvJsonSchemaValidator();
    const refused = [];
    for (const { name, inputSchema, outputSchema } of tools) {
        for (const schema of [inputSchema, outputSchema ?? {}]) {
            try {
                validator.getValidator(schema);
            } catch (error) {
                refused.push(`${name}: ${error.message}`);
            }
        }
    }
    return refused;
}

async function call(client, { tool, arguments: given, cancel }) {
    const progress = [];
    const giving = new AbortController();
    const onprogress = (news) => {
        progress.push(news);
        if (cancel) giving.abort("the test gives it up");
    };
    const options = { signal: giving.signal, onprogress };
    try {
        const call = { name: tool, arguments: given };
        const result = await (isFirst ? client.callTool(call, undefined, options) : client.callTool(call, options));
        return { result, progress };
    } catch (error) {
        if (giving.signal.aborted) return { cancelled: true, progress };
        return { error: { code: error.code, message: error.message }, progress };
    }
}

const client = new Client({ name: "typescript", version: "1" }, { versionNegotiation: { mode: era } });
await client.connect(transport);
const tools = await listed(client);
const outcomes = [];
for (const given of calls) outcomes.push(await call(client, given));
const [{ prompts }, got] = [await client.listPrompts(), await client.getPrompt(prompt)];
const read = await client.readResource({ uri });
const { resources } = await client.listResources();
const version = client.getNegotiatedProtocolVersion?.();
const told = JSON.stringify({ version, tools, refused: refusals(tools), outcomes, prompts, got, resources, read });
// What does not fit into the pipe would be lost at the exit.
await new Promise((written) => process.stdout.write(`${told}\n`, written));
await client.close();
process.exit(0);
