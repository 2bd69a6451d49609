//! Filters, search, time range and order of submission lists.

use crate::harness::prelude::*;

pub(super) fn path(form: &str) -> String {
    format!("/api/v1/forms/{form}/submissions")
}

/// Percent-encodes `text` for a query.
fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Writes `score.gte=4` as the parameter `filter[score][gte]=4`.
fn filter(text: &str) -> String {
    let (name, value) = text.split_once('=').unwrap();
    let name = name.replacen('.', "][", 1);
    format!("{}={}", encode(&format!("filter[{name}]")), encode(value))
}

/// The answers to `n` in a list of submissions.
fn numbers(list: &Value) -> Vec<i64> {
    let submissions = list["submissions"].as_array().unwrap();
    submissions.iter().map(|submission| submission["answers"]["n"].as_i64().unwrap()).collect()
}

/// The answers to `n` in the list of submissions, in ascending order, that match a query.
async fn found(server: &Server, form: &str, query: &str) -> Vec<i64> {
    numbers(&server.read(format!("{}?order=asc&{query}", path(form))).await)
}

/// Creates a form with every question type and a number `n`, and submissions with these answers, numbered from 0.
async fn create_answered_form(server: &Server, answers: &[Value]) -> String {
    let kinds = json!([
        {"id": "n", "type": "number", "title": "N"},
        {"id": "tale", "type": "long_text", "title": "T", "max_length": 1000},
        {"id": "epic", "type": "long_text", "title": "T"},
        {"id": "page", "type": "url", "title": "T"},
        {"id": "mail", "type": "email", "title": "T"},
        {"id": "count", "type": "number", "title": "T", "min": 0, "max": 10, "step": 0.5},
        {"id": "score", "type": "rating", "title": "T"},
        {"id": "yes", "type": "boolean", "title": "T"},
        {"id": "agree", "type": "consent", "title": "T"},
        {"id": "pick", "type": "single_choice", "title": "T", "options": ["red", "7"], "allow_other": true},
        {"id": "many", "type": "multiple_choice", "title": "T", "options": ["a", "b", "c,d"]},
        {"id": "more", "type": "multiple_choice", "title": "T", "options": ["a", "b"], "allow_other": true, "min_selected": 2},
        {"id": "rank", "type": "ranking", "title": "T", "options": ["a", "b"]},
        {"id": "grid", "type": "matrix", "title": "T", "rows": ["r"], "columns": ["c"]},
        {"id": "day", "type": "date", "title": "T"},
        {"id": "at", "type": "time", "title": "T"},
        {"id": "when", "type": "datetime", "title": "T"},
        {"id": "from", "type": "hidden"},
        {"id": "note", "type": "statement", "title": "T"},
    ]);
    let form = server.published_form(kinds).await;
    for (number, answers) in answers.iter().enumerate() {
        let mut answers = answers.clone();
        answers["n"] = json!(number);
        server.submit(&form, answers).await;
    }
    form
}

