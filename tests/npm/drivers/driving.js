// What the drivers of the TypeScript SDKs share: a wish a line in, what came of it a line out, as JSON.

import { createInterface } from "node:readline";

const methods = {
  tools: (client) => client.listTools(),
  call: (client, { name, arguments: given }) => client.callTool({ name, arguments: given }),
  resources: (client) => client.listResources(),
  read: (client, { uri }) => client.readResource({ uri }),
  prompt: (client, { name, arguments: given }) => client.getPrompt({ name, arguments: given }),
  complete: (client, { prompt, argument, value }) =>
    client.complete({ ref: { type: "ref/prompt", name: prompt }, argument: { name: argument, value } }),
};

function failure(error) {
  return { failed: String(error?.message ?? error), code: Number.isInteger(error?.code) ? error.code : null };
}

// Connect as each wish to connect says, and do what is wished for until the next one.
export async function drive(connected) {
  let client = null;
  for await (const line of createInterface({ input: process.stdin })) {
    const wish = JSON.parse(line);
    let told;
    try {
      if (wish.do === "connect") {
        await client?.close();
        client = null;
        client = await connected(wish);
        told = {
          version: client.getNegotiatedProtocolVersion?.() ?? client.transport.protocolVersion,
          server: client.getServerVersion()?.name,
          instructions: client.getInstructions(),
        };
      } else {
        told = await methods[wish.do](client, wish);
      }
    } catch (error) {
      told = failure(error);
    }
    process.stdout.write(JSON.stringify(told) + "\n");
  }
  await client?.close();
}
