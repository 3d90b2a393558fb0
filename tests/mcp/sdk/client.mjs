// One call of a tool by the TypeScript SDK, as an agent makes it. The scenario is the only argument, as JSON:
//
//   server     { url, token } for HTTP, or { command, arguments, directory, environment } for standard input and output
//   tool, arguments
//   answer     what the person says to a question: "allow once", "deny", "decline", "cancel", "nothing"; absent: nobody answers
//   delay_ms   how long that takes
//   roots      the URIs of its roots; absent: it has none
//   timeout_ms the client's own patience for the call
//   linger     after the call, stay until the client has asked for the stream that it lost, and has had its answer twice or was
//              told that nothing more comes
//
// Prints { result | error, questions, progress, resumed }: what came of it, the questions that were asked, the numbers that came, and
// the status of each answer to a request for a lost stream.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const METHOD_NOT_ALLOWED = 405;
const { server, tool, arguments: given, answer, delay_ms, roots, timeout_ms, linger } = JSON.parse(process.argv[2]);
const questions = [], progress = [], resumed = [];
let settle;
const settled = new Promise((resolve) => (settle = resolve));

async function watched(url, init) {
    const response = await fetch(url, init);
    const asks = init?.method === "GET" && new Headers(init.headers).has("last-event-id");
    if (asks) {
        resumed.push(response.status);
        if (resumed.length >= 2 || response.status === METHOD_NOT_ALLOWED) settle();
    }
    return response;
}

const transport = server.url
    ? new StreamableHTTPClientTransport(new URL(server.url), {
          requestInit: { headers: { Authorization: `Bearer ${server.token}` } },
          fetch: watched,
      })
    : new StdioClientTransport({
          command: server.command,
          args: server.arguments,
          cwd: server.directory,
          env: server.environment,
      });
const capabilities = { elicitation: { form: {} }, ...(roots && { roots: {} }) };
const client = new Client({ name: "typescript", version: "1" }, { capabilities });
if (roots) client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: roots.map((uri) => ({ uri })) }));
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    questions.push(params.message);
    if (answer === undefined) return await new Promise(() => {});
    await new Promise((resolve) => setTimeout(resolve, delay_ms ?? 0));
    if (["decline", "cancel"].includes(answer)) return { action: answer };
    if (answer === "nothing") return { action: "accept", content: {} };
    return { action: "accept", content: { decision: answer } };
});
await client.connect(transport);
const options = { timeout: timeout_ms ?? 60_000, onprogress: (news) => progress.push(news) };
let outcome;
try {
    outcome = { result: await client.callTool({ name: tool, arguments: given }, CallToolResultSchema, options) };
} catch (error) {
    outcome = { error: { code: error.code, message: error.message } };
}
if (linger) await settled;
console.log(JSON.stringify({ ...outcome, questions, progress, resumed }));
await client.close();
process.exit(0);
