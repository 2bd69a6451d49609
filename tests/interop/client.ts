// A form's whole life through openapi-fetch and the types that openapi-typescript generates.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const { FORMS_URL: baseUrl, FORMS_API_KEY: key } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

// The body of a response that must be a success.
function ok<Body>({ data, error, response }: { data?: Body; error?: unknown; response: Response }): Body {
  assert(data !== undefined, `${response.status} ${JSON.stringify(error)}`);
  return data;
}

// The problem of a response that must be a failure.
function refused(result: { error?: components["schemas"]["Problem"] }, code: components["schemas"]["ProblemCode"]) {
  assert.equal(result.error?.code, code);
  return result.error;
}

const me = ok(await client.GET("/api/v1/whoami"));
assert.equal(me.workspace.name, "default");
assert.equal(ok(await client.GET("/api/v1/limits")).max_questions, 500);

const body: components["schemas"]["NewForm"] = {
  title: "Visit",
  questions: [
    { type: "rating", id: "score", title: "How was it?", required: true },
    { type: "short_text", title: "Why?", max_length: 20 },
  ],
};
assert.equal(ok(await client.POST("/api/v1/forms", { body, params: { query: { dry_run: true } } })).status, "draft");
const created = ok(await client.POST("/api/v1/forms", { body }));
const [rating, why] = created.questions;
assert(rating?.type === "rating" && rating.required && why?.type === "short_text" && why.max_length === 20);
const form = created.id;
const path = { form };

const submissions = "/api/v1/forms/{form}/submissions";
const draft = await client.POST(submissions, { params: { path }, body: { answers: { score: 4 } } });
refused(draft, "form_not_published");
ok(await client.PATCH("/api/v1/forms/{form}", { params: { path }, body: { status: "published" } }));

ok(await client.POST(submissions, { params: { path, query: { dry_run: true } }, body: { answers: { score: 4 } } }));
const ids: string[] = [];
for (const score of [1, 2, 3, 4, 5]) {
  const header = { "Idempotency-Key": `typescript-${form}-${score}` };
  ids.push(ok(await client.POST(submissions, { params: { path, header }, body: { answers: { score, q1: "because" } } })).id);
}
const wrong = await client.POST(submissions, { params: { path }, body: { answers: { score: 9, q1: "x".repeat(21) } } });
const faults = refused(wrong, "validation_failed").errors?.map((error) => [error.pointer, error.code]);
assert.deepEqual(faults, [["/answers/score", "out_of_range"], ["/answers/q1", "too_long"]]);

const filtered = { where: ["score.gte=2", "score.lt=5"], count: true };
const some = ok(await client.GET(submissions, { params: { path, query: filtered } }));
assert.deepEqual([some.submissions.map(({ answers }) => answers.score), some.total], [[4, 3, 2], 3]);
const read: string[] = [];
let cursor: string | undefined;
do {
  const page = ok(await client.GET(submissions, { params: { path, query: { limit: 2, cursor } } }));
  read.push(...page.submissions.map(({ id }) => id));
  cursor = page.next_cursor ?? undefined;
} while (cursor !== undefined);
assert.deepEqual(read, ids.toReversed());

const one = { ...path, submission: read[0] ?? "" };
const submission = "/api/v1/forms/{form}/submissions/{submission}";
const found = await client.GET(submission, { params: { path: one } });
assert.equal(ok(found).answers.score, 5);
const edit = (tag: string) =>
  client.PATCH(submission, { params: { path: one, header: { "If-Match": tag } }, body: { answers: { score: 4 } } });
assert.equal(ok(await edit(found.response.headers.get("ETag") ?? "")).answers.score, 4);
refused(await edit('"r99"'), "version_mismatch");

assert.equal((await client.DELETE(submission, { params: { path: one } })).response.status, 204);
refused(await client.GET(submission, { params: { path: one } }), "submission_not_found");
ok(await client.POST(`${submission}/restore`, { params: { path: one } }));

const tag = (await client.GET("/api/v1/forms/{form}", { params: { path } })).response.headers.get("ETag") ?? "";
const rename = () =>
  client.PATCH("/api/v1/forms/{form}", {
    params: { path, header: { "If-Match": tag } },
    body: { title: "Visit us", questions: body.questions?.slice(0, 1) },
  });
assert.equal(ok(await rename()).response_count, 5);
refused(await rename(), "version_mismatch");
const { versions } = ok(await client.GET("/api/v1/forms/{form}/versions", { params: { path } }));
assert.deepEqual(versions.map(({ version, questions }) => [version, questions.length]), [[2, 1], [1, 2]]);
assert.deepEqual(ok(await client.GET("/api/v1/forms/{form}/schema", { params: { path } })).required, ["score"]);

assert.equal((await client.DELETE("/api/v1/forms/{form}", { params: { path } })).response.status, 204);
const trash = ok(await client.GET("/api/v1/forms", { params: { query: { trashed: true } } }));
assert(trash.forms.some(({ id }) => id === form));
assert.equal(ok(await client.POST("/api/v1/forms/{form}/restore", { params: { path } })).status, "published");
console.log("openapi-fetch: a form's life, done");
