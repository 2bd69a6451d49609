//! CPU time of checking the most expensive bodies against the most expensive accepted forms.
//!
//! `cargo bench --bench check`. Each case is as expensive as the limits allow: the definition has 2 MiB or uses its
//! budget, the body has 1 MiB. Times are the CPU time of this thread, the minimum of `FORMS_BENCH_ROUNDS` rounds.
//! `define` is reading the definition, with its patterns; `read` is parsing the body.

mod common;

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use forms::clock::Timestamp;
use forms::domain::form::definition::Definition;
use forms::domain::form::{Form, Version};
use forms::domain::json;
use forms::domain::language::ENGLISH;
use forms::domain::submission;
use forms::domain::validation::limits::Limits;
use forms::id::{FormId, WorkspaceId};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use self::common::settings;
use self::common::table::Table;

/// Maximum bytes of a definition and of a body.
const DEFINITION: usize = 2 << 20;
const BODY: usize = 1 << 20;

/// Maximum bytes of an answer.
const ANSWER: usize = 64 << 10;

/// A form, and answers by question id, as JSON text, so that numbers keep their digits.
struct Case {
    name: &'static str,
    questions: Vec<Value>,
    answers: Vec<(String, String)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut table = Table::new(&["case", "define ms", "read ms", "check ms", "target ms", "outcome"]);
    for case in cases() {
        let name = case.name;
        let row = measure(case).map_err(|error| format!("{name}: {error}"))?;
        table.row(row);
    }
    Ok(table.print()?)
}

/// All cases, grouped by the kind of cost.
fn cases() -> Vec<Case> {
    let mut all: Vec<_> = [patterns(), searches(), conditions(), choices(), texts(), refusals()]
        .into_iter()
        .flatten()
        .collect();
    all.push(all_costs());
    all
}

fn measure(case: Case) -> Result<[String; 6], Box<dyn Error>> {
    let Case { name, questions, answers } = case;
    let form = json!({"title": "F", "questions": questions}).to_string();
    let members: Vec<_> = answers.iter().map(|(id, answer)| format!("\"{id}\":{answer}")).collect();
    let body = format!("{{\"answers\":{{{}}}}}", members.join(","));
    if form.len() > DEFINITION || body.len() > BODY {
        return Err(format!("{} and {} bytes exceed the limits", form.len(), body.len()).into());
    }
    let limits = Limits::default();
    let (define, version) = fastest(|| read(&form))?;
    let version = version?;
    let (parse, sent) = fastest(|| submission::read(&body, &limits))?;
    let sent = sent.map_err(|error| format!("{error:?}"))?;
    let now = Timestamp::from_millis(1_800_000_000_000);
    let (check, outcome) =
        fastest(|| version.check(black_box(sent.answers.values()), &limits, now, ENGLISH))?;
    let outcome = outcome.map_or_else(|errors| errors[0].code.to_string(), |_| "accepted".to_owned());
    let millis = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    Ok([
        name.to_owned(),
        millis(define),
        millis(parse),
        millis(check),
        "< 100".to_owned(),
        outcome.to_owned(),
    ])
}

/// Creates the form in `text`; returns its first version.
fn read(text: &str) -> Result<Version, String> {
    let value = json::parse(text).map_err(|error| error.to_string())?;
    let definition = Definition::read(&value, &Limits::default())
        .map_err(|errors| format!("{} at {}: {}", errors[0].code, errors[0].pointer, errors[0].message))?;
    let ids = (FormId::from_bytes([1; 8]), WorkspaceId::from_bytes([2; 8]));
    Ok(Form::create(ids.0, ids.1, definition, Timestamp::from_millis(0)).1)
}

