//! Filters by what a form asked before: the answers of then are still stored.

use serde_json::{Value, json};

use super::filters::{filter, numbers, path};
use crate::harness::Server;

#[tokio::test]
async fn what_was_answered_once_is_found_whatever_the_form_asks_now() {
    let server = Server::start().await;
    let n = json!({"id": "n", "type": "number", "title": "N"});
    let colour =
        |options: Value| json!({"id": "colour", "type": "single_choice", "title": "C", "options": options});
    let form = server.published(json!([n, colour(json!(["red", "blue"]))])).await;
    let asks = async |questions: Value| {
        let change = json!({"questions": questions});
        server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    };
    server.submit(&form, json!({"n": 0, "colour": "red"})).await;
    let score = |id: &str| json!({"id": id, "type": "rating", "title": "S"});
    asks(json!([n, colour(json!(["blue", "green"])), score("score")])).await;
    server.submit(&form, json!({"n": 1, "colour": "green", "score": 5})).await;
    // The last version has a text where there was a choice, and another question in place of the score.
    asks(json!([n, {"id": "colour", "type": "number", "title": "C"}, score("stars")])).await;
    server.submit(&form, json!({"n": 2, "colour": 7, "stars": 5})).await;
    for (texts, expected) in [
        (&["colour=red"][..], &[0][..]),
        (&["colour.ne=red"], &[1, 2]),
        (&["colour=green"], &[1]),
        (&["colour.in=blue,green"], &[1]),
        (&["colour.gte=7"], &[2]),
        (&["score=5"], &[1]),
        (&["score.answered=false"], &[0, 2]),
        (&["score.gte=4", "colour=green", "stars.answered=false"], &[1]),
        (&["stars=5", "score=5"], &[]),
    ] {
        let filters: Vec<_> = texts.iter().map(|text| filter(text)).collect();
        let list = server.get(format!("{}?order=asc&count=true&{}", path(&form), filters.join("&"))).send();
        let list = list.await.expect(200);
        assert_eq!(
            (numbers(&list), &list["total"]),
            (expected.to_vec(), &json!(expected.len())),
            "{texts:?}"
        );
    }
    // What else is wrong is told, and nothing that would not be wrong without it.
    let refused = server.get(format!("{}?limit=0&{}", path(&form), filter("colour=red"))).send().await;
    assert_eq!(refused.expect(400)["detail"], "`limit` expects a number from 1 to 1000, got `0`");
    for (texts, told) in [
        (&["colour=black"][..], "this can never be true of `colour`: Enter a number"),
        (&["score=6"], "this can never be true of `score`: Enter a whole number from 1 to 5"),
        (&["score=5", "zz=1"], "`filter[zz]` names no question of this form that takes an answer"),
    ] {
        let filters: Vec<_> = texts.iter().map(|text| filter(text)).collect();
        let refused = server.get(format!("{}?{}", path(&form), filters.join("&"))).send().await;
        assert_eq!(refused.code(), "invalid_query", "{texts:?}");
        assert!(refused.text().contains(told), "{}", refused.text());
    }
}

#[tokio::test]
async fn texts_have_no_place_among_dates_and_times() {
    let server = Server::start().await;
    let n = json!({"id": "n", "type": "number", "title": "N"});
    let asking = |kind: &str| json!([n, {"id": "a", "type": kind, "title": "A"}]);
    let form = server.published(asking("short_text")).await;
    let texts = ["5", "nine", "never", "whenever", "2027-01-01", "09:00"];
    for (number, text) in texts.into_iter().enumerate() {
        server.submit(&form, json!({"n": number, "a": text})).await;
    }
    for kind in ["date", "time", "rating"] {
        let change = json!({"questions": asking(kind)});
        server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    }
    for (text, expected) in
        [("a.gt=2026-12-31", 4), ("a.lte=2027-01-01", 4), ("a.gte=08:00", 5), ("a.lt=23:59:59", 5)]
    {
        let list = server.get(format!("{}?{}", path(&form), filter(text))).send().await;
        assert_eq!(numbers(&list.expect(200)), [expected], "{text}");
    }
}

