//! The OpenAPI document: its examples match real requests and responses, and its question schemas match the server.

use std::collections::BTreeSet;

use forms::domain::integration::event::EventType;
use forms::domain::question::QuestionKind;

use crate::harness::document::{convert, resolve};
use crate::harness::prelude::*;
use crate::questions::json_schema::accepts_within;

async fn document() -> (Server, Value) {
    let server = Server::start().await;
    let whole = server.call_without_key(Method::GET, "/api/v1/openapi.json").send().await.expect(200);
    (server, whole)
}

/// Operations with their ids.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    operations.map(|operation| (operation["operationId"].as_str().unwrap(), operation))
}

fn operation<'a>(document: &'a Value, id: &str) -> &'a Value {
    operations(document).find(|(found, _)| *found == id).unwrap().1
}

/// The request example of an operation.
fn request(document: &Value, id: &str) -> Value {
    let content = operation(document, id)["requestBody"]["content"].as_object().unwrap();
    let examples: Vec<_> = content.values().map(|content| &content["example"]).collect();
    assert!(examples.iter().all(|example| *example == examples[0]), "{id}");
    examples[0].clone()
}

/// Replaces ids in `text`, except those of zeros.
fn without_ids(text: &str) -> String {
    let id = "(frm_|sub_|int_|dlv_|evt_|ws_|key_|fk_)[0-9A-Za-z]+|(whsec_)[0-9A-Za-z+/=]+|(…)[0-9A-Za-z+/=]{4}|(_preview=)[0-9A-Za-z_-]+";
    let id = regex::Regex::new(id).unwrap();
    let zeros = regex::Regex::new("_0{10,}").unwrap();
    id.replace_all(&zeros.replace_all(text, "-ZEROS"), "${1}${2}${3}${4}x").into_owned()
}

/// Compares a response with the example of its operation and status.
#[track_caller]
fn assert_matches_example(document: &Value, id: &str, response: &TestResponse) {
    let status = response.status.as_u16().to_string();
    let content = operation(document, id)["responses"][&status]["content"].as_object().unwrap();
    let example = &content.values().next().unwrap()["example"];
    let found = match example {
        Value::String(_) => json!(response.text()),
        _ => response.json(),
    };
    assert_eq!(without_ids(&found.to_string()), without_ids(&example.to_string()), "{id} {status}");
}

