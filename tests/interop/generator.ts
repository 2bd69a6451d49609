// Creates a form with a condition and an integration, and handles errors with openapi-generator's client for fetch.

import assert from "node:assert/strict";
import * as api from "./fetch/index.js";

const { FORMS_URL: basePath, FORMS_API_KEY: accessToken } = process.env;
const configuration = new api.Configuration({ basePath, accessToken });
const forms = new api.FormsApi(configuration);
const submissions = new api.SubmissionsApi(configuration);
const integrations = new api.IntegrationsApi(configuration);

// Expects `call` to be refused with this code, and returns the problem document.
async function refused(call: Promise<unknown>, code: api.ErrorCode): Promise<api.Problem> {
  const error = await call.then(() => assert.fail("it was accepted"), (error: unknown) => error);
  assert(error instanceof api.ResponseError, String(error));
  const problem = api.ProblemFromJSON(await error.response.json());
  assert.equal(problem.code, code);
  return problem;
}

const newForm: api.NewForm = {
  title: "Visit",
  questions: [
    { type: "rating", id: "score", title: "How was it?", required: true },
    { type: "short_text", title: "Why?", showIf: { score: { lte: 2 } } },
  ],
  integrations: [{ type: "csv_file", path: "visits.csv", delimiter: "\t" }],
};
const created = await forms.createForm({ newForm });
const form = created.id;
const [rating, why] = created.questions;
assert(rating?.type === "rating" && rating.required && why?.type === "short_text" && why.showIf);
const [file] = created.integrations ?? [];
assert(file?.type === "csv_file" && file.delimiter === "\t");

const draft = submissions.createSubmission({ form, newSubmission: { answers: { score: 4 } } });
await refused(draft, "form_not_published");
await forms.updateForm({ form, formPatch: { status: "published" } });
const wrong = await refused(submissions.createSubmission({ form, newSubmission: { answers: { score: 9 } } }), "validation_failed");
assert.deepEqual(wrong.errors?.map(({ pointer, code }) => [pointer, code]), [["/answers/score", "out_of_range"]]);
const sent = await submissions.createSubmission({ form, newSubmission: { answers: { score: 4 } } });
const page = await submissions.listSubmissions({ form, where: ["score.gte=2"], count: true });
assert.deepEqual([page.submissions.map(({ id }) => id), page.total], [[sent.id], 1]);

const hook: api.Integration = { type: "webhook", url: "https://example.com/hook", bearerToken: { value: "token" } };
const made = await integrations.createIntegration({ form, integration: hook });
assert(made.type === "webhook" && made.id?.startsWith("int_") && made.health?.pending === 0);
await refused(integrations.deleteIntegration({ form, integration: "missing", ifMatch: '"r1"' }), "integration_not_found");
console.log("openapi-generator, TypeScript: passed");
