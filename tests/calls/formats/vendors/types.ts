// What the vendors say that each golden is. `goldens.ts` assigns them all: a golden without a type fails, and the other way.

import type {
  Tool as AnthropicTool,
  ToolResultBlockParam,
  ToolUseBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import type { Part, Tool as GeminiTool } from "@google/genai";
import type {
  CallToolRequestSchema,
  CallToolResultSchema,
  JSONRPCRequestSchema,
  JSONRPCResultResponseSchema,
  ListToolsResultSchema,
} from "@modelcontextprotocol/core";
import type {
  ChatCompletionFunctionTool,
  ChatCompletionMessageFunctionToolCall,
  ChatCompletionToolMessageParam,
} from "openai/resources/chat/completions";
import type { FunctionTool, ResponseFunctionToolCall, ResponseInputItem } from "openai/resources/responses/responses";
import type { input } from "zod";

type Schemas = Record<string, { schema: Record<string, unknown>; lost: string[] } | { impossible: string[] }>;

export interface Goldens {
  "mcp": input<typeof ListToolsResultSchema>;
  "openai-chat": ChatCompletionFunctionTool[];
  "openai-chat-strict-off": ChatCompletionFunctionTool[];
  "openai-responses": FunctionTool[];
  "anthropic": AnthropicTool[];
  "anthropic-strict-on": AnthropicTool[];
  "gemini": GeminiTool;

  "calls-mcp": (input<typeof JSONRPCRequestSchema> & input<typeof CallToolRequestSchema>)[];
  "calls-openai-chat": ChatCompletionMessageFunctionToolCall[];
  "calls-openai-responses": ResponseFunctionToolCall[];
  "calls-anthropic": ToolUseBlockParam[];
  "calls-gemini": Part[];

  "results-mcp": (input<typeof JSONRPCResultResponseSchema> & { result: input<typeof CallToolResultSchema> })[];
  "results-openai-chat": ChatCompletionToolMessageParam[];
  "results-openai-responses": ResponseInputItem.FunctionCallOutput[];
  "results-anthropic": ToolResultBlockParam[];
  "results-gemini": Part[];

  "strict-openai": Schemas;
  "strict-anthropic": Schemas;
}