/// Runs `work` several times; returns the minimum CPU time and the result.
fn fastest<T>(mut work: impl FnMut() -> T) -> Result<(Duration, T), Box<dyn Error>> {
    let mut timed = || {
        let begin = cpu_time();
        let done = black_box(work());
        (cpu_time().saturating_sub(begin), done)
    };
    let mut best = timed();
    for _ in 1..settings::rounds()? {
        let next = timed();
        if next.0 < best.0 {
            best = next;
        }
    }
    Ok(best)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn question(id: impl Into<String>, kind: &str, settings: Value) -> Value {
    let mut question = json!({"id": id.into(), "type": kind, "title": "T"});
    if let (Some(members), Value::Object(settings)) = (question.as_object_mut(), settings) {
        members.extend(settings);
    }
    question
}

/// `count` equal questions with the ids `a0`, `a1` and so on, each with the same answer.
fn repeated(name: &'static str, count: usize, kind: &str, settings: &Value, answer: &Value) -> Case {
    let id = |place: usize| format!("a{place}");
    let questions = (0..count).map(|place| question(id(place), kind, settings.clone())).collect();
    Case { name, questions, answers: (0..count).map(|place| (id(place), answer.to_string())).collect() }
}

/// A question `a` with `settings`, and one that is shown if any of `tests` is true for `a`.
fn conditional(
    name: &'static str,
    kind: &str,
    settings: Value,
    tests: Vec<Value>,
    answer: impl ToString,
) -> Case {
    let tests: Vec<_> = tests.into_iter().map(|test| json!({"a": test})).collect();
    let last = question("b", "rating", json!({"show_if": {"any": tests}}));
    Case {
        name,
        questions: vec![question("a", kind, settings), last],
        answers: vec![("a".to_owned(), answer.to_string())],
    }
}

/// The case with the largest number up to `most` whose form is accepted, by bisection.
fn largest(most: usize, case: impl Fn(usize) -> Case) -> Case {
    let is_accepted = |number: &usize| {
        let form = json!({"title": "F", "questions": case(*number).questions}).to_string();
        form.len() <= DEFINITION && read(&form).is_ok()
    };
    let (mut accepted, mut refused) = (1, most + 1);
    while refused - accepted > 1 {
        let middle = usize::midpoint(accepted, refused);
        *(if is_accepted(&middle) { &mut accepted } else { &mut refused }) = middle;
    }
    case(accepted)
}

/// A thousand characters, each `one` or `other` at random.
fn mixed(one: char, other: char) -> String {
    let mut state = 1_u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 1 { one } else { other }
    };
    (0..1_000).map(|_| draw()).collect()
}

/// Patterns with many active states, in few and in many questions.
fn patterns() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, pattern, text) in [
        ("2 patterns of stars", "(?:a*b*){N}z", mixed('a', 'b')),
        ("2 patterns of options", "(?:a?b?c?d?){N}z", "abcd".repeat(250)),
        ("2 patterns of lazy options", "(?:a??){N}b", "a".repeat(1_000)),
        ("2 patterns of counted sets", "[ab]*a[ab]{N}", mixed('a', 'b')),
        ("2 patterns of stars, 4 bytes each", "(?:😀*😁*){N}z", mixed('😀', '😁')),
        ("2 patterns of sets, 4 bytes each", "(?:[^x]*?😀?){N}z", mixed('😀', '😁')),
        ("2 patterns of any character", "(?:.*){N}z", mixed('😀', 'a')),
        ("2 patterns of word boundaries", r"(?:\B?日?){N}z", "日".repeat(1_000)),
        ("2 patterns of many word boundaries", r"(?:\B*日*){N}z", "日".repeat(1_000)),
    ] {
        cases.push(repeated_patterns(name, 2, pattern, &text));
    }
    for (name, count, pattern, text) in [
        ("20 patterns", 20, "(?:a*b*){N}z", mixed('a', 'b')),
        ("100 patterns", 100, "(?:a*b*){N}z", mixed('a', 'b')),
        ("100 patterns, counted", 100, "[ab]*a[ab]{N}", mixed('a', 'b')),
        ("150 patterns, 4 bytes each", 150, "(?:😀*😁*){N}z", mixed('😀', '😁')),
        ("250 patterns", 250, "(?:a*b*){N}z", mixed('a', 'b')),
        ("250 patterns, counted", 250, "[ab]*a[ab]{N}", mixed('a', 'b')),
    ] {
        cases.push(repeated_patterns(name, count, pattern, &text));
    }
    for (name, pattern, text) in [
        ("50 `matches` on one text", "(?:a*b*){N}z", mixed('a', 'b')),
        ("50 `matches`, 4 bytes each", "(?:😀*😁*){N}z", mixed('😀', '😁')),
        ("50 `matches`, word boundaries", r"(?:\B*日*){N}z", "日".repeat(1_000)),
        ("50 `matches`, counted", "[ab]*a[ab]{N}z", mixed('a', 'b')),
    ] {
        cases.push(largest(20_000, |number| {
            let pattern = pattern.replace('N', &number.to_string());
            conditional(name, "short_text", json!({}), vec![json!({"matches": pattern}); 50], json!(text))
        }));
    }
    cases.push(slow_to_compile());
    cases
}

/// `count` equal patterns with as many repetitions as a form may have.
fn repeated_patterns(name: &'static str, count: usize, pattern: &str, text: &str) -> Case {
    largest(20_000, |number| {
        let pattern = pattern.replace('N', &number.to_string());
        repeated(name, count, "long_text", &json!({"pattern": pattern}), &json!(text))
    })
}

/// Patterns that are slow to compile, with a small result.
fn slow_to_compile() -> Case {
    let pattern = format!("(?i)a{}", r"(?:\pL){0}".repeat(99));
    repeated(
        "10 patterns that are slow to compile",
        10,
        "short_text",
        &json!({"pattern": pattern}),
        &json!("a"),
    )
}