/// Checks the operations on integrations and deliveries.
async fn check_integrations(
    server: &Server,
    whole: &Value,
    form: &str,
    check: &mut impl FnMut(&'static str, &TestResponse),
) {
    let path = format!("{form}/integrations");
    check("create_integration", &server.post(&path, request(whole, "create_integration")).send().await);
    let one = format!("{path}/webhook");
    check("update_integration", &server.patch(&one, request(whole, "update_integration")).send().await);
    check("get_integration", &server.get(&one).send().await);
    check("list_integrations", &server.get(&path).send().await);
    check("test_integration", &server.call(Method::POST, format!("{one}/test")).send().await);
    let rotate = format!("{one}/rotate-secret");
    check("rotate_secret", &server.post(rotate, request(whole, "rotate_secret")).send().await);
    let answers = request(whole, "create_submission");
    server.post(format!("{form}/submissions"), answers).send().await.expect(201);
    server.sender.fail_with(Some(404));
    server.deliver().await;
    let list = server.get("/api/v1/deliveries").send().await;
    check("list_deliveries", &list);
    check("get_delivery_stats", &server.get("/api/v1/deliveries/stats").send().await);
    let delivery = format!("/api/v1/deliveries/{}", list.json()["deliveries"][0]["id"].as_str().unwrap());
    check("get_delivery", &server.get(&delivery).send().await);
    check("list_attempts", &server.get(format!("{delivery}/attempts")).send().await);
    check("get_delivery_event", &server.get(format!("{delivery}/event")).send().await);
    let again = server.post("/api/v1/deliveries:redeliver", request(whole, "redeliver_all"));
    check("redeliver_all", &again.send().await);
    check("redeliver", &server.call(Method::POST, format!("{delivery}/redeliver")).send().await);
    let waiting = server.post("/api/v1/deliveries:cancel", request(whole, "cancel_deliveries"));
    check("cancel_deliveries", &waiting.send().await);
    check("cancel_delivery", &server.call(Method::POST, format!("{delivery}/cancel")).send().await);
}

#[tokio::test]
async fn the_examples_match_requests_and_responses() {
    let (server, whole) = document().await;
    let mut seen = BTreeSet::new();
    let mut check = |id: &'static str, response: &TestResponse| {
        assert_matches_example(&whole, id, response);
        seen.insert((id, response.status.as_u16()));
    };
    let forms = "/api/v1/forms";
    let definition = request(&whole, "create_form");
    check("create_form", &server.post("/api/v1/forms?dry_run=true", definition.clone()).send().await);
    let made = server.post(forms, definition).send().await;
    check("create_form", &made);
    let form = format!("{forms}/{}", made.json()["id"].as_str().unwrap());
    check("update_form", &server.patch(&form, request(&whole, "update_form")).send().await);
    let answers = request(&whole, "create_submission");
    let submissions = format!("{form}/submissions");
    let dry_run = format!("{submissions}?dry_run=true");
    check("create_submission", &server.post(dry_run, answers.clone()).send().await);
    let made = server.post(&submissions, answers).send().await;
    check("create_submission", &made);
    let submission = format!("{submissions}/{}", made.json()["id"].as_str().unwrap());
    check("edit_submission", &server.patch(&submission, request(&whole, "edit_submission")).send().await);
    check("get_submission", &server.get(&submission).send().await);
    check("list_submissions", &server.get(&submissions).send().await);
    check("list_submission_history", &server.get(format!("{submission}/history")).send().await);
    check("list_forms", &server.get(forms).send().await);
    check("get_form", &server.get(&form).send().await);
    let parts = [("list_versions", "versions"), ("get_page_links", "page"), ("get_summary", "summary")];
    for (id, part) in parts.into_iter().chain([("get_schema", "schema"), ("get_version", "versions/1")]) {
        check(id, &server.get(format!("{form}/{part}")).send().await);
    }
    for (id, path) in [("restore_submission", &submission), ("restore_form", &form)] {
        server.delete(path).send().await;
        check(id, &server.call(Method::POST, format!("{path}/restore")).send().await);
    }
    let form_id = form.rsplit('/').next().unwrap();
    let quarantined = server.quarantine(form_id, r#"{"q1":"Ada","score":4}"#).await;
    let release = format!("{submissions}/{quarantined}/release");
    check("release_submission", &server.call(Method::POST, release).send().await);
    check_integrations(&server, &whole, &form, &mut check).await;
    server.clock.set("2026-11-20T09:05:00Z");
    server.patch(&form, json!({"slug": "customer-feedback"})).send().await.expect(200);
    let made = server.post("/api/v1/keys", request(&whole, "create_key")).send().await;
    check("create_key", &made);
    check("list_keys", &server.get("/api/v1/keys").send().await);
    let rotate = format!("/api/v1/keys/{}/rotate", made.json()["id"].as_str().unwrap());
    check("rotate_key", &server.post(rotate, request(&whole, "rotate_key")).send().await);
    check(
        "create_workspace",
        &server.post("/api/v1/workspaces", request(&whole, "create_workspace")).send().await,
    );
    check("list_workspaces", &server.get("/api/v1/workspaces").send().await);
    check("whoami", &server.get("/api/v1/whoami").send().await);
    let batch =
        server.post(format!("{submissions}:batch"), request(&whole, "create_submissions")).send().await;
    check("create_submissions", &batch);
    check(
        "erase_submissions",
        &server.call(Method::POST, format!("{submissions}:erase?q=radio")).send().await,
    );
    check("get_limits", &server.get("/api/v1/limits").send().await);
    check("explain_problem", &server.get("/problems/form_not_found").send().await);
    check("get_health", &server.get("/healthz").send().await);
    check("get_readiness", &server.get("/readyz").send().await);
    // The document's own example is shortened, sizes and metrics depend on the machine, and the archive and a starting server are covered by
    // other tests.
    let store =
        [("get_store", 200), ("compact", 202), ("verify", 202), ("get_backup", 200), ("get_metrics", 200)];
    seen.extend(store.into_iter().chain([
        ("get_openapi", 200),
        ("get_form_file_schema", 200),
        ("get_readiness", 503),
    ]));
    let mut documented = BTreeSet::new();
    for (id, operation) in operations(&whole).filter(|(_, operation)| !is_alias(operation)) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let status: u16 = status.parse().unwrap();
            let bodies = response["content"].as_object().into_iter().flatten();
            let bodies = bodies.filter(|(kind, _)| *kind != "application/problem+json");
            documented.extend(bodies.map(|_| (id, status)));
        }
    }
    assert_eq!(seen, documented);
}

