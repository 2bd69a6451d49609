//! What visitors may see and do, and how often.

use super::{answer, open, post, public_form, stored, token};
use crate::harness::prelude::*;

fn one_question() -> Value {
    json!([{"id": "name", "type": "short_text", "title": "Name", "required": true}])
}

#[tokio::test]
async fn a_visitor_sees_public_and_published_forms_by_id_and_by_slug() {
    let server = Server::start().await;
    let form = public_form(&server, one_question(), json!({})).await;
    server.patch(format!("{FORMS}/{form}"), json!({"slug": "visit"})).send().await.expect(200);
    for name in [&*form, "visit"] {
        let page = open(&server, format!("/f/{name}")).await;
        assert_eq!(
            (page.status.as_u16(), page.header("content-type")),
            (200, Some("text/html; charset=utf-8"))
        );
        assert_eq!(page.header("cache-control"), Some("private, no-cache"));
        assert!(page.text().contains(&format!("action=\"{name}\"")));
    }
    let private = server.published_form(one_question()).await;
    let draft = server
        .create(FORMS, json!({"title": "A", "questions": one_question(), "settings": {"public": true}}))
        .await;
    for hidden in [&*private, &draft, "nothing", "frm_000000000000", "%00", "..%2f"] {
        for response in [
            open(&server, format!("/f/{hidden}")).await,
            post(&server, format!("/f/{hidden}"), &[]).send().await,
        ] {
            assert_eq!(response.status, 404, "{hidden}");
            assert!(response.text().contains("<h1>Page not found</h1>"), "{}", response.text());
        }
    }
    server.remove(format!("{FORMS}/{form}")).await;
    assert_eq!(open(&server, "/f/visit").await.status, 404);
}

#[tokio::test]
async fn slugs_are_those_of_the_first_workspace() {
    let server = Server::start().await;
    let other = server.other_workspace().await;
    let form =
        json!({"title": "Other", "slug": "visit", "questions": one_question(), "settings": {"public": true}});
    let made = server.post(FORMS, form).key(&other).send().await.expect(201);
    let id = made["id"].as_str().unwrap().to_owned();
    server
        .patch(format!("{FORMS}/{id}"), json!({"status": "published"}))
        .key(&other)
        .send()
        .await
        .expect(200);
    assert_eq!(open(&server, "/f/visit").await.status, 404);
    assert_eq!(open(&server, format!("/f/{id}")).await.status, 200);
    let links = server.get(format!("{FORMS}/{id}/page")).key(&other).send().await.expect(200);
    assert_eq!(links["url"], format!("/f/{id}"));
    assert_eq!(answer(&server, &id, &[("name", "Ada")]).await.status, 303);
}

#[tokio::test]
async fn answers_sent_twice_from_one_page_are_stored_once() {
    let server = Server::start().await;
    let form = public_form(&server, one_question(), json!({"max_responses": 2})).await;
    let path = format!("/f/{form}");
    let token = token(&open(&server, &path).await);
    let fields = [("name", "Ada"), ("_t", &token)];
    let first = post(&server, &path, &fields).send().await;
    let location = first.header("location").unwrap().to_owned();
    assert_eq!(
        (first.status.as_u16(), &location[..location.len() - 26]),
        (303, &*format!("/f/{form}/done?r=sub_"))
    );
    let again = post(&server, &path, &fields).send().await;
    assert_eq!((again.status.as_u16(), again.header("location")), (303, Some(&*location)));
    assert_eq!(stored(&server, &form).await.len(), 1);
    // Other answers from the same page are not lost: they can be sent as another submission.
    let changed = post(&server, &path, &[("name", "Ada L"), ("_t", &token)]).send().await;
    assert_eq!(changed.status, 422);
    assert!(changed.text().contains("You already sent this") && changed.text().contains("value=\"Ada L\""));
    let token = super::token(&changed);
    assert_eq!(post(&server, &path, &[("name", "Ada L"), ("_t", &token)]).send().await.status, 303);
    assert_eq!(stored(&server, &form).await.len(), 2);
    // The form is full now, and the first page sent once more still leads to its confirmation.
    let again = post(&server, &path, &fields).send().await;
    assert_eq!((again.status.as_u16(), again.header("location")), (303, Some(&*location)));
    let done = open(&server, &location).await;
    assert_eq!(done.status, 200);
    assert!(done.text().contains("<h1>Thank you</h1>") && done.text().contains("sub_"), "{}", done.text());
}

