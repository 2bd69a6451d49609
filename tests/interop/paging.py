"""Stores 1,000 submissions (`fill`), or reads them page by page (`read`), with the client in the package `generated`."""

import os
import ssl
import sys
from urllib.parse import urljoin

from generated import AuthenticatedClient
from generated.api.forms import create_form, update_form
from generated.api.submissions import create_submission, list_submissions
from generated.models import Answers, FormPatch, FormStatus, NewForm, LongTextQuestion, NewSubmission

COUNT = 1000

url = os.environ["FORMS_URL"]
client = AuthenticatedClient(
    base_url=url,
    token=os.environ["FORMS_API_KEY"],
    verify_ssl=ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"]),
)


def fill():
    """Creates a form and its submissions, too many bytes for one page, and prints the form's id."""
    question = LongTextQuestion(type_="long_text", id="text", title="Text")
    form = create_form.sync_detailed(client=client, body=NewForm(title="Pages", questions=[question])).parsed.id
    update_form.sync_detailed(form, client=client, body=FormPatch(status=FormStatus.PUBLISHED))
    for number in range(COUNT):
        answers = Answers.from_dict({"text": f"{number} ".ljust(2000, ".")})
        sent = create_submission.sync_detailed(form, client=client, body=NewSubmission(answers=answers))
        assert sent.status_code == 201, sent
    print(form)


def read():
    form = os.environ["FORMS_FORM"]
    ids, cursor, pages = [], None, 0
    while cursor is not None or not ids:
        more = {"cursor": cursor} if cursor else {}
        page = list_submissions.sync_detailed(form, client=client, limit=90, **more)
        assert page.status_code == 200, page
        ids += [one.id for one in page.parsed.submissions]
        cursor, pages = page.parsed.next_cursor, pages + 1
    assert len(ids) == len(set(ids)) == COUNT and pages == 12, (len(ids), pages)
    follow_links(form, ids)
    check_location()


def follow_links(form, ids):
    """Reads the same list by the links in the header `Link`, which name the proxy."""
    http, found = client.get_httpx_client(), []
    page = f"{url}/api/v1/forms/{form}/submissions?limit=90"
    while page:
        assert page.startswith(url), page
        answer = http.get(page)
        found += [one["id"] for one in answer.json()["submissions"]]
        following = answer.links.get("next")
        page = following and urljoin(page, following["url"])
    assert found == ids, len(found)


def check_location():
    """`Location` and the problem type lead to their documents through the proxy."""
    http = client.get_httpx_client()
    made = http.post(f"{url}/api/v1/forms", json={"title": "Location", "questions": []})
    place = urljoin(f"{url}/api/v1/forms", made.headers["location"])
    assert place.startswith(url) and http.get(place).json()["id"] == made.json()["id"], place
    missing = http.get(f"{url}/api/v1/forms/none")
    kind = urljoin(str(missing.url), missing.json()["type"])
    assert kind.startswith(url) and http.get(kind).text.startswith("form_not_found"), kind


{"fill": fill, "read": read}[sys.argv[1]]()