fn is_alias(operation: &Value) -> bool {
    operation["description"].as_str().is_some_and(|text| text.starts_with("Another name of"))
}

/// A question of type `kind` with its required settings, and `name` set to `value`.
fn with_setting(kind: &str, name: &str, value: &Value) -> Value {
    let mut question = json!({"type": kind, "title": "T"});
    if ["single_choice", "multiple_choice", "ranking"].contains(&kind) {
        question["options"] = json!(["a", "b"]);
    } else if kind == "matrix" {
        (question["rows"], question["columns"]) = (json!(["a"]), json!(["b"]));
    }
    if name == "min_length" {
        // `min_length` must not exceed `max_length`, which has a default.
        question["max_length"] = json!(65_536);
    }
    question[name] = value.clone();
    json!({"title": "F", "questions": [question]})
}

/// The schema without `null`, and whether it accepts that.
fn without_null(schema: &Value) -> (Value, bool) {
    let mut plain = schema.clone();
    if let Some([kind, null]) = schema["type"].as_array().map(Vec::as_slice) {
        assert_eq!(null, "null");
        plain["type"] = kind.clone();
        return (plain, true);
    }
    match schema["anyOf"].as_array().map(Vec::as_slice) {
        Some([plain, null]) if *null == json!({"type": "null"}) => (plain.clone(), true),
        _ => (plain, false),
    }
}

