"""A form's whole life through the client that openapi-python-client generates, which is the package `generated`."""

import os
from http import HTTPStatus

from generated import AuthenticatedClient
from generated.api.forms import (
    create_form,
    delete_form,
    get_form,
    get_schema,
    list_forms,
    list_versions,
    restore_form,
    update_form,
)
from generated.api.server import get_limits, whoami
from generated.api.submissions import (
    create_submission,
    delete_submission,
    edit_submission,
    get_submission,
    list_submissions,
    restore_submission,
)
from generated.models import (
    Answers,
    AnswersPatch,
    FormPatch,
    FormStatus,
    NewForm,
    NewRatingQuestion,
    NewShortTextQuestion,
    NewSubmission,
    Problem,
    ProblemCode,
    RatingQuestion,
    RuleCode,
    SubmissionPatch,
)

client = AuthenticatedClient(base_url=os.environ["FORMS_URL"], token=os.environ["FORMS_API_KEY"])


def ok(response, status=HTTPStatus.OK):
    """The body of a response that must have this status."""
    assert response.status_code == status, response.content
    return response.parsed


def refused(response, status, code):
    problem = ok(response, status)
    assert isinstance(problem, Problem) and problem.code == code, problem
    return problem


def answers(**values):
    return NewSubmission(answers=Answers.from_dict(values))


me = ok(whoami.sync_detailed(client=client))
assert me.workspace.name == "default" and me.key.scopes, me
assert ok(get_limits.sync_detailed(client=client)).max_questions == 500

rating = NewRatingQuestion(type_="rating", id="score", title="How was it?", required=True)
why = NewShortTextQuestion(type_="short_text", title="Why?", max_length=20)
new = NewForm(title="Visit", questions=[rating, why])
assert ok(create_form.sync_detailed(client=client, body=new, dry_run=True)).status == FormStatus.DRAFT
created = ok(create_form.sync_detailed(client=client, body=new), HTTPStatus.CREATED)
form = created.id
assert isinstance(created.questions[0], RatingQuestion) and created.questions[1].id == "q1", created

refused(create_submission.sync_detailed(form, client=client, body=answers(score=4)), 409, ProblemCode.FORM_NOT_PUBLISHED)
ok(update_form.sync_detailed(form, client=client, body=FormPatch(status=FormStatus.PUBLISHED)))

ok(create_submission.sync_detailed(form, client=client, body=answers(score=4), dry_run=True))
ids = []
for score in (1, 2, 3, 4, 5):
    body = answers(score=score, q1="because")
    sent = create_submission.sync_detailed(form, client=client, body=body, idempotency_key=f"python-{form}-{score}")
    ids.append(ok(sent, HTTPStatus.CREATED).id)
wrong = create_submission.sync_detailed(form, client=client, body=answers(score=9, q1="x" * 21))
found = {(error.pointer, error.code) for error in refused(wrong, 422, ProblemCode.VALIDATION_FAILED).errors}
assert found == {("/answers/score", RuleCode.OUT_OF_RANGE), ("/answers/q1", RuleCode.TOO_LONG)}, found

page = ok(list_submissions.sync_detailed(form, client=client, where=["score.gte=2", "score.lt=5"], count=True))
assert [one.answers["score"] for one in page.submissions] == [4, 3, 2] and page.total == 3, page
read, cursor = [], None
while cursor is not None or not read:
    more = {"cursor": cursor} if cursor else {}
    page = ok(list_submissions.sync_detailed(form, client=client, limit=2, **more))
    read, cursor = read + page.submissions, page.next_cursor
assert [one.id for one in read] == ids[::-1], read

one = get_submission.sync_detailed(form, ids[0], client=client)
assert ok(one).answers["score"] == 1
patch = SubmissionPatch(answers=AnswersPatch.from_dict({"score": 2}))
edited = edit_submission.sync_detailed(form, ids[0], client=client, body=patch, if_match=one.headers["etag"])
assert ok(edited).answers["score"] == 2
stale = edit_submission.sync_detailed(form, ids[0], client=client, body=patch, if_match='"r99"')
refused(stale, 412, ProblemCode.VERSION_MISMATCH)

ok(delete_submission.sync_detailed(form, ids[0], client=client), HTTPStatus.NO_CONTENT)
refused(get_submission.sync_detailed(form, ids[0], client=client), 404, ProblemCode.SUBMISSION_NOT_FOUND)
ok(restore_submission.sync_detailed(form, ids[0], client=client))

tag = get_form.sync_detailed(form, client=client).headers["etag"]
renamed = update_form.sync_detailed(form, client=client, body=FormPatch(title="Visit us", questions=[rating]), if_match=tag)
assert ok(renamed).title == "Visit us" and renamed.parsed.response_count == 5
stale = update_form.sync_detailed(form, client=client, body=FormPatch(title="Visit"), if_match=tag)
refused(stale, 412, ProblemCode.VERSION_MISMATCH)
versions = ok(list_versions.sync_detailed(form, client=client)).versions
assert [version.version for version in versions] == [2, 1] and len(versions[1].questions) == 2, versions
assert ok(get_schema.sync_detailed(form, client=client))["required"] == ["score"]

ok(delete_form.sync_detailed(form, client=client), HTTPStatus.NO_CONTENT)
trashed = ok(list_forms.sync_detailed(client=client, trashed=True)).forms
assert form in {one.id for one in trashed}, trashed
assert ok(restore_form.sync_detailed(form, client=client)).status == FormStatus.PUBLISHED
print("openapi-python-client: a form's life, done")
