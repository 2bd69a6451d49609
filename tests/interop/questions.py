"""Random forms with all types and settings, random answers, and the rules that JSON Schemas leave to the server."""

import string

WHITE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

PATTERNS = [
    "[A-F]-[0-9]{2}", r"a\.b|(?:c|d)+", "a.b", "(?s)a.b", "[^a]*", "[-a]+", r"a\-b", r"\#\&\~", r"[\^\]\\]+", "/",
    "a|b|cd", "(?:a|b){2,3}?c?", "(a|b)+", "^a$", r"\Aa\z", r"\n", r"a\x{41}+", r"\u{1F600}+", "[😀-😂]+", "ß|ẞ",
    "(?i)straße", "(?i)k+", "(?P<n>a|b)+", "(?x)a b # c", "a++", "a{2}{3}", "a??b", "a{0}b", "(a*)*", "(|a)b", "()a",
    r"\d{3}", r"\D+", r"\w+", r"\W", r"\s?x", r"\S+", r"\pL+", r"\p{Greek}+", r"[\d&&[^5]]+", "[[:alpha:]]+",
    "[a-z--[aeiou]]+", r"(?-u:\w+)", r"(?-u:\d)a", r"\ba\b", "(?m)^a$", "[a[b]]+", ".", ".*", "[^x]", "(?i)[a-c]+",
]
TEXTS = [
    "a", "aa", "aaaaaa", "abc", "ABC", "aBc", "a\n", "\na", "a\nb", "a b", "aXb", "a.b", "axb", "cdcd", "123", "١٢٣", "A-12",
    "A-1", "ß", "ẞ", "STRASSE", "straße", "STRAẞE", "K", "kK", "\u212a", "ſ", "é", "e\u0301", "😀", "😁😀", "a😀b", "aAA",
    "AAA", "^]\\", "a-b", "--a", "#&~", "αβγ", " x", "\xa0x", "x", "b", "ab", "/", "a\u2028b", "a\x85", "a\tb", "a\x1b",
    "bcd", "555", "124", "-", "a\r", "_", "1a", "\u0663a", "hello world", "a, b", "n" * 30, "é" * 12,
]
EMAILS = [
    "name@example.com", "a.b+c@sub.example.org", "A@EXAMPLE.COM", "x@a.bc", "o'neil@mail.example.com", "a@example.com.",
    "a@example", "a@.com", "a@-a.com", "a@a-.com", "a@a..com", "a@exa_mple.com", "a@example.com/path", "a@ex!ample.com",
    "joe@127.0.0.1", "a@1.2.3.com", "a@b.c1", "a@b.1c", ".a@b.cd", "a.@b.cd", "a..b@c.de", "a b@c.de", '"a"@b.cd', "a@b@c.de",
    "a@b.cd\n", "a" * 64 + "@b.cd", "a" * 65 + "@b.cd", "a@" + "b" * 63 + ".de", "a@" + "b" * 64 + ".de",
    "a@" + "b.c" * 84 + ".de", "a@" + "b." * 130 + "de", "jörg@b.cd", "a@bücher.example", "a@example.net", "a@notexample.com",
    "a@xn--bcher-kva.example", "@b.cd", "a@", "a", "a@ab--c.de", "a@deep.sub.example.org",
]
URLS = [
    "https://example.com", "http://example.com/a?b=c#d", "HTTPS://EXAMPLE.COM:443/", "https://user:pw@example.com/",
    "https://example.com:99999/", "https://example.com:/", "https:///example.com", "https:example.com", "https:/a.b", "//a.b",
    "example.com", "https://", "https://?a", "https://exa mple.com", "https://a.b/ü", "https://bücher.example", "ftp://a.b/c",
    "mailto:a@b.cd", "tel:+491234", "javascript:alert(1)", "https://a.b/\\c", "https://a.b\n", "https://[::1]/", "https://[::1",
    "https://a<b>/", "https://a.b/<c>", "https://1.2.3.4", "geo:1,2", "1https://a.b", "https://a.b/c d", "a:b", ":", "https:",
    "https://a^b/", "https://a|b/", "https://a.b:8o/", "https://a_b.c/", "ws://a.b", "file:///etc/passwd", "urn:isbn:1",
]
DATES = ["2026-11-22", "2027-03-13", "2024-02-29", "2025-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-01-00", "0001-01-01",
         "9999-12-31", "1999-12-31", "2027-03-12", "2027-03-14", "2026-1-1", "20260101", "2026-W01-1", "2026-11-22\n", "2030-01-01",
         "2026-11-22T00:00:00Z", "12026-01-01", "1900-02-29", "2000-02-29", "2027-02-28", "2027-04-01", "2028-01-01"]
