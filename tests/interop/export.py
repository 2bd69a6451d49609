"""Answers that are hard to export, and the check of the exports that have them.

export.py send FILE ROWS    sends submissions to the form `visit`, and writes their answers to FILE, one JSON object a line
export.py check FILE        compares them with the exports in out/, raw/ and labels/, and with list.csv and list.ndjson
"""

import csv
import datetime
import json
import os
import random
import sys

import openpyxl
import urllib3

TEXTS = [
    'a "quoted" word, and a comma',
    "two\nlines",
    "😀 👩‍👩‍👧‍👦 Ünïcödé 中文",
    "=1+1",
    '=HYPERLINK("http://127.0.0.1","x")',
    "+49 30 1234",
    "@SUM(A1)",
    "\t=1",
    "-5",
    "'already",
    "007",
    " spaces ",
    '"',
    "a;b; c",
]
IDS = ["words", "amount", "again", "day", "colours", "gone"]
LABELS = {"red": "Rot", "green": "Grün, hell"}
csv.field_size_limit(1 << 24)


def send(path, rows):
    draw = random.Random(1)
    pool = urllib3.PoolManager()
    url = os.environ["FORMS_URL"] + "/api/v1/forms/visit/submissions"
    headers = {"authorization": "Bearer " + os.environ["FORMS_API_KEY"]}
    with open(path, "w") as file:
        for row in range(rows):
            answers = {
                "words": TEXTS[row % len(TEXTS)],
                "gone": draw.choice(TEXTS).replace("\n", " "),
                "amount": draw.choice([0, -5, 1.5, 123456789]),
                "again": draw.random() < 0.5,
                "day": str(datetime.date(2026, 1, 1) + datetime.timedelta(draw.randrange(365))),
                "colours": draw.choice([["red"], ["green"], ["red", "green"]]),
            }
            answers = {key: value for key, value in answers.items() if key == "words" or draw.random() < 0.8}
            response = pool.request("POST", url, json={"answers": answers}, headers=headers)
            assert response.status == 201, response.data
            file.write(json.dumps(answers) + "\n")


def cell(value):
    """The text of an answer in CSV."""
    if isinstance(value, list):
        return "; ".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def escaped(value):
    """The same, if it would be a formula."""
    text = cell(value)
    is_formula = isinstance(value, str) and text[:1] in list("=+-@\t\r") and text != "-5"
    return "'" + text if is_formula else text


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check(path):
    with open(path) as file:
        sent = [json.loads(line) for line in file][::-1]  # the newest comes first
    for path in ["out/visit.jsonl", "list.ndjson"]:
        with open(path) as file:
            assert [json.loads(line)["answers"] for line in file] == sent, path
    for path, text in [("out/visit.csv", escaped), ("list.csv", escaped), ("raw/visit.csv", cell)]:
        rows = read(path)
        assert list(rows[0]) == ["id", "submitted_at"] + IDS, rows[0]
        found = [{key: row[key] for key in IDS} for row in rows]
        assert found == [{key: text(answers[key]) if key in answers else "" for key in IDS} for answers in sent], path
    for row, answers in zip(read("labels/visit.csv"), sent, strict=True):
        for value, label in LABELS.items():
            chosen = answers.get("colours")
            assert row["Which?/" + label] == ("" if chosen is None else str(int(value in chosen))), row
        assert row["What is gone?"] == escaped(answers.get("gone", ""))
    book = openpyxl.load_workbook("out/visit.xlsx", read_only=True)
    header, *rows = book.worksheets[0].iter_rows(values_only=True)
    assert list(header) == ["id", "submitted_at"] + IDS, header
    for row, answers in zip(rows, sent, strict=True):
        assert isinstance(row[1], datetime.datetime), row
        expected = dict(answers)
        if "day" in expected:
            expected["day"] = datetime.datetime.fromisoformat(expected["day"])
        if "colours" in expected:
            expected["colours"] = cell(expected["colours"])
        assert dict(zip(IDS, row[2:])) == {key: expected.get(key) for key in IDS}, (row, answers)
    print(f"{len(sent)} answers read back from the exports")


if sys.argv[1] == "send":
    send(sys.argv[2], int(sys.argv[3]))
else:
    check(sys.argv[2])
