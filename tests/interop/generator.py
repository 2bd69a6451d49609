"""Creates a form with a condition and integrations, and handles errors with openapi-generator's Python client, the package `openapi_client`."""

import os
from contextlib import contextmanager

from openapi_client import (
    ApiClient,
    ApiException,
    Condition,
    ConditionOperators,
    ConditionTest,
    Configuration,
    CsvFileIntegration,
    ErrorCode,
    FormPatch,
    FormsApi,
    FormStatus,
    FormStatusOrOther,
    HeaderValue,
    Integration,
    IntegrationsApi,
    KeysApi,
    NewForm,
    NewKey,
    NewSubmission,
    OrderedValue,
    Problem,
    Question,
    RatingQuestion,
    RuleCode,
    Scope,
    Secret,
    ShortTextQuestion,
    SubmissionCompletedEvent,
    SubmissionsApi,
    WebhookIntegration,
)

client = ApiClient(Configuration(host=os.environ["FORMS_URL"], access_token=os.environ["FORMS_API_KEY"]))
forms, submissions, integrations = FormsApi(client), SubmissionsApi(client), IntegrationsApi(client)


@contextmanager
def refused(status, code):
    """Expects the request within to be refused with this status and code."""
    problems = []
    try:
        yield problems
    except ApiException as error:
        problem = Problem.from_json(error.body)
        assert error.status == status and problem.code.actual_instance == code, error
        problems.append(problem)
    assert problems, "it was accepted"


rating = RatingQuestion(type="rating", id="score", title="How was it?", required=True)
few = ConditionTest(ConditionOperators(lte=OrderedValue(2)))
why = ShortTextQuestion(type="short_text", title="Why?", show_if=Condition.from_dict({"score": few.to_dict()}))
file = CsvFileIntegration(type="csv_file", path="visits.csv", delimiter="\t")
new = NewForm(title="Visit", questions=[Question(rating), Question(why)], integrations=[Integration(file)])
created = forms.create_form(new)
form = created.id
assert isinstance(created.questions[0].actual_instance, RatingQuestion), created
assert created.questions[1].actual_instance.show_if.to_dict() == {"score": {"lte": 2}}, created
assert created.integrations[0].actual_instance.delimiter == "\t", created
assert created.status.actual_instance == FormStatus.DRAFT, created

with refused(409, ErrorCode.FORM_NOT_PUBLISHED):
    submissions.create_submission(form, NewSubmission(answers={"score": 4}))
forms.update_form(form, FormPatch(status=FormStatus.PUBLISHED))
with refused(422, ErrorCode.VALIDATION_FAILED) as problems:
    submissions.create_submission(form, NewSubmission(answers={"score": 9}))
assert [(one.pointer, one.code.actual_instance) for one in problems[0].errors] == [("/answers/score", RuleCode.OUT_OF_RANGE)]
sent = submissions.create_submission(form, NewSubmission(answers={"score": 4}))
page = submissions.list_submissions(form, where=["score.gte=2"], count=True)
assert [one.id for one in page.submissions] == [sent.id] and page.total == 1, page
assert FormStatusOrOther.from_json('"archived"').actual_instance == "archived"

hook = WebhookIntegration(type="webhook", url="https://example.com/hook", headers={"X-Source": HeaderValue("forms")}, bearer_token=Secret("token"))
made = integrations.create_integration(form, Integration(hook)).actual_instance
assert made.id.startswith("int_") and made.secret.actual_instance.startswith("whsec_"), made
assert made.bearer_token.actual_instance.set and made.health.pending == 0, made
assert len(integrations.list_integrations(form).integrations) == 2
with refused(404, ErrorCode.INTEGRATION_NOT_FOUND):
    integrations.delete_integration(form, "missing", if_match='"r1"')

key = KeysApi(client).create_key(NewKey(name="CI", scopes=[Scope.READ]))
assert key.key.startswith("fk_") and [scope.actual_instance for scope in key.scopes] == [Scope.READ], key
event = {"type": "submission.completed", "timestamp": "2026-11-20T09:00:00.000Z", "version": 1, "id": "evt_01k3v8m2f4q6s8t0w2y4z6a8bc", "sequence": 1,
         "test": False, "truncated": False, "data": {"form": {"id": form}, "submission": {"id": sent.id}}}
assert SubmissionCompletedEvent.from_dict(event).data.actual_instance.submission.id == sent.id
print("openapi-generator, Python: passed")