TIMES = ["09:30", "09:30:00", "09:30:01", "09:29:59", "00:00", "23:59", "23:59:59", "23:59:60", "24:00", "9:30", "09:60", "09:30:60",
         "09:30Z", "09:30:00.5", "09:30\n", "17:45:15", "17:45", "17:45:16", "17:46", "18:00", "20:00:00", "10:00", "08:59:59"]
MOMENTS = ["2027-03-13T09:30:00+01:00", "2027-03-13t09:30:00z", "2027-03-13T09:30:00Z", "2027-03-13 09:30:00Z", "2027-03-13T09:30:00",
           "2027-03-13T09:30Z", "2027-03-13T09:30:00.123456789Z", "2027-02-29T09:30:00Z", "2027-03-13T24:00:00Z", "2027-03-13T09:30:00+24:00",
           "2027-03-13T09:30:00+0100", "2016-12-31T23:59:60Z", "2027-03-13T09:60:00Z", "2027-03-13T09:30:00-23:59", "2027-03-13T09:30:00Z\n",
           "2027-03-13T09:30:00.Z", "2027-03-13", "2027-03-13T09:30:00,5Z", "2027-13-13T09:30:00Z"]
OPTIONS = ["red", "green", "blue", "constructor", "__proto__", "toString", "other", "a b", "é", "1", "true", "x\ty", "RED", "null"]
JUNK = [0, 1, 5, 5.0, -1, 1.5, 1e300, "x", "5", True, False, [1], ["x"], {"x": 1}, {"other": "x"}, {"other": 5}, [["red"]]]
EMPTY = [None, "", " ", "\u3000\n", [], {}]
COUNTRIES = ["DE", "US", "GB"]


def settings_of(rng, type):
    """Returns random valid settings for a question of the type."""
    pick, maybe = rng.choice, lambda: rng.random() < 0.5
    some = lambda items, least=1: rng.sample(items, rng.randint(least, len(items)))
    found = {}
    if type in ("short_text", "long_text"):
        if maybe():
            found["min_length"] = rng.randint(0, 3)
        if maybe():
            found["max_length"] = rng.randint(3, 12)
        if rng.random() < 0.7:
            found["pattern"] = pick(PATTERNS)
            found["pattern_message"] = "Look at the pattern"
        if maybe():
            found["placeholder"] = "x"
    elif type == "email":
        if maybe():
            found["allow_domains"] = some(["example.com", "EXAMPLE.org", "b.cd", "c.de"])
        if maybe():
            found["deny_domains"] = some(["sub.example.org", "example.net", "bücher.example"])
    elif type == "url" and maybe():
        found["schemes"] = some(["https", "ftp", "MAILTO", "tel", "urn", "x+y"])
    elif type == "phone" and maybe():
        found["default_country"] = pick(COUNTRIES)
    elif type == "number":
        low, high = sorted([rng.randint(-10, 10), rng.randint(-10, 10)])
        if maybe():
            found["min"] = pick([low, low - 0.5])
        if maybe():
            found["max"] = pick([high, high + 0.5]) + 1
        if maybe():
            found["step"] = pick([1, 2, 5, 0.5, 0.1, 2.5])
        if maybe():
            found["integer"] = maybe()
    elif type == "rating":
        if maybe():
            found["max"] = rng.randint(2, 10)
        if maybe():
            found["labels"] = {"1": "bad"}
    elif type == "opinion_scale":
        found = pick([{}, {"nps": True}, {"min": 1}, {"min": 0, "max": 5}, {"min": 1, "max": 7, "labels": {"1": "no"}}])
    elif type == "boolean" and maybe():
        found["labels"] = {"true": "Yes", "false": "No"}
    elif type == "consent" and maybe():
        found["text"] = "I agree"
    elif type == "single_choice":
        found["options"] = some(OPTIONS)
        found |= pick([{}, {"allow_other": True}, {"allow_other": False, "display": "dropdown"}])
    elif type == "multiple_choice":
        found["options"] = some(OPTIONS, 2)
        found |= pick([{}, {"allow_other": True}, {"min_selected": 2}, {"max_selected": 2}, {"min_selected": 1, "max_selected": 1}])
    elif type == "ranking":
        found["options"] = [{"value": value, "label": value.upper()} for value in some(OPTIONS[:5], 2)]
        found |= pick([{}, {"rank_all": True}, {"rank_all": False}])
    elif type == "matrix":
        found["rows"], found["columns"] = some(OPTIONS[:7]), some(OPTIONS[:4])
        found |= pick([{}, {"multiple": True}, {"multiple": False}])
        found |= pick([{}, {"required_rows": True}, {"required_rows": [found["rows"][0]]}])
    elif type == "date":
        found = pick([{}, {"min": "2026-11-22"}, {"max": "2027-03-13"}, {"min": "2024-02-29", "max": "2029-12-31"}, {"min": "today-9d"}])
    elif type == "time":
        found = pick([{}, {"min": "09:30"}, {"max": "17:45"}, {"min": "09:30:01", "max": "17:45:15"}, {"max": "09:59:59"}])
    elif type == "datetime":
        found = pick([{}, {"min": "2027-03-13T09:30:00+01:00"}, {"max": "today+900d"}])
    elif type == "hidden":
        found = pick([{}, {"default": "web"}, {"default": 5, "from_url": "utm"}])
    return found


