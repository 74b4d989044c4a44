// Drives the official TypeScript SDK, 2.x, in the era of the protocol that is wished for.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { drive } from "./driving.js";

await drive(async (wish) => {
  const transport = wish.command
    ? new StdioClientTransport({ command: wish.command, args: wish.args, env: wish.env, cwd: wish.cwd })
    : new StreamableHTTPClientTransport(new URL(wish.url), { requestInit: { headers: wish.headers } });
  const mode = ["legacy", "auto"].includes(wish.era) ? wish.era : { pin: wish.era };
  const client = new Client({ name: "brain-tests", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transport);
  return client;
});
