"""Checks the JSON Schema of form files with PyPI's `jsonschema`.

Usage: form_file.py FOLDER, with the schema in .form.schema.json and form files beside it. Each must be valid, and each
change of `BAD` to a valid form must be refused, as `forms validate` does.
"""

import copy
import json
import subprocess
import sys
from pathlib import Path

import yaml
from jsonschema import Draft7Validator

FORM = {
    "version": 1,
    "status": "published",
    "title": "T",
    "slug": "a",
    "x-mine": [],
    "questions": [
        {"id": "a", "type": "rating", "title": "A", "was": "b", "x-b": 1},
        {"type": "single_choice", "title": "B", "options": ["x", {"value": "y"}], "show_if": {"a": {"lte": 2}}},
    ],
    "settings": {"confirmation": "Thanks", "x-c": 1},
    "notifications": ["a@example.com"],
    "integrations": [{"type": "webhook", "url": "https://example.com", "secret": {"env": "SECRET"}}],
}
# A path, and the value that is set there.
BAD = [
    (["titel"], "T"),
    (["title"], None),
    (["version"], 2),
    (["slug"], "A b"),
    (["questions", 0, "type"], "ratting"),
    (["questions", 0, "max"], 11),
    (["questions", 0, "options"], ["a"]),
    (["questions", 0, "id"], "A"),
    (["questions", 1, "options"], []),
    (["questions", 1, "options", 1, "lable"], "Y"),
    (["questions", 1, "show_if", "a", "lte"], True),
    (["questions", 1, "show_if", "a", "less"], 1),
    (["settings", "confirmation"], {"text": "Thanks"}),
    (["settings", "colour"], "red"),
    (["notifications", 0], {"mail": "a@example.com"}),
    (["integrations", 0, "typo"], 1),
    (["integrations", 0, "id"], "int_5w3n8r1t6y2d"),
]


def main(folder):
    schema = json.loads((folder / ".form.schema.json").read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    validator = Draft7Validator(schema)
    wrong = [path.name for path in folder.glob("[!b]*.yaml") if not validator.is_valid(read(path))]
    if not validator.is_valid(FORM):
        wrong.append("the form whose changes are refused")
    for path, value in BAD:
        form = copy.deepcopy(FORM)
        *way, last = path
        part = form
        for step in way:
            part = part[step]
        part[last] = value
        validate = subprocess.run(["target/debug/forms", "validate", "-"], input=json.dumps(form), text=True, capture_output=True)
        if validator.is_valid(form) or validate.returncode != 6:
            wrong.append(f"{path}: {value}, forms validate exits with {validate.returncode}")
    if wrong:
        sys.exit(f"the schema of form files is wrong about {wrong}")
    print(f"jsonschema: {len(list(folder.glob('[!b]*.yaml')))} form files valid, {len(BAD)} changes refused")


def read(path):
    # JSON has no dates, and keys that are texts.
    return json.loads(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8")), default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
