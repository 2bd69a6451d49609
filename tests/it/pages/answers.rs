//! What is typed on a page becomes the answers that the API would get.

use super::{answer, open, public_form, stored};
use crate::harness::prelude::*;

/// A question of each kind that takes an answer.
pub(super) fn every_kind() -> Value {
    json!([
        {"id": "name", "type": "short_text", "title": "Name", "required": true},
        {"id": "story", "type": "long_text", "title": "Story"},
        {"id": "mail", "type": "email", "title": "Mail"},
        {"id": "site", "type": "url", "title": "Site"},
        {"id": "phone", "type": "phone", "title": "Phone"},
        {"id": "count", "type": "number", "title": "Count"},
        {"id": "stars", "type": "rating", "title": "Stars"},
        {"id": "nps", "type": "opinion_scale", "title": "Recommend?"},
        {"id": "first", "type": "boolean", "title": "First time?"},
        {"id": "terms", "type": "consent", "title": "Terms"},
        {"id": "track", "type": "single_choice", "title": "Track", "options": ["Web", {"value": "sys", "label": "Systems"}], "allow_other": true},
        {"id": "land", "type": "single_choice", "title": "Country", "options": ["DE", "FR"], "display": "dropdown"},
        {"id": "food", "type": "multiple_choice", "title": "Food", "options": ["a", "b", "c"], "allow_other": true},
        {"id": "order", "type": "ranking", "title": "Order", "options": ["x", "y", "z"]},
        {"id": "grid", "type": "matrix", "title": "Grid", "rows": ["r1", "r2"], "columns": ["good", "bad"]},
        {"id": "many", "type": "matrix", "title": "Many", "rows": ["r1", "r2"], "columns": ["good", "bad"], "multiple": true},
        {"id": "day", "type": "date", "title": "Day"},
        {"id": "hour", "type": "time", "title": "Hour"},
        {"id": "moment", "type": "datetime", "title": "Moment"},
        {"id": "source", "type": "hidden", "from_url": "utm_source"},
    ])
}

#[tokio::test]
async fn every_kind_of_answer_is_stored_as_the_api_stores_it() {
    let server = Server::start().await;
    let form = public_form(&server, every_kind(), json!({})).await;
    let fields = [
        ("name", " Ada "),
        ("story", "one\r\ntwo\r\n"),
        ("mail", " ada@example.com "),
        ("site", "example.com/a"),
        ("phone", "+49 30 901820"),
        ("count", "1,234.50"),
        ("stars", "4"),
        ("nps", "0"),
        ("first", "false"),
        ("terms", "true"),
        ("track", ""),
        ("track.other", "Embedded"),
        ("land", "FR"),
        ("food", "c"),
        ("food", "a"),
        ("food.other", "fish"),
        ("order", "z"),
        ("order", ""),
        ("order", "x"),
        ("grid.r2", "bad"),
        ("many.r1", "good"),
        ("many.r1", "bad"),
        ("day", "2026-12-24"),
        ("hour", "09:30"),
        ("moment", "2026-12-24T18:00"),
        ("moment.offset", "+01:00"),
        ("source", "newsletter"),
    ];
    let sent = answer(&server, &form, &fields).await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let expected = json!({
        "name": " Ada ", "story": "one\ntwo\n", "mail": "ada@example.com", "site": "https://example.com/a",
        "phone": "+49 30 901820", "count": 1234.50, "stars": 4, "nps": 0, "first": false, "terms": true,
        "track": {"other": "Embedded"}, "land": "FR", "food": ["c", "a", {"other": "fish"}], "order": ["z", "x"],
        "grid": {"r2": "bad"}, "many": {"r1": ["good", "bad"]}, "day": "2026-12-24", "hour": "09:30",
        "moment": "2026-12-24T18:00:00+01:00", "source": "newsletter",
    });
    assert_eq!(stored(&server, &form).await, std::slice::from_ref(&expected));
    // The same answers through the API are the same bytes.
    let list = server.get(format!("{FORMS}/{form}/submissions")).send().await;
    let text = |list: &TestResponse| {
        list.text().split("\"answers\":").nth(1).unwrap().split("},\"").next().unwrap().to_owned()
    };
    let page = text(&list);
    let (_, rest) = list.text().split_once("\"answers\":").unwrap();
    let mut raw = serde_json::Deserializer::from_str(rest).into_iter::<Box<serde_json::value::RawValue>>();
    let raw = raw.next().unwrap().unwrap().to_string();
    let api = server.call(Method::POST, format!("{FORMS}/{form}/submissions"));
    let sent = api.header("content-type", "application/json").body(format!("{{\"answers\":{raw}}}"));
    sent.send().await.expect(201);
    let list = server.get(format!("{FORMS}/{form}/submissions")).send().await;
    assert_eq!(text(&list), page);
}

