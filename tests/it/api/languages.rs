//! Messages about answers in the language of the form.

use axum::body::to_bytes;

use crate::harness::prelude::*;

/// Creates a form in `language`.
async fn form_in(server: &Server, language: &str, questions: Value) -> String {
    let form = server.published_form(questions).await;
    let settings = json!({"settings": {"language": language}});
    server.patch(format!("/api/v1/forms/{form}"), settings).send().await.expect(200);
    form
}

async fn messages(server: &Server, form: &str, answers: Value) -> Vec<String> {
    let sent = server.post(format!("/api/v1/forms/{form}/submissions"), json!({"answers": answers}));
    let refused = sent.send().await.expect(422);
    assert_eq!(refused["title"], "The request body is not valid");
    let errors = refused["errors"].as_array().unwrap();
    errors.iter().map(|error| error["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn messages_about_answers_are_in_the_language_of_the_form() {
    let server = Server::start().await;
    for (language, required, too_long) in [
        ("en-GB", "\"Zoë {max}\" needs an answer", "Enter at most 3 characters, not 4"),
        ("de-AT", "„Zoë {max}“ braucht eine Antwort", "Geben Sie höchstens 3 Zeichen ein, nicht 4"),
        ("fr", "«\u{a0}Zoë {max}\u{a0}» nécessite une réponse", "Saisissez au plus 3 caractères, pas 4"),
        ("es-MX", "«Zoë {max}» necesita una respuesta", "Escriba como máximo 3 caracteres, no 4"),
        ("pt-BR", "“Zoë {max}” precisa de uma resposta", "Escreva no máximo 3 caracteres, não 4"),
        ("ar", "«Zoë {max}»: الإجابة مطلوبة", "أدخل 3 من الأحرف على الأكثر، وليس 4"),
        ("JA", "「Zoë {max}」への回答が必要です", "3文字以内で入力してください（現在：4）"),
        ("zh-Hans", "“Zoë {max}”需要回答", "请输入最多 3 个字符（当前：4）"),
        ("nl", "\"Zoë {max}\" needs an answer", "Enter at most 3 characters, not 4"),
    ] {
        let questions = json!([
            {"id": "name", "type": "short_text", "title": "Zoë {max}", "required": true},
            {"id": "code", "type": "short_text", "title": "Code", "max_length": 3},
        ]);
        let form = form_in(&server, language, questions).await;
        assert_eq!(
            messages(&server, &form, json!({"code": "abcd"})).await,
            [required, too_long],
            "{language}"
        );
    }
}

#[tokio::test]
async fn every_kind_of_message_is_german_in_a_german_form() {
    let server = Server::start().await;
    let questions = json!([
        {"id": "age", "type": "number", "title": "Alter", "integer": true, "min": 18, "step": 2},
        {"id": "day", "type": "date", "title": "Tag", "min": "2027-01-01"},
        {"id": "colours", "type": "multiple_choice", "title": "Farben", "options": ["rot", "blau"], "min_selected": 2},
        {"id": "mail", "type": "email", "title": "E-Mail"},
        {"id": "own", "type": "short_text", "title": "Eigenes", "pattern": "[0-9]+", "pattern_message": "Only digits"},
        {"id": "agreed", "type": "boolean", "title": "Einig"},
        {"id": "why", "type": "short_text", "title": "Warum", "show_if": {"own": "1"}},
    ]);
    let form = form_in(&server, "de", questions).await;
    let answers = json!({
        "age": "alt", "day": "2026-01-01", "colours": ["grün"], "mail": "x", "own": "a", "agreed": "ja", "why": "so",
    });
    assert_eq!(
        messages(&server, &form, answers).await,
        [
            "Geben Sie eine ganze Zahl ab 18 in Schritten von 2 ein, nicht Text",
            "Geben Sie ein Datum wie 2027-03-13, ab 2027-01-01 ein",
            "Wählen Sie mindestens 2 aus, nicht 1",
            "Wählen Sie eine der Optionen rot, blau",
            "Geben Sie eine E-Mail-Adresse wie name@example.com ein",
            "Only digits",
            "Geben Sie true oder false ein, nicht Text",
            "Ob „Warum“ gefragt wird, hängt von `own` ab",
        ]
    );
}

#[tokio::test]
async fn the_page_describes_conditions_with_titles_and_labels_in_the_language_of_the_form() {
    let server = Server::start().await;
    let questions = json!([
        {"id": "topic", "type": "single_choice", "title": "Thema", "options": [{"value": "web", "label": "Das Web"}, "X"]},
        {"id": "first", "type": "boolean", "title": "Neu", "labels": {"true": "Zum ersten Mal"}},
        {"id": "agreed", "type": "consent", "title": "Regeln"},
        {"id": "why", "type": "short_text", "title": "Warum",
            "show_if": {"topic": ["web", "X"], "first": true, "agreed": true}},
    ]);
    let form = form_in(&server, "de", questions).await;
    server
        .patch(format!("/api/v1/forms/{form}"), json!({"settings": {"public": true}}))
        .send()
        .await
        .expect(200);
    let page = server.call_without_key(Method::GET, format!("/f/{form}")).response().await;
    let page = String::from_utf8(to_bytes(page.into_body(), usize::MAX).await.unwrap().into()).unwrap();
    let condition = "„Regeln“ Ja ist und „Neu“ Zum ersten Mal ist und „Thema“ Das Web oder X ist";
    assert!(page.contains(&format!("Beantworten Sie dies nur, wenn {condition}")), "{page}");
}
