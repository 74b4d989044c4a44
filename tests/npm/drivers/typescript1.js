// Drives the official TypeScript SDK, 1.x.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { drive } from "./driving.js";

await drive(async (wish) => {
  const transport = wish.command
    ? new StdioClientTransport({ command: wish.command, args: wish.args, env: wish.env, cwd: wish.cwd })
    : new StreamableHTTPClientTransport(new URL(wish.url), { requestInit: { headers: wish.headers } });
  const client = new Client({ name: "brain-tests", version: "1" });
  await client.connect(transport);
  return client;
});