/// Boundary values that `schema` accepts, and values just outside.
fn edges(schema: &Value) -> (Vec<Value>, Vec<Value>) {
    let (mut within, mut outside) = (Vec::new(), Vec::new());
    for (bound, beyond) in [("minimum", -1), ("maximum", 1)] {
        if let Some(edge) = schema[bound].as_i64() {
            within.push(json!(edge));
            outside.push(json!(edge + beyond));
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        within.extend(values.clone());
        outside.push(json!("stray"));
    }
    if schema["exclusiveMinimum"] == 0 {
        within.push(json!(0.5));
        outside.push(json!(0));
    }
    if schema["minItems"] == 1 {
        outside.push(json!([]));
    }
    match schema["type"].as_str() {
        Some("boolean") => {
            within.extend([json!(true), json!(false)]);
            outside.push(json!("true"));
        }
        Some("integer") => outside.push(json!("1")),
        Some("number") => within.push(json!(1)),
        _ => {}
    }
    (within, outside)
}

#[tokio::test]
async fn the_bounds_of_settings_match_the_server() {
    let (server, whole) = document().await;
    let mut refused = 0;
    let mapping = &whole["components"]["schemas"]["Question"]["discriminator"]["mapping"];
    let named: BTreeSet<_> = mapping.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(named, BTreeSet::from(QuestionKind::NAMES));
    for kind in QuestionKind::NAMES {
        let question = whole.pointer(mapping[kind].as_str().unwrap().trim_start_matches('#')).unwrap();
        for name in QuestionKind::settings(kind) {
            assert!(
                question["properties"][name]["description"].is_string(),
                "{kind} {name} has no description"
            );
            let (schema, is_nullable) = without_null(&question["properties"][name]);
            assert_eq!(is_nullable, !question["required"].as_array().unwrap().contains(&json!(name)));
            let (mut within, mut outside) = edges(&schema);
            within.extend(schema.get("example").cloned());
            within.extend(is_nullable.then_some(Value::Null));
            if let Some(most) = schema["maxLength"].as_u64().filter(|most| *most >= 300) {
                within.push(json!("x".repeat(most as usize)));
                outside.push(json!("x".repeat(most as usize + 1)));
            }
            for (value, status) in
                within.iter().map(|value| (value, 200)).chain(outside.iter().map(|value| (value, 422)))
            {
                let body = with_setting(kind, name, value);
                let response = server.post("/api/v1/forms?dry_run=true", body).send().await;
                let text: String = value.to_string().chars().take(40).collect();
                assert_eq!(response.status.as_u16(), status, "{kind} {name} {text}: {}", response.text());
                refused += usize::from(status == 422);
            }
        }
    }
    assert!(refused > 40, "{refused}");
}

/// Calls `visit` for `value` and everything in it, with the path to each.
fn walk<'a>(value: &'a Value, at: &str, visit: &mut dyn FnMut(&str, &'a Value)) {
    visit(at, value);
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| walk(value, &format!("{at}/{name}"), visit));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(place, item)| walk(item, &format!("{at}/{place}"), visit));
        }
        _ => {}
    }
}

#[tokio::test]
async fn everything_in_the_document_has_a_description() {
    let (_, whole) = document().await;
    let mut lacking = Vec::new();
    for (id, operation) in operations(&whole) {
        for member in ["summary", "description", "operationId", "tags"] {
            if operation[member].is_null() {
                lacking.push(format!("{id}: {member}"));
            }
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["description"].as_str().is_none_or(str::is_empty) || parameter["schema"].is_null() {
                lacking.push(format!("{id}: {}", parameter["name"]));
            }
            // The server refuses an empty cursor.
            if parameter["name"] == "cursor" && parameter["schema"]["minLength"] != 1 {
                lacking.push(format!("{id}: minLength of cursor"));
            }
        }
    }
    walk(&whole["components"], "", &mut |at, value| {
        let is_schema = at.starts_with("/schemas/") && at.matches('/').count() == 2;
        let is_member = at.contains("/properties/") && at.rsplit('/').nth(1) == Some("properties");
        let is_plain = value["$ref"].is_null() && value["const"].is_null();
        if (is_schema || is_member) && is_plain && value["description"].as_str().is_none_or(str::is_empty) {
            lacking.push(at.to_owned());
        }
    });
    assert_eq!(lacking, Vec::<String>::new());
}

/// `short_text` and `form.deleted` in the style of types.
fn pascal(name: &str) -> String {
    name.split(['_', '.']).map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

#[tokio::test]
async fn generated_code_can_name_and_build_everything() {
    let (_, whole) = document().await;
    let schemas = whole["components"]["schemas"].as_object().unwrap();
    let mut faults = Vec::new();
    for (owner, schema) in schemas {
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            // Generators name a schema within another one after both.
            let inline = format!("{owner}{}", pascal(name));
            let is_named = member["anyOf"].is_array() || member["enum"].is_array();
            if is_named && schemas.contains_key(&inline) {
                faults.push(format!("{inline} is the name of two schemas"));
            }
        }
    }
    walk(&whole["components"]["schemas"], "", &mut |at, value| {
        let values = value["enum"].as_array().into_iter().flatten();
        let is_word = |value: &Value| value.as_str().unwrap().starts_with(char::is_alphabetic);
        if !values.clone().all(is_word) {
            faults.push(format!("{at}: values without names"));
        }
        // Some match patterns from the beginning of the text.
        if value["pattern"].as_str().is_some_and(|pattern| !pattern.starts_with('^')) {
            faults.push(format!("{at}: the pattern does not start with ^"));
        }
        for one in value["anyOf"].as_array().into_iter().flatten() {
            let one = one["$ref"].as_str().map_or(one, |path| whole.pointer(&path[1..]).unwrap());
            if one["type"] == "object" && one["properties"].is_null() {
                faults.push(format!("{at}: a map is not a class"));
            }
        }
    });
    assert_eq!(faults, Vec::<String>::new());
}

