//! Mail to owners and confirmations to respondents: what it says, to whom, and how often.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use forms::delivery::mail::Mailer;
use forms::domain::delivery::attempt::{Outcome, SendReport};
use forms::domain::delivery::error_code::ErrorCode;
use forms::domain::integration::google_sheets::GoogleEndpoints;
use forms::domain::integration::outbound::MailMessage;
use serde_json::{Value, json};

use super::rig::Rig;
use crate::harness::{RecordingSender, Server};

/// A mailer that keeps what it is given.
#[derive(Default)]
pub(crate) struct RecordingMailer {
    sent: Mutex<Vec<MailMessage>>,
    /// An address that is refused.
    refused: Mutex<Option<&'static str>>,
}

impl RecordingMailer {
    pub(crate) fn take(&self) -> Vec<MailMessage> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }

    fn one(&self) -> MailMessage {
        let mut sent = self.take();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }
}

#[async_trait]
impl Mailer for RecordingMailer {
    async fn send(&self, message: &MailMessage) -> SendReport {
        if self.refused.lock().unwrap().is_some_and(|refused| refused == message.to) {
            let error = ErrorCode::SmtpRejected.error("550 no such user");
            return SendReport::new(Outcome::Permanent { error }, 1);
        }
        self.sent.lock().unwrap().push(message.clone());
        SendReport::new(Outcome::Delivered, 1)
    }
}

fn with_mailer(server: Server, sender: RecordingSender, mailer: &Arc<RecordingMailer>) -> Server {
    server.with_services(Arc::new(sender), mailer.clone(), GoogleEndpoints::default())
}

async fn rig() -> (Rig, Arc<RecordingMailer>) {
    let mailer = Arc::new(RecordingMailer::default());
    let server = with_mailer(Server::start().await, RecordingSender::default(), &mailer);
    let questions = json!([
        {"type": "short_text", "title": "Your name?"},
        {"type": "email", "title": "Your address?"},
        {"type": "rating", "title": "How was it?", "labels": {"5": "Great"}},
        {"type": "long_text", "title": "Any <b>words</b>?"},
        {"type": "single_choice", "title": "Meal", "options": [{"value": "s", "label": "Soup & bread"}, "cake"]},
    ]);
    let form = server.published_form(questions).await;
    (Rig { server, form }, mailer)
}

async fn submit(rig: &Rig, answers: Value) -> String {
    let id = rig.server.submit(&rig.form, answers).await;
    rig.server.deliver().await;
    id
}

#[tokio::test]
async fn the_owner_gets_all_answers_and_replies_to_the_respondent() {
    let (rig, mailer) = rig().await;
    rig.server.integrate(&rig.form, json!({"type": "email", "to": ["team@example.com"]})).await;
    let words = "<script>alert(1)</script>\n[x](javascript:alert(1)) & \u{202e}more";
    let answers = json!({"q1": "Ann\"", "q2": "ann@example.com", "q3": 5, "q4": words, "q5": "s"});
    let id = submit(&rig, answers).await;
    let mail = mailer.one();
    let delivery = rig.delivery().await;
    assert_eq!((&*mail.to, mail.reply_to.as_deref()), ("team@example.com", Some("ann@example.com")));
    assert_eq!(mail.subject, "New response: Visit – ann@example.com");
    assert!(mail.list.is_some_and(|list| list == rig.form));
    assert_eq!((delivery["id"].as_str(), delivery["status"].as_str()), (Some(&*mail.id), Some("delivered")));
    let expected = format!(
        "New response: Visit – ann@example.com\n\nYour name? Ann\"\nYour address? ann@example.com\nHow was it? 5 (Great)\n\
         Any <b>words</b>?\n  <script>alert(1)</script>\n  [x](javascript:alert(1)) & more\nMeal: Soup & bread\n\n\
         -- \nVisit · 20 Nov 2026, 09:00 UTC\nforms responses show {} {id}\n",
        rig.form
    );
    assert_eq!(mail.text, expected);
    for part in ["<td>Ann&quot;</td>", "&lt;script&gt;alert(1)&lt;/script&gt;<br>\n", "Soup &amp; bread"] {
        assert!(mail.html.contains(part), "{part}: {}", mail.html);
    }
    assert!(!mail.html.contains("<script") && !mail.html.contains("href") && !mail.html.contains("src="));
}

#[tokio::test]
async fn a_mail_stays_with_its_address_whatever_the_list_becomes() {
    for (list, corrected) in [
        (&["ann@example.com", "zoe@example.com"][..], None),
        (&["zoe@example.com", "ann@example.com", "bob@example.com"], Some("bob@example.com")),
    ] {
        let (rig, mailer) = rig().await;
        let to = ["ann@example.com", "bad@example.com", "zoe@example.com"];
        rig.server.integrate(&rig.form, json!({"type": "email", "name": "mail", "to": to})).await;
        *mailer.refused.lock().unwrap() = Some("bad@example.com");
        submit(&rig, json!({"q1": "Cem"})).await;
        assert_eq!(mailer.take().len(), 2);
        let dead = rig.deliveries("status=dead").await.remove(0);
        rig.server.clock.advance(1_000);
        let path = format!("/api/v1/forms/{}/integrations/mail", rig.form);
        let before = rig.server.get(path).send().await.expect(200);
        let same = rig.change("mail", json!({"to": to})).await;
        assert_eq!(same["updated_at"], before["updated_at"], "nothing changes");
        rig.change("mail", json!({"to": list})).await;
        rig.redeliver(&dead).await;
        rig.server.deliver().await;
        let sent: Vec<_> = mailer.take().into_iter().map(|mail| mail.to).collect();
        assert_eq!(sent, corrected.into_iter().collect::<Vec<_>>(), "{list:?}");
        rig.test("mail").await;
        assert_eq!(mailer.one().to, list[0]);
    }
}