TYPES = ["short_text", "long_text", "email", "url", "phone", "number", "rating", "opinion_scale", "boolean", "consent", "single_choice",
         "multiple_choice", "ranking", "matrix", "date", "time", "datetime", "hidden", "statement", "page"]


def draw_form(rng):
    questions = []
    ids = ["constructor", "prototype", "valueof"] + [f"q{number}" for number in range(30)]
    for type in rng.sample(TYPES, 5) + rng.choices(["short_text", "long_text", *TYPES], k=3) + ["rating"]:
        question = {"type": type, "title": f"A {type}", **settings_of(rng, type)}
        if type not in ("statement", "page"):
            question["id"] = ids.pop(rng.randrange(len(ids)))
            question["required"] = rng.random() < 0.3
        earlier = [earlier["id"] for earlier in questions if earlier["type"] in ("rating", "boolean", "email")]
        if earlier and rng.random() < 0.1:
            question["show_if"] = {rng.choice(earlier): {"answered": True}}
        questions.append(question)
    return {"title": "Random", "questions": questions, "settings": rng.choice([{}, {}, {}, {"unknown_answers": "drop"}])}


def draw_text(rng, length=12):
    return "".join(rng.choice(string.ascii_letters + string.digits + " -_.é😀") for _ in range(rng.randint(1, length)))


def draw_item(rng, options, takes_other=False):
    if takes_other and rng.random() < 0.3:
        return {"other": rng.choice(TEXTS)}
    return rng.choice(options)


def draw_answer(rng, question):
    """Returns an answer to the question, usually a valid one."""
    type, pick = question["type"], rng.choice
    values = lambda name: [item["value"] if isinstance(item, dict) else item for item in question[name]]
    if type in ("short_text", "long_text", "hidden"):
        return pick([pick(TEXTS), pick(TEXTS), draw_text(rng), pick(JUNK)] if type == "hidden" else [pick(TEXTS), pick(TEXTS), draw_text(rng)])
    if type in ("email", "url", "phone", "date", "time", "datetime"):
        pools = {"email": EMAILS, "url": URLS, "phone": ["+49 30 901820", "030 901820", "+1 212 555 0100", "5", "x"], "date": DATES, "time": TIMES}
        return pick(pools.get(type, MOMENTS))
    if type in ("number", "rating", "opinion_scale"):
        low, high = question.get("min", -3), question.get("max", 10)
        return pick([rng.randint(1, 5), rng.randint(-12, 12), low, high, low - 1, high + 1, low + 0.5, 0.3, 5.0, 2.5, 1e-9])
    if type in ("boolean", "consent"):
        return pick([True, True, False])
    if type == "single_choice":
        return draw_item(rng, values("options") + [pick(OPTIONS)], question.get("allow_other"))
    if type in ("multiple_choice", "ranking"):
        options = values("options")
        drawn = rng.sample(options, rng.randint(1, len(options)))
        extra = [draw_item(rng, OPTIONS, question.get("allow_other")) for _ in range(pick([0, 0, 1, 2]))]
        return drawn[: pick([1, 2, 20])] + extra
    rows = rng.sample(values("rows"), rng.randint(1, len(values("rows")))) + pick([[], [], [pick(OPTIONS)]])
    cell = lambda: draw_item(rng, values("columns") + values("columns") + [pick(OPTIONS)])
    several = lambda: [cell() for _ in range(pick([1, 1, 2]))]
    return {row: several() if question.get("multiple", False) != (rng.random() < 0.1) else cell() for row in rows}


