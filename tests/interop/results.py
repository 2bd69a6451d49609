"""A form with every type of question, random answers to it, and their summary, computed with Python's own means.

results.py form                      prints the form
results.py edited                    prints the form, edited
results.py answers ROWS              prints random answers, one JSON object a line
results.py check FORM ROWS SUMMARY   compares a summary with the submissions that it is of
"""

import collections
import datetime
import fractions
import json
import math
import random
import statistics
import sys

ABC = ["a", "b", "c", "d"]
QUESTIONS = [
    {"id": "words", "type": "short_text"},
    {"id": "story", "type": "long_text"},
    {"id": "mail", "type": "email"},
    {"id": "site", "type": "url"},
    {"id": "phone", "type": "phone"},
    {"id": "amount", "type": "number"},
    {"id": "whole", "type": "number", "integer": True},
    {"id": "score", "type": "rating"},
    {"id": "agree", "type": "opinion_scale", "min": 1, "max": 7, "labels": {"1": "no", "7": "very"}},
    {"id": "nps", "type": "opinion_scale", "nps": True},
    {"id": "yes", "type": "boolean"},
    {"id": "terms", "type": "consent"},
    {"id": "one", "type": "single_choice", "options": ABC, "allow_other": True},
    {"id": "many", "type": "multiple_choice", "options": ABC, "allow_other": True},
    {"id": "order", "type": "ranking", "options": ABC},
    {"id": "grid", "type": "matrix", "rows": ["r", "s"], "columns": ABC, "multiple": True},
    {"id": "day", "type": "date"},
    {"id": "born", "type": "date"},
    {"id": "at", "type": "time"},
    {"id": "when", "type": "datetime"},
    {"id": "source", "type": "hidden"},
]


def form(edited):
    questions = [{"title": f"The {question['id']}?", **question} for question in QUESTIONS]
    for question in questions if edited else []:
        for name in ["options", "rows", "columns"]:
            if name in question:
                question[name] = question[name][: -1]
        if question["id"] == "score":
            question["max"] = 4
    return {"title": "Visit", "slug": "visit", "questions": questions}


def draw(rng):
    pick, some = rng.choice, lambda items: rng.sample(items, rng.randint(1, len(items)))
    day = lambda first, days: datetime.date(first, 1, 1) + datetime.timedelta(rng.randrange(days))
    other = lambda: {"other": pick(["e", "f", "Ünï 😀"])}
    moment = f"{day(2026, 900)}T{rng.randrange(24):02}:30:00{pick(['Z', '+05:30', '-11:00'])}"
    answers = {
        "words": pick(["soup", "salad", "no", "x" * 350, " "]),
        "story": f"{rng.random()}\n{rng.random()}",
        "mail": f"n{rng.randrange(50)}@example.com",
        "site": f"https://example.com/{rng.randrange(9)}",
        "phone": f"+49 30 9018{rng.randrange(10, 99)}",
        "amount": pick([rng.gauss(0, 1), rng.uniform(-1e6, 1e6), 1e15, -1e15, 0.1]),
        "whole": rng.randrange(8),
        "score": rng.randint(1, 5),
        "agree": rng.randint(1, 7),
        "nps": pick([*range(11), 9, 9, 10, 10]),
        "yes": rng.random() < 0.7,
        "terms": rng.random() < 0.9,
        "one": pick([*ABC, other()]),
        "many": some(ABC) + pick([[], [other()]]),
        "order": some(ABC),
        "grid": {row: some(ABC) for row in some(["r", "s"])},
        "day": str(day(2026, 365)),
        "born": str(day(1930, 30000)),
        "at": f"{rng.randrange(24):02}:{rng.randrange(60):02}",
        "when": moment,
        "source": pick(["mail", "web", 5, True]),
    }
    return {key: value for key, value in answers.items() if rng.random() < 0.8}


def by_count(counts):
    return [{"value": value, "count": count} for value, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]