#[tokio::test]
async fn a_filter_reads_its_values_by_the_type_of_the_question() {
    let server = Server::start().await;
    let answers = [
        json!({}),
        json!({"tale": "Once upon a time", "mail": "ada@example.com", "count": 9.5, "score": 5, "yes": true, "agree": true}),
        json!({"tale": "once", "score": 4, "yes": false, "agree": false, "pick": "red", "many": ["b", "a"], "rank": ["b", "a"], "more": ["a", {"other": "blue"}]}),
        json!({"tale": "", "score": 1, "pick": {"other": "Once more"}, "many": ["c,d"], "more": ["a", "b"], "grid": {"r": "c"}, "count": 10}),
        json!({"day": "2026-11-20", "at": "09:00:00", "when": "2026-11-20T10:00:00+01:00", "from": "web", "pick": "7"}),
    ];
    let form = create_answered_form(&server, &answers).await;
    for (text, expected) in [
        ("score=4", &[2][..]),
        ("score.eq=4.0", &[2]),
        ("tale=once", &[2]),
        ("tale.matches=^[Oo]nce ", &[1]),
        ("tale.answered=false", &[0, 3, 4]),
        ("tale.gt=P", &[2]),
        ("mail.includes=@example.", &[1]),
        ("yes=yes", &[1]),
        ("agree=true", &[1]),
        ("agree.answered=false", &[0, 2, 3, 4]),
        ("pick=7", &[4]),
        ("pick.in=red,7", &[2, 4]),
        ("pick=Once more", &[3]),
        ("pick.ne=Once more", &[0, 1, 2, 4]),
        ("pick.in=red,Once more", &[2, 3]),
        (r#"pick={"other":"Once more"}"#, &[3]),
        ("pick=never said", &[]),
        ("pick.matches=e", &[2]),
        ("many.includes=a", &[2]),
        ("many.includes=c,d", &[3]),
        (r#"many.eq=["b","a"]"#, &[2]),
        ("more.includes=blue", &[2]),
        ("more.includes=a", &[2, 3]),
        ("more.includes=green", &[]),
        (r#"rank.ne=["b","a"]"#, &[0, 1, 3, 4]),
        (r#"grid={"r":"c"}"#, &[3]),
        ("at=09:00", &[4]),
        ("when=2026-11-20T09:00:00Z", &[4]),
        ("when.gte=2026-11-20T09:00:01Z", &[]),
        ("from=web", &[4]),
    ] {
        assert_eq!(found(&server, &form, &filter(text)).await, expected, "{text}");
    }
    // All filters must match, also several on one question.
    let all = ["score.gte=2", "score.lt=5", "yes.answered=true"].map(filter).join("&");
    assert_eq!(found(&server, &form, &all).await, [2]);
}

#[tokio::test]
async fn a_hidden_answer_is_compared_as_number_boolean_or_text() {
    let server = Server::start().await;
    let hidden = [json!("web"), json!(2), json!("2"), json!(1.5), json!("1.50"), json!(true), json!("true")];
    let answers: Vec<_> = hidden.into_iter().map(|from| json!({"from": from})).collect();
    let form = create_answered_form(&server, &answers).await;
    for (text, expected) in [
        ("from=2", &[1, 2][..]),
        ("from=2.0", &[1]),
        ("from=1.50", &[3, 4]),
        ("from=true", &[5, 6]),
        ("from=false", &[]),
        ("from.ne=2", &[0, 3, 4, 5, 6]),
        ("from.in=web,2,true", &[0, 1, 2, 5, 6]),
        ("from.lt=2", &[3, 4]),
        ("from.gte=2", &[0, 1, 2, 6]),
        ("from.matches=^2$", &[2]),
    ] {
        assert_eq!(found(&server, &form, &filter(text)).await, expected, "{text}");
    }
}

#[tokio::test]
async fn an_unsatisfiable_or_invalid_filter_is_refused_with_its_reason() {
    let server = Server::start().await;
    let form = create_answered_form(&server, &[]).await;
    let score = "this can never be true of `score`";
    let number = "a whole number from 1 to 5";
    let list = "`many` is a list, each one of a, b, \"c,d\", not";
    let includes = format!("{list} \"a\"; the operator `includes` tests one option");
    let both = format!("not \"z\"; `filter[score][eq]`: `score` is {number}, not 9");
    let filters = [
        ("nobody=4", "`filter[nobody]`: `nobody` is not a question of this form that takes an answer"),
        ("note=4", "`filter[note]`: `note` is not a question of this form that takes an answer"),
        ("score.near=4", "`filter[score][near]`: unknown operator `near`"),
        ("score=good", &format!("`score` is {number}, not \"good\"")),
        ("score=6", &format!("`score` is {number}, not 6")),
        ("score.gt=5", &format!("{score}: its answer is {number}, never > 5")),
        ("score.in=1,6", &format!("`filter[score][in]`: `score` is {number}, not")),
        ("score.includes=4", &format!("{score}: its answer is {number}")),
        ("score.matches=4", score),
        ("score.answered=yes", "`filter[score][answered]`: `answered` is true or false, not text"),
        ("score=", "`filter[score][eq]`: no answer is ever empty"),
        ("yes.gt=true", "only a number or text can be compared, not a boolean"),
        ("grid=c", "this can never be true of `grid`: Enter"),
        ("many=a", &includes),
        ("many.in=a,z", &includes),
        ("many=z", &format!("{list} \"z\"")),
        ("many.includes=z", "this can never be true of `many`: Choose one of a, b"),
        ("day.gt=soon", "`day` is a date like "),
        ("tale.matches=(", "`filter[tale][matches]`: invalid `matches`: unclosed group"),
        ("epic.matches=x", "`filter[epic][matches]`: `matches` needs answers of at most 1000 characters"),
        (r"page.matches=\w{50}", "`filter[page][matches]`: `matches` compiles to more than 256 KiB"),
        (&format!("page.matches={}", "x".repeat(1_001)), "more than 1000 characters"),
    ];
    let filters = filters.map(|(text, expected)| (filter(text), expected));
    let queries = [
        ("filter[]=1", "`filter[]`: not a valid filter; write `filter[question][operator]`"),
        ("filter[score][eq][x]=1", "`filter[score][eq][x]`: not a valid filter"),
        ("filter=1", "`filter`: unknown parameter"),
        ("filter[score]=1&filter[score][eq]=1", "`filter[score][eq]`: given more than once"),
        ("filter[many]=z&filter[score]=9", &both),
        ("trashed=true&q=x", "`q`: unknown parameter"),
        ("status=quarantined&q=x", "`q`: unknown parameter"),
        ("since=yesterday", "such as 2027-01-31T18:00:00Z, found `yesterday`"),
        (
            "since=2026-11-20T10:00:04%2B01:00&until=2026-11-20T09:00:03.999Z",
            "`since`: 2026-11-20T09:00:04.000Z is after 2026-11-20T09:00:03.999Z",
        ),
        ("status=spam", "`status`: expected `completed` or `quarantined`, found `spam`"),
        ("order=up", "`order`: expected `desc` or `asc`, found `up`"),
    ];
    let queries = queries.map(|(text, expected)| (text.to_owned(), expected));
    for (query, expected) in filters.into_iter().chain(queries) {
        let refused = server.get(format!("{}?{query}", path(&form))).send().await;
        refused.expect_problem(400, "invalid_query");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert_eq!(detail.matches(expected).count(), 1, "{query}: {detail}");
    }
}

#[tokio::test]
async fn filters_are_checked_against_the_form_only_if_the_query_is_well_formed() {
    let (server, form) = Server::with_form().await;
    let parameters = "since=2026&order=up&filter[q1]=a&filter[q1]=b&filter[]=x&limit=0&limit=1&nope=1&more=2";
    let filters = "filter[foo]=1&filter[bar]=1&filter[q3]=x&filter[q2][near]=1";
    let of_parameters = ["since", "order", "filter[q1][eq]", "filter[]", "limit", "nope", "more"];
    for (query, named) in [
        (parameters.to_owned(), &of_parameters[..]),
        (format!("{parameters}&{filters}"), &of_parameters),
        (filters.to_owned(), &["filter[bar]", "filter[foo]", "filter[q3][eq]", "filter[q2][near]"]),
        ("trashed=true&limit=x&q=1".to_owned(), &["limit", "q"]),
    ] {
        let refused = server.get(format!("{}?{query}", path(&form))).send().await;
        let detail = refused.expect(400)["detail"].as_str().unwrap().to_owned();
        assert!(named.iter().all(|name| detail.contains(&format!("`{name}`: "))), "{query}: {detail}");
        assert!(named.len() == of_parameters.len() || !detail.contains("`since`"), "{query}: {detail}");
        assert!(named.len() != of_parameters.len() || !detail.contains("filter[foo]"), "{query}: {detail}");
    }
}

#[tokio::test]
async fn a_filter_refers_to_questions_of_the_current_version() {
    let server = Server::start().await;
    let n = json!({"id": "n", "type": "number", "title": "N"});
    let questions_with = |kind: &str, id: &str| json!([n, {"id": "a", "type": kind, "title": "A"}, {"id": id, "type": "rating", "title": "S"}]);
    let form = server.published_form(questions_with("short_text", "score")).await;
    for (number, text) in ["5", "nine", "2027-01-01", "09:00"].into_iter().enumerate() {
        server.submit(&form, json!({"n": number, "a": text, "score": 5})).await;
    }
    let all = &[0, 1, 2, 3][..];
    for (kind, tests) in [
        ("date", &[("a.gt=2026-12-31", &[2][..]), ("a.lte=2027-01-01", &[2])][..]),
        ("time", &[("a.gte=08:00", &[3]), ("a=09:00:00", &[3])]),
        ("rating", &[("a=5", &[]), ("a.gte=1", &[]), ("a.ne=5", all), ("stars.answered=false", all)]),
    ] {
        let change = json!({"questions": questions_with(kind, "stars")});
        server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
        for (text, expected) in tests {
            assert_eq!(found(&server, &form, &filter(text)).await, *expected, "{kind} {text}");
        }
    }
    for (text, expected) in [
        (
            "score=5",
            r#"`score` is not a question of this form that takes an answer","allowed":["n","a","stars"]"#,
        ),
        ("a=nine", r#"`a` is a whole number from 1 to 5, not \"nine\""#),
    ] {
        let refused = server.get(format!("{}?{}", path(&form), filter(text))).send().await;
        refused.expect_problem(400, "invalid_query");
        assert!(refused.text().contains(expected), "{}", refused.text());
    }
}

#[tokio::test]
async fn a_filter_has_at_most_ten_tests_and_a_hundred_values() {
    let server = Server::start().await;
    let form = create_answered_form(&server, &[json!({"score": 3})]).await;
    let tests = |count: usize| {
        let operators = ["eq", "ne", "lt", "lte", "gt", "gte", "in", "includes", "matches", "answered"];
        let tests = ["from", "tale"]
            .into_iter()
            .flat_map(|id| operators.map(|operator| format!("{id}.{operator}=1")));
        let tests = tests.filter(|test| !test.starts_with("tale.matches") && !test.contains("answered"));
        tests.take(count).map(|test| filter(&test)).collect::<Vec<_>>().join("&")
    };
    let values = |count: usize| filter(&format!("count.in={}", vec!["1"; count].join(",")));
    for (query, refused) in [
        (tests(10), None),
        (tests(11), Some("the filter has 11 tests, 10 are allowed")),
        (values(100), None),
        (values(101), Some("the filter has 101 values, 100 are allowed")),
        (format!("{}&{}", values(91), tests(9)), None),
        (format!("{}&{}", values(92), tests(9)), Some("the filter has 101 values, 100 are allowed")),
    ] {
        let found = server.get(format!("{}?{query}", path(&form))).send().await;
        match refused {
            None => drop(found.expect(200)),
            Some(expected) => assert_eq!(found.expect(400)["detail"], format!("`filter`: {expected}")),
        }
    }
}

#[tokio::test]
async fn a_search_covers_all_text_answers_and_ignores_case() {
    let server = Server::start().await;
    let answers = [
        json!({"tale": "The ÉCLAIR was fine"}),
        json!({"pick": {"other": "eclair"}, "many": ["c,d"]}),
        json!({"grid": {"r": "c"}, "score": 5, "from": "a \"quoted\" word"}),
        json!({"tale": "line\nbreak \\ back"}),
    ];
    let form = create_answered_form(&server, &answers).await;
    for (text, expected) in [
        ("éclair", &[0][..]),
        ("ECLAIR", &[1]),
        ("c,D", &[1]),
        ("\"QUOTED\"", &[2]),
        ("e\nb", &[3]),
        ("\\ b", &[3]),
        (".", &[]),
        // Question ids and numbers are not searched.
        ("tale", &[]),
        ("5", &[]),
        ("", &[0, 1, 2, 3]),
    ] {
        assert_eq!(found(&server, &form, &format!("q={}", encode(text))).await, expected, "{text}");
    }
    // Unnecessary escapes in the sent JSON do not matter.
    let body = r#"{"answers":{"n":4,"tale":"\u00e9cla\u0069r"}}"#;
    server.post(path(&form), json!({})).body(body).send().await.expect(201);
    let query = format!("q={}&status=completed", encode("Éclair"));
    assert_eq!(found(&server, &form, &query).await, [0, 4]);
}

#[tokio::test]
async fn a_list_can_be_limited_to_a_time_range_in_either_order() {
    let server = Server::start().await;
    let form = create_answered_form(&server, &[]).await;
    for second in 0..6 {
        server.clock.set(&format!("2026-11-20T09:00:0{second}.500Z"));
        server.submit(&form, json!({"n": second})).await;
    }
    for (query, expected) in [
        ("since=2026-11-20T09:00:03.500Z", &[5, 4, 3][..]),
        ("since=2026-11-20T10:00:03.501%2B01:00", &[5, 4]),
        ("until=2026-11-20T09:00:02.500Z", &[1, 0]),
        ("until=2026-11-20T09:00:02.501Z&order=asc", &[0, 1, 2]),
        ("since=2026-11-20T09:00:01Z&until=2026-11-20T09:00:04Z&order=asc", &[1, 2, 3]),
        ("since=2026-11-20T09:00:04Z&until=2026-11-20T09:00:04Z", &[]),
        ("since=9999-12-31T23:59:59Z", &[]),
        ("since=0001-01-01T00:00:00Z&order=desc", &[5, 4, 3, 2, 1, 0]),
    ] {
        let list = server.get(format!("{}?count=true&{query}", path(&form))).send().await.expect(200);
        assert_eq!((numbers(&list), &list["total"]), (expected.to_vec(), &json!(expected.len())), "{query}");
    }
}

#[tokio::test]
async fn where_is_an_alternative_syntax_for_filters() {
    let server = Server::start().await;
    let answers = [json!({"score": 1}), json!({"score": 4, "tale": "a=b.c"}), json!({"score": 5})];
    let form = create_answered_form(&server, &answers).await;
    let list = |query: &str| server.get(format!("{}?{query}", path(&form))).send();
    for (query, expected) in [
        ("where=score.gte=4", vec![2, 1]),
        ("where=score=4", vec![1]),
        ("where=score.in=1,5&order=asc", vec![0, 2]),
        ("where=score.gte=4&where=score.lt=5", vec![1]),
        ("where=score.gte%3D4&filter[score][lt]=5", vec![1]),
        ("where=tale=a=b.c", vec![1]),
        ("where=tale.answered=false", vec![2, 0]),
    ] {
        assert_eq!(numbers(&list(query).await.expect(200)), expected, "{query}");
    }
    // The link to the next page keeps every filter.
    let first = list("where=score.gte=1&where=score.lt=5&limit=1").await;
    assert_eq!(numbers(&server.read(first.next_page().unwrap()).await), [0]);
    let expected = "`where`: expected a question, an operator and a value, such as score.gte=4, found";
    for (query, detail) in [
        ("where=score", &*format!("{expected} `score`")),
        ("where=.gte=4", &format!("{expected} `.gte=4`")),
        (&["where=score.gte=4"; 11].join("&"), "`where=score.gte`: given more than once"),
        ("where=score.gte=4&filter[score][gte]=4", "`filter[score][gte]`: given more than once"),
        ("where=score.gte=9", "`where=score.gte`: this can never be true"),
        ("where=score=9", "`where=score`: `score` is a whole number from 1 to 5, not 9"),
        ("where=nobody.gte=9", "`where=nobody.gte`: `nobody` is not a question"),
    ] {
        let refused = list(query).await;
        refused.expect_problem(400, "invalid_query");
        let found = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(found.contains(detail), "{found}");
        let count = |text: &str| text.matches("more than once").count();
        assert_eq!(count(&found), count(detail), "{query}");
    }
}