def draw_answers(rng, questions):
    """Returns answers to some of the questions. Only a few may be invalid, so that one error does not hide another."""
    asked = [question for question in questions if question["type"] not in ("statement", "page")]
    doubtful = {question["id"] for question in rng.sample(asked, rng.choice([1, 1, min(3, len(asked))]))}
    answers = {}
    for question in asked:
        if question["id"] in doubtful:
            if rng.random() < 0.85:
                answers[question["id"]] = rng.choice([draw_answer(rng, question)] * 8 + [rng.choice(JUNK), rng.choice(EMPTY)])
        elif question["required"] or rng.random() < 0.1:
            answers[question["id"]] = good_answer(question)
    if rng.random() < 0.03:
        answers[rng.choice(["nobody", "__proto__", "toString"])] = rng.choice(JUNK)
    return answers


def good_answer(question):
    """Returns an answer that is nearly always valid."""
    type = question["type"]
    values = lambda name: [item["value"] if isinstance(item, dict) else item for item in question[name]]
    if type == "number":
        return question.get("min", question.get("max", 0))
    if type in ("rating", "opinion_scale"):
        return max(question.get("min", 0), 1)
    if type == "single_choice":
        return values("options")[0]
    if type in ("multiple_choice", "ranking"):
        return values("options")[: max(question.get("min_selected", 1), 20 if question.get("rank_all") else 1)]
    if type == "matrix":
        return {row: [values("columns")[0]] if question.get("multiple") else values("columns")[0] for row in values("rows")}
    texts = {"email": f"name@{question.get('allow_domains', ['example.com'])[0]}", "date": "2026-12-24", "time": "09:30:30",
             "url": "https://example.com", "phone": "+49 30 901820", "datetime": "2027-06-01T09:30:00Z", "boolean": True, "consent": True}
    return texts.get(type, "abc")


def is_empty(value):
    return value in (None, [], {}) or (isinstance(value, str) and not value.strip(WHITE))


def has_empty(questions, answers):
    """Whether the answers have an empty value. The server treats it as no answer, but schemas refuse it."""
    types = {question.get("id"): question["type"] for question in questions}
    for id, answer in answers.items():
        cells = answer.values() if types.get(id) == "matrix" and isinstance(answer, dict) else []
        if is_empty(answer) or any(map(is_empty, cells)):
            return True
    return False


def is_left_to_server(questions, schema, answers, error):
    """Whether the error is of a rule that the JSON Schema of a form leaves to the server."""
    id, code = error["pointer"].split("/")[2], error["code"]
    question = next((question for question in questions if question.get("id") == id), {})
    answer = answers.get(id)
    if code == "question_not_visible" or (code == "required" and any("show_if" in q or "required_if" in q for q in questions)):
        return True
    if code == "invalid_phone":
        return True
    if code in ("invalid_email", "domain_not_allowed"):
        return not answer.isascii()
    if code == "out_of_range" and isinstance(answer, str):
        bounds = (question.get("min", ""), question.get("max", ""))
        return question["type"] == "datetime" or any("today" in bound for bound in bounds)
    if code == "pattern_mismatch":
        return "allOf" not in schema["properties"][id]
    if code == "not_a_step":
        return question["step"] % 1 != 0 or question.get("min", 0) % question["step"] != 0
    return False