#[tokio::test]
async fn templates_are_filled_and_a_failing_one_is_replaced() {
    let (rig, mailer) = rig().await;
    let body =
        "{% for field in fields %}{{ field.question }}={{ field.text }};{% endfor %}\n\n{{ submission.id }}";
    let mail = json!({
        "type": "email", "to": ["a@example.com"], "body": body, "fields": {"except": ["q2"]},
        "subject": "{{ form.title }}: {{ answers.q4 }}{% if answers.q3 > 3 %}!{% endif %}",
    });
    rig.server.integrate(&rig.form, mail).await;
    let id =
        submit(&rig, json!({"q4": "Evil\r\nBcc: x@example.com", "q2": "ann@example.com", "q3": 4})).await;
    let mail = mailer.one();
    assert_eq!(mail.subject, "Visit: Evil Bcc: x@example.com!");
    assert_eq!(mail.text, format!("q3=4;q4=Evil\nBcc: x@example.com;\n\n{id}\n"));
    assert_eq!(mail.reply_to, None, "the address does not leave the server");
    let endless = "{% for a in fields %}".repeat(9) + "{{ a.text }}" + &"{% endfor %}".repeat(9);
    rig.change("email", json!({"body": endless, "subject": endless, "fields": null})).await;
    submit(&rig, json!({"q1": "a", "q2": "b@example.com", "q3": 1, "q4": "c", "q5": "cake"})).await;
    let mail = mailer.one();
    assert_eq!(mail.subject, "New response: Visit – b@example.com");
    assert!(mail.text.contains("Your name? a\n"), "{}", mail.text);
}

#[tokio::test]
async fn a_respondent_gets_one_confirmation_a_day_without_answers() {
    let (rig, mailer) = rig().await;
    let confirmation = json!({"type": "email", "to_question": "q2", "body": "Thanks for {{ form.title }}!"});
    rig.server.integrate(&rig.form, confirmation).await;
    submit(&rig, json!({"q1": "buy at evil.example", "q2": "ann@example.com"})).await;
    let mail = mailer.one();
    assert!(!mail.html.contains("evil"), "{}", mail.html);
    assert_eq!((mail.to.clone(), mail.reply_to), ("ann@example.com".to_owned(), None));
    assert_eq!((&*mail.subject, &*mail.text), ("Thank you for your response: Visit", "Thanks for Visit!\n"));
    submit(&rig, json!({"q2": "Ann+again@Example.com"})).await;
    submit(&rig, json!({"q1": "no address"})).await;
    assert!(mailer.take().is_empty());
    let statuses: Vec<_> = rig.deliveries("").await.iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["skipped", "skipped", "delivered"]);
    rig.server.clock.advance(24 * 3_600_000);
    submit(&rig, json!({"q2": "ann@example.com"})).await;
    assert_eq!(mailer.one().to, "ann@example.com");
}

#[tokio::test]
async fn a_form_sends_500_confirmations_an_hour_and_the_rest_wait() {
    let (rig, mailer) = rig().await;
    rig.server.integrate(&rig.form, json!({"type": "email", "to_question": "q2"})).await;
    for number in 0..503 {
        rig.server.submit(&rig.form, json!({"q2": format!("a{number}@example.com")})).await;
    }
    rig.server.deliver().await;
    assert_eq!(mailer.take().len(), 500);
    let waiting = rig.deliveries("status=pending").await;
    assert_eq!(waiting.len(), 3);
    rig.deliver_after(3_600_000).await;
    assert_eq!(mailer.take().len(), 3);
    assert!(rig.deliveries("status=pending,dead").await.is_empty());
}

#[tokio::test]
async fn a_server_without_mail_says_so_and_tries_again() {
    let rig = Rig::with_sender(Arc::new(RecordingSender::default())).await;
    rig.server.integrate(&rig.form, json!({"type": "email", "to": ["a@example.com"]})).await;
    rig.submit("Ann").await;
    rig.server.deliver().await;
    rig.expect_failure("pending", "mail_not_configured").await;
    assert_eq!(rig.health("email").await["state"], "failing");
}

#[tokio::test]
async fn a_pause_of_another_integration_is_mailed() {
    let (rig, mailer) = rig().await;
    let gone = RecordingSender::default();
    gone.fail_with(Some(410));
    let rig = Rig { server: with_mailer(rig.server, gone, &mailer), form: rig.form };
    rig.webhook("hook", "https://hook.example/").await;
    let alarm = json!({"type": "email", "to": ["ops@example.com"], "events": ["integration.disabled"]});
    rig.server.integrate(&rig.form, alarm).await;
    rig.submit("Ann").await;
    rig.server.deliver().await;
    rig.server.deliver().await;
    let mail = mailer.one();
    assert!(mail.subject.starts_with("Integration hook of Visit is paused"), "{}", mail.subject);
}