/// `includes` in texts and lists.
fn searches() -> Vec<Case> {
    let long = "a".repeat(ANSWER);
    let includes = |count: usize, part: Value| vec![json!({"includes": part}); count];
    let most = Limits::default().includes;
    let texts = |name, part: String| {
        conditional(
            name,
            "long_text",
            json!({"max_length": ANSWER}),
            includes(most, json!(part)),
            json!(long),
        )
    };
    let items = |count: usize| Value::Array(vec![json!("none"); count]);
    let options: Vec<_> = (0..500).map(|number| format!("o{number}")).collect();
    let list = |name, count| {
        conditional(
            name,
            "multiple_choice",
            json!({"options": options}),
            includes(most, json!("o499")),
            items(count),
        )
    };
    vec![
        texts("`includes` of short parts", "aab".to_owned()),
        texts("`includes` with a common prefix", format!("{}b", "a".repeat(1_800))),
        texts("`includes` with a common suffix", format!("b{}", "a".repeat(1_800))),
        list("`includes` in a list", 500),
        list("`includes` in a list of too many", 7_000),
    ]
}

/// Conditions with as many tests as a form may have.
fn conditions() -> Vec<Case> {
    let digits = "0".repeat(ANSWER - 100);
    let close = format!("1.{digits}1");
    let moment = format!("2026-01-01T00:00:00.{digits}Z");
    let many = |test: Value| vec![test; Limits::default().values];
    vec![
        conditional("equal to numbers", "number", json!({}), many(json!(2)), json!(1)),
        conditional("equal to a number with many digits", "number", json!({}), many(json!(1)), &close),
        conditional(
            "equal to a number with 390 digits",
            "number",
            json!({}),
            many(json!(1)),
            format!("1.{}1", "0".repeat(387)),
        ),
        conditional("beyond a number with many digits", "number", json!({}), many(json!({"gt": 1})), &close),
        conditional(
            "moments",
            "datetime",
            json!({}),
            many(json!("2027-01-01T00:00:00Z")),
            json!("2026-01-01T00:00:00Z"),
        ),
        conditional(
            "moments with many digits",
            "datetime",
            json!({}),
            many(json!("2027-01-01T00:00:00Z")),
            json!(moment),
        ),
        conditional(
            "a time that is far too long",
            "time",
            json!({}),
            many(json!("09:00")),
            json!("1".repeat(ANSWER - 100)),
        ),
        conditional(
            "a number that is too long, in a list",
            "ranking",
            json!({"options": ["a"]}),
            many(json!({"eq": ["a"]})),
            format!("[{close}]"),
        ),
        conditional(
            "texts",
            "long_text",
            json!({}),
            many(json!("aaaaaaaaaaaaaaab")),
            json!("aaaaaaaaaaaaaaaa"),
        ),
        conditional(
            "one of many",
            "short_text",
            json!({}),
            vec![json!(vec!["aaab"; Limits::default().values])],
            json!("aaaa"),
        ),
        nested(),
    ]
}

/// Conditions nested as deep as JSON may be.
fn nested() -> Case {
    let test = json!({"a": 2});
    let deep = (0..2).fold(test, |test, _| json!({"not": {"any": [test, {"a": 3}]}}));
    let last = question("b", "rating", json!({"show_if": {"any": vec![deep; Limits::default().values / 3]}}));
    let questions = vec![question("a", "number", json!({})), last];
    Case { name: "nested", questions, answers: vec![("a".to_owned(), "1".to_owned())] }
}

/// Lists and matrices with many options.
fn choices() -> Vec<Case> {
    let options: Vec<_> = (0..500).map(|number| format!("{number:03}")).collect();
    let reversed: Vec<_> = options.iter().rev().collect();
    let long: Vec<_> = (0..500).map(|number| format!("{}{number:03}", "x".repeat(120))).collect();
    let row = |row: &String| (row.clone(), json!("499"));
    let grid: serde_json::Map<String, Value> = reversed.iter().map(|text| row(text)).collect();
    let several = |(place, row): (usize, &&String)| ((*row).clone(), json!(options[place..place + 10]));
    let lists: serde_json::Map<String, Value> = reversed.iter().take(490).enumerate().map(several).collect();
    let matrix = json!({"rows": options, "columns": options, "required_rows": true});
    let listed = json!({"rows": options, "columns": options, "required_rows": options});
    let multiple = json!({"rows": options, "columns": options, "multiple": true});
    vec![
        repeated(
            "300 choices of 500",
            300,
            "multiple_choice",
            &json!({"options": options}),
            &json!(reversed),
        ),
        repeated(
            "300 rankings of 500",
            300,
            "ranking",
            &json!({"options": options, "rank_all": true}),
            &json!(reversed),
        ),
        repeated(
            "15 choices of 500 long options",
            15,
            "multiple_choice",
            &json!({"options": long}),
            &json!(long),
        ),
        repeated("170 matrices of 500 rows", 170, "matrix", &matrix, &json!(grid)),
        repeated("170 matrices with 500 required rows", 170, "matrix", &listed, &json!(grid)),
        repeated("30 matrices of lists", 30, "matrix", &multiple, &json!(lists)),
    ]
}