#[tokio::test]
async fn secrets_may_have_members_that_are_null() {
    let (server, whole) = document().await;
    let form = server.draft_form(questions()).await;
    let token = json!({"value": "token", "set": null, "env": null});
    let webhook = json!({"type": "webhook", "url": "https://example.com/hook", "bearer_token": token});
    server.integrate(&form, webhook.clone()).await;
    let path = format!("/api/v1/forms/{form}/integrations");
    let body = &operation(&whole, "create_integration")["requestBody"]["content"];
    let schema = convert(&body["application/json"]["schema"]);
    assert!(accepts_within(&convert(&whole), &schema, &convert(&webhook)));
    let kept = json!({"bearer_token": {"value": null, "set": true}});
    server.patch(format!("{path}/webhook"), kept).send().await.expect(200);
}

#[tokio::test]
async fn webhooks_get_the_bodies_in_the_document() {
    let (server, whole) = document().await;
    let form = server.draft_form(questions()).await;
    let events = EventType::SUBSCRIBABLE.map(EventType::name);
    for payload in ["full", "thin"] {
        let hook = json!({"type": "webhook", "name": payload, "url": "https://example.com", "payload": payload, "events": events, "retry": []});
        server.integrate(&form, hook).await;
        let test = format!("/api/v1/forms/{form}/integrations/{payload}/test");
        server.call(Method::POST, test).send().await.expect(200);
    }
    let path = format!("/api/v1/forms/{form}");
    let publish = async || {
        server.patch(&path, json!({"status": "published"})).send().await.expect(200);
        server.deliver().await;
    };
    publish().await;
    let answers = json!({"q1": "Ada", "q3": 4});
    let submission = format!("{path}/submissions/{}", server.submit(&form, answers).await);
    server.deliver().await;
    server.patch(&submission, json!({"answers": {"q3": 5}})).send().await.expect(200);
    server.deliver().await;
    server.remove(&submission).await;
    server.patch(&path, json!({"status": "draft"})).send().await.expect(200);
    server.deliver().await;
    // The server pauses both; enabled again, each is told of the other.
    server.sender.fail_with(Some(410));
    publish().await;
    server.sender.fail_with(None);
    for payload in ["full", "thin"] {
        let enable = format!("{path}/integrations/{payload}");
        server.patch(enable, json!({"enabled": true})).send().await.expect(200);
    }
    server.deliver().await;
    server.remove(&path).await;
    server.deliver().await;
    let mut seen = BTreeSet::new();
    let converted = convert(&whole);
    for request in server.sender.take() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let kind = body["type"].as_str().unwrap().to_owned();
        let schema =
            &whole["webhooks"][&kind]["post"]["requestBody"]["content"]["application/json"]["schema"];
        assert!(accepts_within(&converted, &convert(schema), &convert(&body)), "{kind}: {body}");
        let alternatives = &resolve(&whole, schema)["properties"]["data"]["anyOf"];
        let is_thin = body["data"]["form"]["title"].is_null();
        let data = &alternatives[usize::from(is_thin)];
        assert!(accepts_within(&converted, &convert(data), &convert(&body["data"])), "{kind}: {body}");
        seen.insert((kind, is_thin));
    }
    let both = |event: EventType| [false, true].map(|is_thin| (event.name().to_owned(), is_thin));
    assert_eq!(seen, EventType::ALL.into_iter().flat_map(both).collect());
}
