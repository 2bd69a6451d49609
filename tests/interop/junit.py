"""Checks the report of tests/interop/junit."""

import sys

from junitparser import Failure, JUnitXml

report = JUnitXml.fromfile(sys.argv[1])
how, empty = report
assert (how.name, how.tests, how.failures, how.errors, how.skipped) == ("how.yaml", 2, 1, 0, 0), how
assert (empty.name, empty.tests, list(empty)) == ("empty.yaml", 0, []), empty
good, wrong = how
assert (good.name, good.classname, good.result) == ("good", "how.yaml", []), good
assert good._elem.get("file") == "how.yaml" and good._elem.get("line") == "5", good
assert wrong.name == '<b> & "c" \\u{202e}\ufffd', wrong.name
[failure] = wrong.result
assert isinstance(failure, Failure), failure
assert failure.message == '`score`: expected no error, found required ("How <was> "it"?" needs an answer)', failure.message
assert failure.text == "how.yaml:6: " + failure.message, failure.text