/// A form with all kinds of cost: patterns, `includes`, tests and lists.
fn all_costs() -> Case {
    let options: Vec<_> = (0..500).map(|number| format!("{number:03}")).collect();
    let reversed: Vec<_> = options.iter().rev().collect();
    let lists = |count| {
        repeated("everything", count, "multiple_choice", &json!({"options": options}), &json!(reversed))
    };
    largest(20_000, |number| {
        let pattern = format!("(?:😀*😁*){{{number}}}z");
        let matches = vec![json!({"p": {"matches": pattern}}); 50];
        let part = format!("{}b", "a".repeat(1_000));
        let includes = vec![json!({"t": {"includes": part}}); Limits::default().includes];
        let tests = vec![json!({"n": 1}); Limits::default().values - Limits::default().includes];
        let mut case = lists(250);
        case.questions.extend([
            question("p", "short_text", json!({})),
            question("t", "long_text", json!({"max_length": ANSWER})),
            question("n", "number", json!({})),
            question("x", "rating", json!({"show_if": {"any": matches}})),
            question("y", "rating", json!({"show_if": {"any": includes}})),
            question("z", "rating", json!({"show_if": {"any": tests}})),
        ]);
        let more_answers = [("p", json!(mixed('😀', '😁'))), ("t", json!("a".repeat(ANSWER)))];
        case.answers.extend(more_answers.map(|(id, answer)| (id.to_owned(), answer.to_string())));
        case.answers.push(("n".to_owned(), format!("1.{}1", "0".repeat(387))));
        case
    })
}

/// Long texts, for each question type that parses them.
fn texts() -> Vec<Case> {
    let most = ANSWER - 100;
    let repeat = |text: &str| text.repeat(most / text.len());
    vec![
        repeated("long texts", 15, "long_text", &json!({"max_length": ANSWER}), &json!(repeat("ä"))),
        repeated(
            "long e-mail addresses",
            15,
            "email",
            &json!({}),
            &json!(format!("a@{}.example", repeat("a."))),
        ),
        repeated(
            "long addresses",
            15,
            "url",
            &json!({}),
            &json!(format!("https://a.example/{}", repeat("ä"))),
        ),
        repeated("long hosts", 15, "url", &json!({}), &json!(format!("https://{}.example", repeat("ä")))),
        repeated(
            "long hosts of many characters",
            15,
            "url",
            &json!({}),
            &json!(format!("https://{}", many_characters(most / 3))),
        ),
        repeated("long phone numbers", 15, "phone", &json!({}), &json!(format!("+49{}", repeat("1")))),
        repeated(
            "long phone numbers of a country",
            15,
            "phone",
            &json!({"default_country": "DE"}),
            &json!(repeat("1 ")),
        ),
        repeated("numbers in steps", 500, "number", &json!({"min": 0.1, "step": 0.3}), &json!(1e300)),
        repeated(
            "long dates",
            15,
            "datetime",
            &json!({}),
            &json!(format!("2026-01-01T00:00:00.{}Z", repeat("1"))),
        ),
    ]
}

/// `count` different characters.
fn many_characters(count: usize) -> String {
    ('\u{4e00}'..).take(count).collect()
}

/// Answers that are refused with very many errors.
fn refusals() -> Vec<Case> {
    let options: Vec<_> = (0..500)
        .map(
            |number| {
                if number < 10 { format!("{number}{}", "😀".repeat(299)) } else { format!("o{number}") }
            },
        )
        .collect();
    let unknown = |place: usize| (format!("{}{place}", "u".repeat(1_000)), "1".to_owned());
    vec![
        repeated(
            "wrong items, long options",
            100,
            "multiple_choice",
            &json!({"options": options}),
            &json!(vec!["x"; 500]),
        ),
        repeated(
            "far too many items",
            100,
            "multiple_choice",
            &json!({"options": options}),
            &json!(vec!["x"; 2_500]),
        ),
        repeated(
            "wrong choices, long options",
            100,
            "single_choice",
            &json!({"options": options}),
            &json!("x"),
        ),
        repeated("500 missing answers", 500, "rating", &json!({"required": true}), &json!("")),
        Case {
            name: "1000 unknown questions",
            questions: vec![question("a", "rating", json!({}))],
            answers: (0..1_000).map(unknown).collect(),
        },
    ]
}
