"""Reads two scrapes of a server, the second after a number of submissions, with Prometheus' own parser."""

import math
import sys

from prometheus_client.parser import text_string_to_metric_families


def read(path):
    with open(path) as file:
        families = list(text_string_to_metric_families(file.read()))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "a family appears twice"
    return {family.name: family for family in families}


def check(family):
    assert family.documentation, f"{family.name} has no HELP"
    assert family.type in ("counter", "gauge", "histogram"), f"{family.name} is {family.type}"
    for sample in family.samples:
        assert not any(text in value for value in sample.labels.values() for text in ("frm_", "sub_", "key_")), sample
        assert family.type != "counter" or sample.name == family.name + "_total", sample
        assert family.type == "gauge" or sample.value >= 0, sample
    if family.type == "histogram":
        check_histogram(family)


def check_histogram(family):
    series = {}
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        parts = series.setdefault(tuple(sorted(labels.items())), {"buckets": []})
        if sample.name == family.name + "_bucket":
            parts["buckets"].append((float(sample.labels["le"]), sample.value))
        else:
            parts[sample.name.removeprefix(family.name)] = sample.value
    for labels, parts in series.items():
        bounds, counts = zip(*parts["buckets"])
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf, (family.name, labels)
        assert list(counts) == sorted(counts) and counts[-1] == parts["_count"], (family.name, labels)
        assert (parts["_sum"] > 0) == (parts["_count"] > 0), (family.name, labels)


def values(families):
    counters = (family for family in families.values() if family.type == "counter")
    return {(sample.name, *sorted(sample.labels.items())): sample.value for family in counters for sample in family.samples}


idle, busy, submissions = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
for family in [*idle.values(), *busy.values()]:
    check(family)
assert idle.keys() == busy.keys(), "a family exists only later"
before, after = values(idle), values(busy)
assert all(after[series] >= value for series, value in before.items()), "a counter has decreased"
stored = ("forms_submissions_total", ("result", "accepted"))
assert after[stored] - before[stored] == submissions, after[stored]
route = (("method", "POST"), ("route", "/api/v1/forms/{form}/submissions"), ("status", "201"))
assert after[("forms_http_requests_total", *route)] == submissions
groups = {sample.name: sample.value for sample in busy["forms_store_group_operations"].samples}
assert groups["forms_store_group_operations_sum"] >= submissions