#[tokio::test]
async fn a_page_is_sent_back_with_its_own_token_within_a_day() {
    let server = Server::start().await;
    let form = public_form(&server, one_question(), json!({})).await;
    let other = public_form(&server, one_question(), json!({})).await;
    let path = format!("/f/{form}");
    let foreign = token(&open(&server, format!("/f/{other}")).await);
    let own = token(&open(&server, &path).await);
    let forged = format!("A{}", &own[1..]);
    server.clock.advance(24 * 3_600_000);
    for token in ["", "x", &foreign, &forged, &own] {
        let refused = post(&server, &path, &[("name", "Ada"), ("_t", token)]).send().await;
        assert_eq!(refused.status, 422, "{token}");
        assert!(
            refused.text().contains("Check your answers, then send them")
                && refused.text().contains("value=\"Ada\"")
        );
        let fresh = super::token(&refused);
        assert_eq!(post(&server, &path, &[("name", "Ada"), ("_t", &fresh)]).send().await.status, 303);
    }
    assert_eq!(stored(&server, &form).await.len(), 5);
}

#[tokio::test]
async fn a_draft_is_previewed_by_a_signed_link_and_nothing_is_stored() {
    let server = Server::start().await;
    let form = server.draft_form(one_question()).await;
    let links = server.read(format!("{FORMS}/{form}/page")).await;
    let preview = links["preview_url"].as_str().unwrap();
    let page = open(&server, preview).await;
    assert!(page.text().contains("Preview: answers are checked, but not saved."), "{}", page.text());
    let token = token(&page);
    let refused = post(&server, preview, &[("_t", &token)]).send().await;
    assert_eq!(refused.status, 422);
    let taken = post(&server, preview, &[("name", "Ada"), ("_t", &token)]).send().await;
    assert_eq!(taken.status, 200);
    assert!(taken.text().contains("These answers would be accepted."));
    assert_eq!(stored(&server, &form).await.len(), 0);
    let other = server.draft_form(one_question()).await;
    let (_, signature) = preview.split_once('?').unwrap();
    assert_eq!(open(&server, format!("/f/{other}?{signature}")).await.status, 404);
    server.clock.advance(24 * 3_600_000);
    assert_eq!(open(&server, preview).await.status, 404);
}

#[tokio::test]
async fn an_address_that_sends_too_much_has_to_wait_and_keeps_its_answers() {
    let settings = HttpSettings { page_rate: Some("2/min".parse().unwrap()), ..HttpSettings::default() };
    let server = Server::with_settings(settings).await;
    let form = public_form(&server, one_question(), json!({})).await;
    let path = format!("/f/{form}");
    let send = async |address: &str, name: &str| {
        let token = token(&open(&server, &path).await);
        post(&server, &path, &[("name", name), ("_t", &token)]).with_client_address(address).send().await
    };
    for name in ["one", "two"] {
        assert_eq!(send("192.0.2.1", name).await.status, 303);
    }
    let refused = send("192.0.2.1", "three").await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, Some("60")));
    assert!(refused.text().contains("Wait 60 seconds") && refused.text().contains("value=\"three\""));
    assert_eq!(send("192.0.2.2", "four").await.status, 303);
    server.clock.advance(60_000);
    assert_eq!(send("192.0.2.1", "five").await.status, 303);
}

#[tokio::test]
async fn a_visitor_without_a_key_has_no_other_operation() {
    let server = Server::start().await;
    let form = public_form(&server, one_question(), json!({})).await;
    for path in ["", "/submissions", "/page", "/schema"] {
        let response = open(&server, format!("{FORMS}/{form}{path}")).await;
        response.expect_problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn what_looks_like_spam_is_kept_in_quarantine_and_not_dropped() {
    let server = Server::start().await;
    let form = public_form(&server, one_question(), json!({})).await;
    let links = "https://a.b https://a.b https://a.b https://a.b";
    let path = format!("/f/{form}");
    let token = async || token(&open(&server, &path).await);
    // A trap that people do not see, and too fast with many links; links alone, or haste alone, are no spam.
    let trapped = answer(&server, &form, &[("name", "one"), ("_hp", "x")]).await;
    let hasty = post(&server, &path, &[("name", links), ("_t", &token().await)]).send().await;
    for response in [&trapped, &hasty] {
        assert_eq!(response.status, 303);
        let done = open(&server, response.header("location").unwrap()).await;
        assert!(done.text().contains("<h1>Thank you</h1>"));
    }
    assert_eq!(stored(&server, &form).await, Vec::<Value>::new());
    answer(&server, &form, &[("name", links)]).await;
    post(&server, &path, &[("name", "two"), ("_t", &token().await)]).send().await;
    assert_eq!(stored(&server, &form).await.len(), 2);
    let submissions = format!("{FORMS}/{form}/submissions");
    let spam = server.read(format!("{submissions}?status=quarantined")).await;
    let spam = spam["submissions"].as_array().unwrap();
    let names: Vec<_> = spam.iter().map(|one| one["answers"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, [links, "one"]);
    let id = spam[1]["id"].as_str().unwrap();
    let released = server.call(Method::POST, format!("{submissions}/{id}/release")).send().await.expect(200);
    assert_eq!(released["status"], "completed");
    assert_eq!(server.read(format!("{FORMS}/{form}")).await["response_count"], 3);
}
