// Tests the JSON Schemas of forms with Ajv in strict mode, with `ajv-formats`.
//
// Usage: node schemas.mjs CASES, where CASES is a file written by schemas.py.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// The packages are installed in the working directory.
const require = createRequire(`${process.cwd()}/`);
const { Ajv2020 } = require("ajv/dist/2020");
const addFormats = require("ajv-formats");

let [checked, wrong] = [0, 0];
const forms = readFileSync(process.argv[2], "utf8").trim().split("\n").map((line) => JSON.parse(line));
for (const { schema, cases } of forms) {
  const ajv = new Ajv2020({ strict: true });
  addFormats(ajv);
  const validate = ajv.compile(schema);
  for (const { answers, verdict } of cases) {
    checked += 1;
    if (validate(answers) === verdict) continue;
    wrong += 1;
    if (wrong <= 20) console.log("ajv disagrees:", JSON.stringify(answers), "expected", verdict, validate.errors);
  }
}
console.log(`ajv: ${forms.length} schemas, ${checked} answers; ${wrong} disagreements`);
process.exitCode = wrong || !checked ? 1 : 0;