#[tokio::test]
async fn empty_answers_are_left_out_and_without_javascript_times_are_in_utc() {
    let server = Server::start().await;
    let form = public_form(&server, every_kind(), json!({})).await;
    let fields = [
        ("name", "Ada"),
        ("story", " \r\n"),
        ("count", ""),
        ("track", "sys"),
        ("track.other", "ignored: an option is chosen"),
        ("land", ""),
        ("order", ""),
        ("moment", "2026-12-24T18:00"),
        ("submit", "Send"),
    ];
    assert_eq!(answer(&server, &form, &fields).await.status, 303);
    let expected = json!({"name": "Ada", "track": "sys", "moment": "2026-12-24T18:00:00Z"});
    assert_eq!(stored(&server, &form).await, [expected]);
}

#[tokio::test]
async fn numbers_are_read_as_people_of_the_language_write_them() {
    let server = Server::start().await;
    let questions = json!([{"id": "n", "type": "number", "title": "N"}]);
    for (language, cases) in [
        (
            "en",
            vec![
                ("1,000", json!(1000)),
                ("1,000.5", json!(1000.5)),
                ("1.000", json!(1.000)),
                ("1,5", json!(1.5)),
                ("1.000,5", json!(1000.5)),
                ("1,000,000", json!(1_000_000)),
                ("0,500", json!(0.500)),
                (".5", json!(0.5)),
                ("007", json!(7)),
                ("+3", json!(3)),
                ("\u{2212}3", json!(-3)),
                ("1 000", json!(1000)),
                ("1'000", json!(1000)),
            ],
        ),
        (
            "de",
            vec![
                ("1.000", json!(1000)),
                ("1.000,5", json!(1000.5)),
                ("1,000", json!(1.0)),
                ("2.5", json!(2.5)),
            ],
        ),
        ("ar", vec![("٣٫٥", json!(3.5)), ("١٬٠٠٠", json!(1000))]),
        ("ja", vec![("１２", json!(12))]),
    ] {
        let form = public_form(&server, questions.clone(), json!({"language": language})).await;
        for (typed, expected) in cases {
            let sent = answer(&server, &form, &[("n", typed)]).await;
            assert_eq!(sent.status, 303, "{language} {typed} {}", sent.text());
            let found = stored(&server, &form).await.pop().unwrap();
            assert_eq!(found["n"].as_f64(), expected.as_f64(), "{language} {typed}");
        }
        for unclear in [
            "1,2,3.4.5",
            "12.05.2026",
            "1.5.2",
            "1..5",
            "1,5,",
            "1.000.00",
            "1,000,00",
            "1,2.5x",
            "5'11",
            "5 11",
            "555 1234",
            "2,3,4",
            "192.168.1.1",
            "1,5e3",
            "+-5",
            "--5",
            "1_000",
            "5.",
            "٣x",
        ] {
            let refused = answer(&server, &form, &[("n", unclear)]).await;
            assert_eq!(refused.status, 422, "{language} {unclear}");
            assert!(
                refused.text().contains(&format!("value=\"{}\"", unclear.replace('\'', "&#39;"))),
                "{unclear}"
            );
        }
    }
}

