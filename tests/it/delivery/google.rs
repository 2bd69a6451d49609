//! A local stand-in for Google's token endpoint and the Sheets API v4, which refuses what Google refuses (the request for a
//! token is checked by `tests/interop/services`):
//! <https://developers.google.com/identity/protocols/oauth2/service-account#httprest>,
//! <https://developers.google.com/workspace/sheets/api/reference/rest/v4/spreadsheets.values> and
//! <https://developers.google.com/workspace/sheets/api/limits>.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use forms::domain::integration::google_sheets::GoogleEndpoints;
use serde_json::{Value, json};
use url::Url;

use super::receiver::{Received, Receiver, Reply};

/// A key made for tests: it opens nothing.
pub(crate) const PRIVATE_KEY: &str = include_str!("../fixtures/service-account.pem");

pub(crate) const ACCOUNT: &str = "forms@test.iam.gserviceaccount.com";

pub(crate) const SPREADSHEET: &str = "1AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";

/// The size of a request that Google recommends not to exceed.
const MAX_REQUEST: usize = 2_000_000;

/// Columns of a new tab.
const COLUMNS: usize = 26;

/// The content of the account's key file. Its `token_uri` must not be used.
pub(crate) fn key_file() -> String {
    let file = json!({
        "type": "service_account", "project_id": "test", "private_key_id": "k1", "private_key": PRIVATE_KEY,
        "client_email": ACCOUNT, "token_uri": "http://127.0.0.1:1/never",
    });
    file.to_string()
}

/// What goes wrong with a request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It is carried out, and the connection closed without an answer.
    LoseAnswer,
    /// It is carried out, and never answered.
    WithholdAnswer,
    /// It is refused with this status and message.
    Refuse(u16, &'static str),
    /// It is refused with this status, and with all that was sent in the message.
    Echo(u16),
    /// It is answered by this.
    Answer(Reply),
}

/// The state of the stand-in.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) tabs: Vec<Tab>,
    /// Access tokens that are accepted.
    pub(crate) tokens: Vec<String>,
    /// Requests as `GET 'Tab'!A:A`, in the order of arrival.
    pub(crate) log: Vec<String>,
    issued: usize,
}

