"""Compares the results of PyPI's `jsonschema` for the JSON Schemas of forms with those of the server.

Usage: schemas.py FORMS ANSWERS CASES FORM...

Each FORM is the id of a form on the server; FORMS more are generated at random. About ANSWERS random answers are checked
in total. They are written, with the schemas and the server's results, to the file CASES for other validators.
"""

import json
import os
import random
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator

import questions

SEED = 20_261_122
FORMS = "/api/v1/forms"
# Valid in RFC 3339, but not for Python's `datetime`.
LEAP_SECOND = "2016-12-31T23:59:60Z"


class Server:
    def __init__(self):
        self.connection = HTTPConnection(urlsplit(os.environ["FORMS_URL"]).netloc)
        self.headers = {
            "Authorization": f"Bearer {os.environ['FORMS_API_KEY']}",
            "Content-Type": "application/json",
        }

    def call(self, method, path, body=None):
        body = None if body is None else json.dumps(body)
        self.connection.request(method, path, body, self.headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def expect(self, method, path, body=None):
        status, answer = self.call(method, path, body)
        if status not in (200, 201):
            sys.exit(f"{method} {path} {json.dumps(body)}: {status} {json.dumps(answer)}")
        return answer

    def create(self, form):
        created = self.expect("POST", FORMS, form)["id"]
        self.expect("PATCH", f"{FORMS}/{created}", {"status": "published"})
        return created

    def errors(self, form, answers):
        """Returns the entries of `errors` in the server's response; none if it accepts the answers."""
        status, answer = self.call("POST", f"{FORMS}/{form}/submissions?dry_run=true", {"answers": answers})
        if status not in (200, 422):
            sys.exit(f"{json.dumps(answers)}: {status} {json.dumps(answer)}")
        return answer.get("errors", [])


def expected(form, schema, answers, errors):
    """Whether the schema must accept the answers; None if it need not agree with the server."""
    if questions.has_empty(form["questions"], answers):
        return None
    if not errors:
        return True
    is_open = all(questions.is_left_to_server(form["questions"], schema, answers, error) for error in errors)
    return None if is_open else False


def main(count, total, path, ids):
    chance, server = random.Random(SEED), Server()
    ids += [server.create(questions.draw_form(chance)) for _ in range(count)]
    checked, accepted, wrong = 0, 0, []
    with open(path, "w", encoding="utf-8") as cases:
        for form_id in ids:
            form = server.expect("GET", f"{FORMS}/{form_id}")
            schema = server.expect("GET", f"{FORMS}/{form_id}/schema")
            Draft202012Validator.check_schema(schema)
            validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
            drawn = []
            while len(drawn) * len(ids) < total:
                answers = questions.draw_answers(chance, form["questions"])
                errors = server.errors(form_id, answers)
                verdict = expected(form, schema, answers, errors)
                if verdict is None:
                    continue
                drawn.append({"answers": answers, "verdict": verdict})
                accepted += verdict
                if validator.is_valid(answers) != verdict and LEAP_SECOND not in answers.values():
                    wrong.append((schema, answers, errors))
            checked += len(drawn)
            cases.write(json.dumps({"schema": schema, "cases": drawn}) + "\n")
    for schema, answers, errors in wrong[:20]:
        shown_ids = [error["pointer"].split("/")[2] for error in errors] or answers.keys()
        parts = {id: schema["properties"].get(id) for id in shown_ids}
        print(f"jsonschema disagrees: {json.dumps(answers)}\n  server: {errors}\n  schema: {json.dumps(parts)}")
    print(f"jsonschema: {len(ids)} schemas, {checked} answers, of which {accepted} valid; {len(wrong)} disagreements")
    if wrong or min(accepted, checked - accepted) < checked // 10:
        sys.exit("the schemas and the server disagree, or too few answers are valid or invalid")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
