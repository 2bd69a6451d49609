// Opens form files in yaml-language-server, as editors do, and compares its diagnostics.
//
// Usage: node language-server.mjs FOLDER, where each *.yaml names the schema beside it in its first line. Those that begin with
// `bad` must have exactly one diagnostic, the others none.

import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are installed in the working directory.
const require = createRequire(`${process.cwd()}/`);
const rpc = require("vscode-jsonrpc/node");

const folder = process.argv[2];
const program = join(process.cwd(), "node_modules/yaml-language-server/bin/yaml-language-server");
const server = spawn(process.execPath, [program, "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(server.stdout),
  new rpc.StreamMessageWriter(server.stdin),
);
const settings = { validate: true, schemaStore: { enable: false } };
connection.onRequest("workspace/configuration", ({ items }) =>
  items.map(({ section }) => (section === "yaml" ? settings : null)),
);
connection.onRequest("client/registerCapability", () => null);
const waiting = new Map();
connection.onNotification("textDocument/publishDiagnostics", ({ uri, diagnostics }) => waiting.get(uri)?.(diagnostics));
connection.listen();
await connection.sendRequest("initialize", {
  processId: process.pid,
  rootUri: pathToFileURL(folder).href,
  capabilities: { workspace: { configuration: true } },
});
await connection.sendNotification("initialized", {});

let [checked, wrong] = [0, 0];
for (const name of readdirSync(folder).filter((name) => name.endsWith(".yaml"))) {
  const [path, uri] = [join(folder, name), pathToFileURL(join(folder, name)).href];
  const reported = new Promise((resolve) => waiting.set(uri, resolve));
  const textDocument = { uri, languageId: "yaml", version: 1, text: readFileSync(path, "utf8") };
  await connection.sendNotification("textDocument/didOpen", { textDocument });
  const diagnostics = await reported;
  checked += 1;
  if (diagnostics.length === (name.startsWith("bad") ? 1 : 0)) continue;
  wrong += 1;
  console.log(`${name}:`, JSON.stringify(diagnostics.map(({ message, range }) => [message, range.start])));
}
console.log(`yaml-language-server: ${checked} files, ${wrong} with wrong diagnostics`);
server.kill();
process.exitCode = wrong || !checked ? 1 : 0;