def timeline(moments, finest):
    """Counts by the unit that the span of moments asks for."""
    days = (max(moments) - min(moments)) / datetime.timedelta(days=1) if moments else 0
    units = [("hour", 13, 2), ("day", 10, 731), ("month", 7, 7305), ("year", 4, math.inf)]
    unit, length, _ = next(one for one in units[["hour", "day"].index(finest) :] if days <= one[2])
    return {"unit": unit, "points": dict(collections.Counter(moment.isoformat()[:length] for moment in moments))}


def options(question, values, name="options"):
    """The counts of options, removed ones last."""
    counts = collections.Counter(values)
    found = [{"value": value, "count": counts.pop(value, 0)} for value in question[name]]
    return found + [{**one, "removed": True} for one in by_count(counts)]


def is_empty(value):
    return value in (None, [], {}) or isinstance(value, str) and not value.strip()


def expected(question, rows):
    """What the summary must have of the answers, and how many there are."""
    kind, id = question["type"], question["id"]
    given = [(row, row["answers"][id]) for row in rows if not is_empty(row["answers"].get(id))]
    values = [value for _, value in given]
    if kind in ("short_text", "long_text", "email", "url", "phone", "hidden"):
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
        cut = lambda text: text if len(text) <= 300 else text[:300] + "…"
        counts = collections.Counter(map(cut, texts))
        top = {text: count for text, count in counts.items() if count > 1}
        latest = [{"id": row["id"], "at": row["submitted_at"], "value": cut(text)} for (row, _), text in zip(given, texts)]
        return len(texts), {"kind": "text", "distinct": len(counts), "top": by_count(top)[:100], "latest": latest[:5]}
    if kind == "number":
        numbers = sorted(values)
        mean, median = (float(statistics.mean(map(fractions.Fraction, numbers))), statistics.median(numbers)) if numbers else (None, None)
        least, most = (numbers[0], numbers[-1]) if numbers else (None, None)
        return len(numbers), {"kind": "number", "min": least, "max": most, "mean": mean, "median": median}
    if kind in ("rating", "opinion_scale"):
        least, most = question.get("min", 0 if kind == "opinion_scale" else 1), question.get("max", 10 if kind == "opinion_scale" else 5)
        values = sorted(value for value in values if least <= value <= most)
        counts = [{"value": value, "count": values.count(value)} for value in range(least, most + 1)]
        for one in counts:
            if str(one["value"]) in question.get("labels", {}):
                one["label"] = question["labels"][str(one["value"])]
        if question.get("nps"):
            promoters, detractors = sum(value > 8 for value in values), sum(value < 7 for value in values)
            exact = fractions.Fraction(100 * (promoters - detractors), max(len(values), 1))
            score = math.floor(abs(exact) + fractions.Fraction(1, 2)) * (1 if exact > 0 else -1)
            passives = len(values) - promoters - detractors
            return len(values), {
                "kind": "nps", "options": counts, "promoters": promoters, "passives": passives,
                "detractors": detractors, "score": score if values else None,
            }
        mean, median = (statistics.fmean(values), statistics.median(values)) if values else (None, None)
        return len(values), {"kind": "scale", "options": counts, "mean": mean, "median": median}
    if kind in ("boolean", "consent"):
        values = [value for value in values if value or kind == "boolean"]
        counts = [{"value": flag, "count": values.count(flag)} for flag in ([True, False] if kind == "boolean" else [True])]
        return len(values), {"kind": "choice", "multiple": False, "options": counts, "other": [], "unlisted": 0}
    if kind in ("single_choice", "multiple_choice"):
        items = [item for value in values for item in (value if kind == "multiple_choice" else [value])]
        other = collections.Counter(item["other"] for item in items if isinstance(item, dict))
        counts = options(question, [item for item in items if isinstance(item, str)])
        return len(values), {
            "kind": "choice", "multiple": kind == "multiple_choice", "options": counts, "other": by_count(other), "unlisted": 0,
        }
    if kind == "ranking":
        counts = options(question, [item for value in values for item in value])
        for one in counts:
            places = [value.index(one["value"]) + 1 for value in values if one["value"] in value]
            if places and "removed" not in one:
                one["mean"] = statistics.fmean(places)
        return len(values), {"kind": "choice", "multiple": True, "options": counts, "other": [], "unlisted": 0}
    if kind == "matrix":
        rows = []
        for row in question["rows"]:
            cells = [value[row] for value in values if row in value]
            counts = options(question, [item for cell in cells for item in cell], "columns")
            rows.append({"value": row, "count": len(cells), "options": counts, "unlisted": 0})
        return sum(any(row in question["rows"] for row in value) for value in values), {"kind": "matrix", "rows": rows}
    full = {"date": "{}T00:00:00Z", "time": "1970-01-01T{}:00Z", "datetime": "{}"}[kind]
    moments = [datetime.datetime.fromisoformat(full.format(value)).astimezone(datetime.timezone.utc) for value in values]
    counts = timeline(moments, "day" if kind == "date" else "hour")
    if kind == "time":
        counts["points"] = {at[11:]: count for at, count in counts["points"].items()}
    shown = {"date": "%Y-%m-%d", "time": "%H:%M:%S", "datetime": "%Y-%m-%dT%H:%M:%S.000Z"}[kind]
    least, most = (min(moments).strftime(shown), max(moments).strftime(shown)) if moments else (None, None)
    return len(values), {"kind": "date", "min": least, "max": most, "timeline": counts}