#[tokio::test]
async fn errors_are_summarised_in_the_order_of_the_questions_and_every_answer_is_kept() {
    let server = Server::start().await;
    let form = public_form(&server, every_kind(), json!({})).await;
    let fields = [
        ("mail", "ada@"),
        ("count", "many"),
        ("food", "b"),
        ("track.other", "Embedded"),
        ("story", "<b>\r\nkept"),
        ("grid.r2", "bad"),
        ("day", "2026-13-99"),
    ];
    let refused = answer(&server, &form, &fields).await;
    assert_eq!(refused.status, 422);
    let page = refused.text();
    assert!(page.contains("<title>Error: Visit</title>"), "{page}");
    let anchors: Vec<_> =
        page.split("<li><a href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(anchors, ["name", "mail", "count", "day"]);
    for kept in [
        "value=\"ada@\"",
        "value=\"many\"",
        "value=\"b\" checked",
        "value=\"Embedded\"",
        "&#60;b&#62;\nkept</textarea>",
        "name=\"grid.r2\" value=\"bad\" aria-labelledby=\"grid-r1 grid-c1\" checked",
        "value=\"2026-13-99\"",
        "aria-describedby=\"mail-e\" aria-invalid=\"true\"",
        "id=\"mail-e\"",
    ] {
        assert!(page.contains(kept), "{kept}: {page}");
    }
    assert_eq!(stored(&server, &form).await, Vec::<Value>::new());
}

#[tokio::test]
async fn the_address_fills_in_what_is_valid() {
    let server = Server::start().await;
    let form = public_form(&server, every_kind(), json!({})).await;
    let query = "name=Ada+L&count=many&track=Systems&food=a&food=c&stars=9&nps=7&order=y&utm_source=mail&source=no&unknown=x";
    let page = open(&server, format!("/f/{form}?{query}")).await;
    let page = page.text();
    for filled in [
        "value=\"Ada L\"",
        "value=\"sys\" checked",
        "value=\"a\" checked",
        "value=\"c\" checked",
        "name=\"nps\" value=\"7\" checked",
        "<option value=\"y\" selected>",
        "<input type=\"hidden\" name=\"source\" value=\"mail\"",
    ] {
        assert!(page.contains(filled), "{filled}: {page}");
    }
    for ignored in
        ["value=\"many\"", "unknown", "name=\"stars\" value=\"9\"", "value=\"b\" checked", "value=\"no\""]
    {
        assert!(!page.contains(ignored), "{ignored}: {page}");
    }
    let long = open(&server, format!("/f/{form}?utm_source={}", "x".repeat(600))).await;
    assert!(long.text().contains(&format!("value=\"{}\"", "x".repeat(500))));
}

#[tokio::test]
async fn only_visitors_agree_the_last_value_counts_and_text_is_utf_8() {
    let server = Server::start().await;
    let form = public_form(&server, every_kind(), json!({})).await;
    let page = open(&server, format!("/f/{form}?terms=true&first=true")).await;
    let (_, terms) = page.text().split_once("name=\"terms\" value=\"true\"").unwrap();
    assert!(!terms.split('>').next().unwrap().contains("checked"), "{terms}");
    // A hidden field for "no" comes before its checkbox, which has no value of its own.
    let fields = [("name", "Ada"), ("first", "false"), ("first", "on")];
    assert_eq!(answer(&server, &form, &fields).await.status, 303);
    assert_eq!(stored(&server, &form).await, [json!({"name": "Ada", "first": true})]);
    let latin = server.call_without_key(Method::POST, format!("/f/{form}")).body("name=M%FCller");
    let refused = latin.header("content-type", "application/x-www-form-urlencoded").send().await;
    assert!(refused.status == 415 && refused.text().contains("UTF-8"), "{}", refused.text());
}

#[tokio::test]
async fn a_page_of_other_questions_than_now_is_shown_again() {
    let server = Server::start().await;
    let grid = |rows: &[&str]| json!([{"id": "g", "type": "matrix", "title": "G", "rows": rows, "columns": ["good", "bad"]}]);
    let form = public_form(&server, grid(&["food", "staff"]), json!({})).await;
    let token = super::token(&open(&server, format!("/f/{form}")).await);
    let changed = json!({"questions": grid(&["price", "food", "staff"])});
    server.patch(format!("{FORMS}/{form}"), changed).send().await.expect(200);
    let fields = [("g.food", "good"), ("_t", token.as_str())];
    let again = super::post(&server, format!("/f/{form}"), &fields).send().await;
    assert!(
        again.status == 422 && again.text().contains("name=\"g.food\" value=\"good\""),
        "{}",
        again.text()
    );
    assert!(again.text().contains("Check your answers, then send them again."));
    assert_eq!(stored(&server, &form).await, Vec::<Value>::new());
}