/// A tab of the only spreadsheet.
#[derive(Debug, Clone)]
pub(crate) struct Tab {
    pub(crate) title: &'static str,
    pub(crate) columns: usize,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Tab {
    pub(crate) fn new(title: &'static str) -> Self {
        Self { title, columns: COLUMNS, rows: Vec::new() }
    }
}

/// A running stand-in.
pub(crate) struct Google {
    receiver: Receiver,
    state: Arc<Mutex<State>>,
}

impl Google {
    /// Starts with the tab `Sheet1`. `fault` decides what goes wrong, by the request as it is logged.
    pub(crate) async fn start(fault: impl Fn(&str) -> Option<Fault> + Send + Sync + 'static) -> Self {
        let state = State { tabs: vec![Tab::new("Sheet1")], ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let receiver = Receiver::start(move |request| {
            let mut state = shared.lock().unwrap();
            let call = Call::of(request);
            let line = call.line();
            state.log.push(line.clone());
            match fault(&line) {
                Some(Fault::Refuse(status, message)) => respond(Err((status, message.to_owned()))),
                Some(Fault::Echo(status)) => {
                    let body = String::from_utf8_lossy(&request.body);
                    respond(Err((status, format!("{}{body}", request.head))))
                }
                Some(Fault::Answer(reply)) => reply,
                Some(Fault::LoseAnswer) => {
                    state.carry_out(&call).unwrap();
                    Reply::Cut
                }
                Some(Fault::WithholdAnswer) => {
                    state.carry_out(&call).unwrap();
                    Reply::silence()
                }
                None => respond(state.carry_out(&call)),
            }
        });
        Self { receiver: receiver.await, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/google", self.receiver.address)
    }

    pub(crate) fn endpoints(&self) -> GoogleEndpoints {
        self.url().parse().unwrap()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// All requests as received.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.receiver.requests()
    }

    /// Takes the log of requests.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    /// The rows of the first tab.
    pub(crate) fn rows(&self) -> Vec<Vec<Value>> {
        self.state().tabs[0].rows.clone()
    }
}

type Answer = Result<Value, (u16, String)>;

fn invalid<T>(message: impl Into<String>) -> Result<T, (u16, String)> {
    Err((400, message.into()))
}

fn respond(answer: Answer) -> Reply {
    let (status, body) = match answer {
        Ok(body) => (200, body),
        Err((status, message)) => {
            (status, json!({ "error": { "code": status, "message": message, "status": "TEST" } }))
        }
    };
    let body = body.to_string();
    let length = body.len();
    Reply::text(&format!(
        "HTTP/1.1 {status} Status\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
}

/// A request, decoded.
struct Call {
    method: String,
    /// What follows the base URL.
    path: String,
    query: HashMap<String, String>,
    authorization: String,
    content_type: String,
    body: Vec<u8>,
}

impl Call {
    fn of(request: &Received) -> Self {
        let mut words = request.head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let url = Url::parse(&format!("http://local{target}")).unwrap();
        let path = percent_encoding::percent_decode_str(url.path()).decode_utf8().unwrap();
        Self {
            method: method.to_owned(),
            path: path.strip_prefix("/google").unwrap().to_owned(),
            query: url.query_pairs().into_owned().collect(),
            authorization: request.header("authorization").unwrap_or_default().to_owned(),
            content_type: request.header("content-type").unwrap_or_default().to_owned(),
            body: request.body.clone(),
        }
    }

    /// The path after the spreadsheet and `values`, for the log; `POST names` for names of columns that are appended.
    fn line(&self) -> String {
        if self.method == "POST" && self.query.get("valueInputOption").is_some_and(|option| option == "RAW") {
            return "POST names".to_owned();
        }
        let path = self.path.split_once("/values/").map_or(&*self.path, |(_, range)| range);
        format!("{} {path}", self.method)
    }
}

impl State {
    fn carry_out(&mut self, call: &Call) -> Answer {
        if call.path == "/token" {
            return self.token(call);
        }
        let token = call.authorization.strip_prefix("Bearer ").unwrap_or_default();
        if !self.tokens.iter().any(|valid| valid == token) {
            return Err((401, "Request had invalid authentication credentials.".to_owned()));
        }
        let Some((id, rest)) = call
            .path
            .strip_prefix("/v4/spreadsheets/")
            .map(|path| path.split_at(path.find(['/', ':']).unwrap_or(path.len())))
        else {
            return Err((404, "Not Found".to_owned()));
        };
        if id != SPREADSHEET {
            return Err((404, "Requested entity was not found.".to_owned()));
        }
        match (&*call.method, rest.strip_prefix("/values/")) {
            ("GET", Some(range)) => self.get(call, range),
            ("PUT", Some(range)) => self.update(call, range),
            ("POST", Some(range)) if range.ends_with(":append") => {
                self.append(call, range.strip_suffix(":append").unwrap())
            }
            _ => Err((404, "Not Found".to_owned())),
        }
    }

    fn token(&mut self, call: &Call) -> Answer {
        if call.content_type != "application/x-www-form-urlencoded" {
            return invalid("unsupported_grant_type");
        }
        self.issued += 1;
        let token = format!("ya29.TOKENCANARY{}", self.issued);
        self.tokens.push(token.clone());
        Ok(json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3599 }))
    }

    fn get(&self, call: &Call, range: &str) -> Answer {
        let (place, cells) = self.parse(range)?;
        let rows = &self.tabs[place].rows;
        let values: Vec<Vec<Value>> = match (cells, call.query.get("majorDimension").map(String::as_str)) {
            ("1:1", None | Some("ROWS")) => rows.iter().take(1).map(|row| shown(row)).collect(),
            ("A:A", Some("COLUMNS")) => {
                let cells: Vec<_> = rows.iter().map(|row| row[0].clone()).collect();
                [shown(&cells)].into_iter().filter(|column| !column.is_empty()).collect()
            }
            _ => return invalid(format!("Unable to parse range: {range}")),
        };
        let answer = json!({ "range": range, "majorDimension": call.query.get("majorDimension") });
        Ok(if values.is_empty() { answer } else { json!({ "range": range, "values": values }) })
    }

    fn update(&mut self, call: &Call, range: &str) -> Answer {
        let (place, cells) = self.parse(range)?;
        let values = values(call)?;
        let (first, last) = cells.split_once(':').unwrap_or((cells, cells));
        let (Some(first), Some(last)) = (column_of(first), column_of(last)) else {
            return invalid(format!("Unable to parse range: {range}"));
        };
        let tab = &mut self.tabs[place];
        if last >= tab.columns {
            let columns = tab.columns;
            return invalid(format!(
                "Range ({range}) exceeds grid limits. Max rows: 1000, max columns: {columns}"
            ));
        }
        if values.len() != 1 || values[0].len() > last - first + 1 {
            return invalid(format!("Requested writing within range [{range}], but tried writing elsewhere"));
        }
        if tab.rows.is_empty() {
            tab.rows.push(Vec::new());
        }
        let width = tab.rows[0].len().max(first + values[0].len());
        tab.rows[0].resize(width, Value::Null);
        tab.rows[0][first..first + values[0].len()].clone_from_slice(&values[0]);
        Ok(json!({ "updatedRange": range }))
    }

    /// Other than an update, it adds columns to a tab that has too few.
    fn append(&mut self, call: &Call, range: &str) -> Answer {
        let (place, cells) = self.parse(range)?;
        let values = values(call)?;
        let tab = &mut self.tabs[place];
        let is_first = tab.rows.is_empty();
        let option = call.query.get("insertDataOption").map(String::as_str);
        if cells != "A1" || option != (if is_first { None } else { Some("INSERT_ROWS") }) {
            return invalid("a test expects rows to be inserted below the first one");
        }
        if !is_first && values.iter().any(|row| row.len() > tab.rows[0].len()) {
            return invalid("a test expects a column name for each cell");
        }
        tab.columns = values.iter().map(Vec::len).max().unwrap_or(0).max(tab.columns);
        tab.rows.extend(values);
        Ok(json!({ "updates": { "updatedRange": range } }))
    }

    /// The tab and the cells of a range.
    fn parse<'r>(&self, range: &'r str) -> Result<(usize, &'r str), (u16, String)> {
        let Some((name, cells)) = range.rsplit_once('!') else { return Ok((0, range)) };
        let name = name.strip_prefix('\'').and_then(|name| name.strip_suffix('\''));
        let name = name.map(|name| name.replace("''", "'"));
        let place = self.tabs.iter().position(|tab| Some(tab.title) == name.as_deref());
        place.map(|place| (place, cells)).ok_or_else(|| (400, format!("Unable to parse range: {range}")))
    }
}

/// Cells as Google returns them: formatted, without empty ones at the end.
fn shown(cells: &[Value]) -> Vec<Value> {
    let end = cells.iter().rposition(|cell| !cell.is_null() && cell != "").map_or(0, |place| place + 1);
    let text = |cell: &Value| match cell {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    cells[..end].iter().map(|cell| text(cell).into()).collect()
}

fn body(call: &Call) -> Answer {
    if call.body.len() > MAX_REQUEST {
        return Err((413, "Request too large".to_owned()));
    }
    if call.content_type != "application/json" {
        return invalid("Invalid content type");
    }
    serde_json::from_slice(&call.body).or_else(|_error| invalid("Invalid JSON payload received."))
}

/// The rows of a request, whose cells are checked.
fn values(call: &Call) -> Result<Vec<Vec<Value>>, (u16, String)> {
    let is_typed = match call.query.get("valueInputOption").map(String::as_str) {
        Some("RAW") => false,
        Some("USER_ENTERED") => true,
        _ => return invalid("'valueInputOption' is required but not specified"),
    };
    let body = body(call)?;
    let mut rows: Vec<Vec<Value>> = serde_json::from_value(body["values"].clone()).unwrap();
    for cell in rows.iter_mut().flatten() {
        if let (true, Value::String(text)) = (is_typed, &*cell) {
            *cell = read_typed(text);
        }
        match cell {
            Value::String(text) if text.encode_utf16().count() > 50_000 => {
                return invalid(
                    "Your input contains more than the maximum of 50000 characters in a single cell.",
                );
            }
            Value::Array(_) | Value::Object(_) => return invalid("Invalid values: struct_value"),
            _ => {}
        }
    }
    Ok(rows)
}

/// Reads a text as somebody typed it: behind an apostrophe it is a text. Whatever else is a date here, `=2026-11-20`, as only
/// dates are sent without.
fn read_typed(text: &str) -> Value {
    match text.strip_prefix('\'') {
        Some(text) => text.into(),
        None => {
            let is_date = |found: char| found.is_ascii_digit() || matches!(found, '-' | ' ' | ':');
            assert!(
                text.starts_with(|first: char| first.is_ascii_digit()) && text.chars().all(is_date),
                "{text}"
            );
            json!(format!("={text}"))
        }
    }
}

/// The column of a cell in the first row: 0 for `A1`.
fn column_of(cell: &str) -> Option<usize> {
    let letters = cell.strip_suffix('1').filter(|letters| !letters.is_empty())?;
    let add = |sum: usize, letter: u8| {
        letter.is_ascii_uppercase().then(|| sum * 26 + usize::from(letter - b'A') + 1)
    };
    letters.bytes().try_fold(0, add).map(|number| number - 1)
}