def leave_out(found, counts, distinct):
    """Takes away what a summary may leave out if there are very many different values."""
    for name, none in [("median", None), ("distinct", None), ("top", [])]:
        if name in counts and distinct > 2000 and found[name] == none:
            counts[name] = none


def is_near(one, other):
    """Whether two parts of a summary are equal, floating-point numbers nearly so."""
    if isinstance(one, float) or isinstance(other, float):
        return isinstance(one, (int, float)) and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(is_near(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(is_near, one, other))
    return one == other


def check_bins(bins, numbers):
    """Checks that the bins have all numbers, each the number of those that it says."""
    if not bins:
        assert not numbers or len(set(numbers)) > 2000
        return
    assert sum(one["count"] for one in bins) == len(numbers) and len(bins) <= 10, bins
    for one in bins:
        is_in = lambda number: one["from"] <= number < one["to"] or number == one["to"] and one in (bins[-1], {**one, "from": one["to"]})
        assert one["count"] == sum(map(is_in, numbers)), one


def check(form, rows, summary):
    rows.sort(key=lambda row: row["id"], reverse=True)
    moments = [row["submitted_at"] for row in rows]
    assert summary["totals"] == {"responses": len(rows), "first_at": moments[-1], "last_at": moments[0]}, summary["totals"]
    assert summary["timeline"] == timeline([datetime.datetime.fromisoformat(moment) for moment in moments], "hour"), summary["timeline"]
    assert [one["id"] for one in summary["questions"]] == [one["id"] for one in form["questions"]]
    for question, found in zip(form["questions"], summary["questions"]):
        answered, counts = expected(question, rows)
        values = [row["answers"][question["id"]] for row in rows if question["id"] in row["answers"]]
        bins = found["summary"].pop("bins", None)
        leave_out(found["summary"], counts, len(set(map(str, values))))
        assert (found["answered"], found["skipped"]) == (answered, len(rows) - answered), (found, answered)
        assert is_near(found["summary"], counts), f"{question}\n{found['summary']}\n{counts}"
        if bins is not None:
            check_bins(bins, values)
    print(f"{len(rows)} submissions add up")


match sys.argv[1:]:
    case ["form"]:
        print(json.dumps(form(False)))
    case ["edited"]:
        print(json.dumps(form(True)))
    case ["answers", rows]:
        rng = random.Random(1)
        for _ in range(int(rows)):
            print(json.dumps(draw(rng)))
    case ["check", form, rows, summary]:
        with open(form) as form, open(rows) as rows, open(summary) as summary:
            check(json.load(form), [json.loads(line) for line in rows], json.load(summary))