#[tokio::test]
async fn what_was_asked_is_remembered_however_much_was_asked_since() {
    let server = Server::start().await;
    let n = json!({"id": "n", "type": "number", "title": "N"});
    let form = server.published(json!([n])).await;
    // More bytes than are looked at in one turn, then more versions.
    let description = "x".repeat(10_000);
    let sizes = [[80; 6].as_slice(), &[0; 20]].concat();
    for (number, size) in sizes.iter().enumerate() {
        let score = json!({"id": format!("score{number}"), "type": "rating", "title": "S"});
        let other = json!({"type": "number", "title": "O", "description": description});
        let mut questions = vec![n.clone(), score];
        questions.extend(std::iter::repeat_n(other, *size));
        let change = json!({"questions": questions});
        server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
        server.submit(&form, json!({"n": number, format!("score{number}"): 5})).await;
    }
    for number in 0..sizes.len() {
        let wanted = filter(&format!("score{number}=5"));
        let list = server.get(format!("{}?{wanted}", path(&form))).send().await;
        assert_eq!(numbers(&list.expect(200)), [i64::try_from(number).unwrap()]);
    }
}

#[tokio::test]
async fn each_value_of_each_test_is_read_by_a_question_that_it_fits() {
    let server = Server::start().await;
    let n = json!({"id": "n", "type": "number", "title": "N"});
    let asking = |a: Value, colours: Value| {
        let colour = json!({"id": "colour", "type": "single_choice", "title": "C", "options": colours});
        let at = if a == "short_text" { "time" } else { "date" };
        json!([n, {"id": "a", "type": a, "title": "A"}, colour, {"id": "at", "type": at, "title": "T"}])
    };
    let form = server.published(asking(json!("short_text"), json!(["red"]))).await;
    server.submit(&form, json!({"n": 0, "a": "bye", "colour": "red", "at": "09:00:00"})).await;
    for (a, colours) in [("time", json!(["blue"])), ("number", json!(["green"]))] {
        let change = json!({"questions": asking(json!(a), colours)});
        server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    }
    server.submit(&form, json!({"n": 1, "a": 5, "colour": "green"})).await;
    for (texts, expected) in [
        (&["a.in=5,bye"][..], &[0, 1][..]),
        (&["a.in=bye,hello"], &[0]),
        (&["a.gte=4", "a.ne=hello"], &[1]),
        (&["a.ne=5"], &[0]),
        (&["a.includes=y", "a.lt=9"], &[]),
        (&["a.in=5,bye", "a.answered=true", "colour.in=red,blue,green"], &[0, 1]),
        (&["colour.in=red,green"], &[0, 1]),
        (&["colour.in=blue,red"], &[0]),
        (&["at.in=2026-01-01,09:00"], &[0]),
        // Each fits, and no answer is both.
        (&["a.gte=4", "a.lt=3"], &[]),
    ] {
        let filters: Vec<_> = texts.iter().map(|text| filter(text)).collect();
        let list = server.get(format!("{}?order=asc&{}", path(&form), filters.join("&"))).send().await;
        assert_eq!(numbers(&list.expect(200)), expected, "{texts:?}");
    }
    let query = ["colour.in=red,black,green", "zz=1", "a.near=1", "n=x"].map(filter).join("&");
    let refused = server.get(format!("{}?{query}", path(&form))).send().await;
    let detail = refused.expect(400)["detail"].as_str().unwrap().to_owned();
    assert_eq!(
        detail,
        "`filter[zz]` names no question of this form that takes an answer; there are n, a, colour, at; \
         `filter[a][near]`: unknown operator `near`; known are eq, ne, lt, lte, gt, gte, in, includes, matches, answered; \
         `filter[colour][in]`: this can never be true of `colour`: Choose one of green; \
         `filter[n][eq]`: this can never be true of `n`: Enter a number, not text"
    );
}
