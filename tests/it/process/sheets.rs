//! A row of a Google spreadsheet for each submission, although the server is killed and answers of Google are lost.
//!
//! The long form: `FORMS_SHEET_ROWS=500 cargo test --release --test it process::sheets -- --nocapture`.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forms::delivery::mail::NoMailer;
use forms::store::Maintenance;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::block_on;
use super::common::fill::{Form, published_form};
use super::common::server::{Server, operator_key};
use super::common::settings;
use super::deliveries::{Stopped, integrate, send, serve};
use super::kill::draw;
use crate::delivery::google::{Fault, Google, SPREADSHEET, key_file};

/// Submissions unless `FORMS_SHEET_ROWS` is set.
const ROWS: u64 = 60;

/// Submissions for each kill.
const ROWS_PER_KILL: u64 = 15;

/// Time for the server to reach the point at which it is killed; then it is killed without.
const TIMEOUT: Duration = Duration::from_secs(8);

/// When the server is killed.
#[derive(Debug, Clone, Copy)]
enum KillPoint {
    /// While it reads the first row.
    Reading,
    /// After rows were appended, before it has the answer.
    Appended,
    /// As it gets the answer.
    Answered,
}

/// What goes wrong at the stand-in for Google.
struct Trouble {
    /// The next kill, and requests of its kind before it: a server's first batch has two rows, and later ones have more.
    armed: Option<(KillPoint, u64)>,
    killed: u64,
    /// Reports that the server is to be killed.
    reached: UnboundedSender<()>,
    appends: u64,
    lost: u64,
}

impl Trouble {
    /// Three of ten requests that append rows are carried out, and their answers lost.
    fn fault(&mut self, line: &str) -> Option<Fault> {
        let is_append = line.ends_with(":append");
        self.appends += u64::from(is_append);
        let is_counted = match self.armed {
            Some((KillPoint::Reading, _)) => line.ends_with("1:1"),
            Some((KillPoint::Appended | KillPoint::Answered, _)) => is_append,
            None => false,
        };
        let mut kill_point = None;
        match &mut self.armed {
            Some((_, before)) if is_counted && *before > 0 => *before -= 1,
            Some((point, _)) if is_counted => {
                kill_point = Some(*point);
                self.armed = None;
                self.killed += 1;
                self.reached.send(()).unwrap();
            }
            Some(_) | None => {}
        }
        match kill_point {
            Some(KillPoint::Appended) => Some(Fault::WithholdAnswer),
            Some(KillPoint::Reading | KillPoint::Answered) => None,
            None if is_append && draw(self.appends, 0, 10) < 3 => {
                self.lost += 1;
                Some(Fault::LoseAnswer)
            }
            None => None,
        }
    }
}

#[test]
fn every_submission_is_one_row_whenever_the_server_is_killed_and_answers_are_lost() {
    let rows = std::env::var("FORMS_SHEET_ROWS").map_or(ROWS, |text| text.parse().unwrap());
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let (reached, mut kills) = unbounded_channel();
        let trouble = Arc::new(Mutex::new(Trouble { armed: None, killed: 0, reached, appends: 0, lost: 0 }));
        let shared = Arc::clone(&trouble);
        let google = Google::start(move |line| shared.lock().unwrap().fault(line)).await;
        let start = || Server::start(serve(&data).args(["--google-url", &google.url()])).unwrap();
        let mut server = start();
        let key = operator_key(&data).unwrap();
        let mut form = published_form(server.endpoint(), &key).await.unwrap();
        let integration = json!({
            "type": "google_sheets", "spreadsheet_id": SPREADSHEET, "service_account": key_file(),
        });
        integrate(&form, integration).await;
        let mut ids = HashSet::new();
        for number in 1..=rows {
            let is_kill = number % ROWS_PER_KILL == 0;
            if is_kill {
                let points = [KillPoint::Appended, KillPoint::Reading, KillPoint::Answered];
                let point = points[(number / ROWS_PER_KILL) as usize % 3];
                trouble.lock().unwrap().armed = Some((point, draw(number, 1, 3)));
            }
            ids.insert(submit(&form, number).await);
            if is_kill {
                let _reached = timeout(TIMEOUT, kills.recv()).await;
                trouble.lock().unwrap().armed = None;
                server.kill().unwrap();
                server = start();
                form.endpoint = server.endpoint();
            }
        }
        server.kill().unwrap();
        let stopped = Stopped::open(&data, &form).await;
        stopped.deliver_all(&data, google.endpoints(), Arc::new(NoMailer)).await;
        stopped.store.close().await.unwrap();
        let found: Vec<_> =
            google.rows().into_iter().map(|row| row[0].as_str().unwrap().to_owned()).collect();
        assert_eq!(found[0], "id");
        assert_eq!((found.len() - 1, ids.len() as u64), (rows as usize, rows), "a row twice, or missing");
        assert_eq!(found.into_iter().skip(1).collect::<HashSet<_>>(), ids);
        let Trouble { killed, appends, lost, .. } = &*trouble.lock().unwrap();
        assert!(*killed > 0 && *lost > 0, "nothing went wrong, so nothing is proved");
        let searches = google.take_log().iter().filter(|line| line.ends_with("A:A")).count();
        let kills = rows / ROWS_PER_KILL;
        println!(
            "{rows} rows, {kills} kills ({killed} during a batch), {appends} appends, {lost} lost answers, {searches} searches"
        );
    });
}

/// Sends submission `number`, and returns its id.
async fn submit(form: &Form, number: u64) -> String {
    let answers = json!({ "answers": { "q1": format!("=ROW({number})"), "q3": number % 5 + 1 } });
    let made = send(form, "POST", &format!("{}/submissions", form.path()), &answers, 201).await;
    made["id"].as_str().unwrap().to_owned()
}
