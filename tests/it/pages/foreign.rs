//! Plain HTML forms of other sites, and pages embedded there.

use super::{open, post, public_form, stored};
use crate::harness::prelude::*;

const SITE: &str = "https://www.example.com";

fn questions() -> Value {
    json!([
        {"id": "name", "type": "short_text", "title": "Name", "required": true},
        {"id": "mail", "type": "email", "title": "Mail"},
    ])
}

async fn form(server: &Server) -> String {
    public_form(server, questions(), json!({"origins": [SITE, "http://localhost:4000"]})).await
}

#[tokio::test]
async fn a_form_of_a_listed_site_is_taken_without_a_token() {
    let server = Server::start().await;
    let form = form(&server).await;
    let path = format!("/f/{form}");
    let fields = [("name", "Ada"), ("mail", ""), ("_next", "/thanks"), ("_subject", "x"), ("submit", "Send")];
    for (header, value, status) in [
        ("origin", SITE, 303),
        ("referer", "https://www.example.com/contact?a=b", 303),
        ("origin", "http://localhost:4000", 303),
        ("origin", "https://evil.example", 422),
        ("origin", "null", 422),
        ("origin", "https://www.example.com.evil.example", 422),
        ("referer", "https://evil.example/https://www.example.com", 422),
        ("x-origin", SITE, 422),
    ] {
        let sent = post(&server, &path, &fields).header(header, value).send().await;
        assert_eq!(sent.status.as_u16(), status, "{header}: {value}");
    }
    assert_eq!(stored(&server, &form).await, vec![json!({"name": "Ada"}); 3]);
    // Without the list, nobody posts without a token.
    let closed = public_form(&server, questions(), json!({})).await;
    let sent = post(&server, format!("/f/{closed}"), &fields).header("origin", SITE).send().await;
    assert_eq!(sent.status, 422);
}

#[tokio::test]
async fn visitors_are_led_back_to_pages_of_listed_sites_only() {
    let server = Server::start().await;
    let form = form(&server).await;
    for (next, expected) in [
        ("/thanks?a=b", Some("https://www.example.com/thanks?a=b")),
        ("thanks.html", Some("https://www.example.com/thanks.html")),
        ("https://www.example.com/x", Some("https://www.example.com/x")),
        ("http://localhost:4000/x", Some("http://localhost:4000/x")),
        ("https://evil.example/", None),
        ("//evil.example/", None),
        ("/\\evil.example/", None),
        ("https://www.example.com@evil.example/", None),
        ("https:evil.example", Some("https://www.example.com/evil.example")),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("http://www.example.com/", None),
        ("https://www.example.com/\r\nSet-Cookie: a=b", Some("https://www.example.com/Set-Cookie:%20a=b")),
    ] {
        let sent =
            post(&server, format!("/f/{form}"), &[("name", "Ada"), ("_next", next)]).header("origin", SITE);
        let sent = sent.send().await;
        assert_eq!(sent.status, 303, "{next:?} {}", sent.text());
        let location = sent.header("location").unwrap();
        match expected {
            Some(expected) => assert_eq!(location, expected, "{next:?}"),
            None => assert!(location.starts_with(&format!("/f/{form}/done?r=")), "{next:?} {location}"),
        }
    }
}

#[tokio::test]
async fn errors_of_another_site_s_form_are_corrected_on_our_page() {
    let server = Server::start().await;
    let form = form(&server).await;
    let sent = post(&server, format!("/f/{form}"), &[("mail", "ada@"), ("_next", "/thanks")]);
    let refused = sent.header("origin", SITE).send().await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("value=\"ada@\""));
    let token = super::token(&refused);
    let fields = [("name", "Ada"), ("mail", "ada@example.com"), ("_t", token.as_str())];
    assert_eq!(post(&server, format!("/f/{form}"), &fields).send().await.status, 303);
    // Unknown fields follow the form's setting.
    let sent = post(&server, format!("/f/{form}"), &[("name", "Ada"), ("extra", "x")]).header("origin", SITE);
    let refused = sent.send().await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("`extra` is not a question of this form"), "{}", refused.text());
    let drop = json!({"settings": {"unknown_answers": "drop"}});
    server.patch(format!("{FORMS}/{form}"), drop).send().await.expect(200);
    let sent = post(&server, format!("/f/{form}"), &[("name", "Ada"), ("extra", "x")]).header("origin", SITE);
    assert_eq!(sent.send().await.status, 303);
}

#[tokio::test]
async fn multipart_forms_are_read_and_files_refused() {
    let server = Server::start().await;
    let form = form(&server).await;
    let part = |name: &str, rest: &str, text: &str| {
        format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"{rest}\r\n\r\n{text}\r\n")
    };
    let send = async |body: String, boundary: &str| {
        let call = server.call_without_key(Method::POST, format!("/f/{form}")).header("origin", SITE);
        call.header("content-type", &format!("multipart/form-data{boundary}")).body(body).send().await
    };
    let body = part("name", "", "Ada\r\nL") + &part("photo", "; filename=\"\"", "") + "--x--\r\n";
    let broken = send(body, "; boundary=x").await;
    // A line break is not allowed in a line of text; the point is that the name arrived.
    assert_eq!(broken.status, 422);
    assert!(broken.text().contains("Enter one line"), "{}", broken.text());
    let body = part("name", "", "Ada") + &part("photo", "; filename=\"\"", "") + "--x--\r\n";
    assert_eq!(send(body, "; boundary=x").await.status, 303);
    let body = part("name", "", "Ada") + &part("photo", "; filename=\"a.png\"", "PNG") + "--x--\r\n";
    let refused = send(body, "; boundary=x").await;
    assert_eq!(refused.status, 415);
    assert!(refused.text().contains("files are not accepted"));
    assert_eq!(send(part("name", "", "Ada"), "; boundary=x").await.status, 400);
    assert_eq!(send(String::new(), "").await.status, 422);
    let json = server.call_without_key(Method::POST, format!("/f/{form}")).json(json!({"answers": {}}));
    assert_eq!(json.send().await.status, 415);
    assert_eq!(stored(&server, &form).await, [json!({"name": "Ada"})]);
}

#[tokio::test]
async fn the_list_says_who_may_embed_the_page() {
    let server = Server::start().await;
    let listed = form(&server).await;
    let open_to_all = public_form(&server, questions(), json!({})).await;
    for (form, ancestors) in [
        (listed, "frame-ancestors 'self' https://www.example.com http://localhost:4000"),
        (open_to_all, "frame-ancestors *"),
    ] {
        for path in [format!("/f/{form}?_embed"), format!("/f/{form}/done?_embed")] {
            let page = open(&server, path).await;
            let policy = page.header("content-security-policy").unwrap();
            assert!(policy.ends_with(ancestors), "{policy}");
            assert!(page.headers.get("x-frame-options").is_none());
        }
    }
    let unknown = open(&server, "/f/nothing").await;
    assert!(unknown.header("content-security-policy").unwrap().ends_with("frame-ancestors 'none'"));
}
