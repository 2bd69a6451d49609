//! Handlers of the pages where people answer forms.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, ORIGIN, REFERER, RETRY_AFTER,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use form_urlencoded::byte_serialize;
use url::Url;

use crate::api::Code;
use crate::app::{ApiError, Result, Visitor};
use crate::domain::form::Form;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::form::settings::{Confirmation as FormConfirmation, Settings};
use crate::domain::json::Value;
use crate::domain::submission::SubmissionStatus;
use crate::domain::validation::violation::Violation;
use crate::http::server::client_address::client_network;
use crate::http::wire::extract::read_fields;
use crate::http::wire::responses::with_header;
use crate::http::wire::state::{ClientAddress, PageFailure, Shared};
use crate::id::SubmissionId;
use crate::page::answers::{prefill, to_answers};
use crate::page::fields::Fields;
use crate::page::spam::is_suspicious;
use crate::page::{
    Confirmation, EMBED_SCRIPT, FORM_SCRIPT, FormPage, Html, LOGIC_SCRIPT, Message, Notice, home,
};

/// The routes' templates, for metrics.
pub(crate) const TEMPLATES: [&str; 7] =
    ["/", "/f/{form}", "/f/{form}/", "/f/{form}/done", "/_/{script}", "/embed.js", "/robots.txt"];

/// Returns the routes of the pages. They are not part of the API and its OpenAPI document.
pub(crate) fn routes() -> Router<Shared> {
    let [home, form, slash, done, script, embed_script, robots] = TEMPLATES;
    Router::new()
        .route(home, get(get_home))
        .route(form, get(get_form_page).post(post_form_page))
        .route(slash, get(without_slash))
        .route(done, get(get_confirmation))
        .route(script, get(get_script))
        .route(embed_script, get(async || script_response(EMBED_SCRIPT, "max-age=3600")))
        .route(robots, get(async || text("text/plain; charset=utf-8", "User-agent: *\nDisallow: /\n")))
}

async fn get_home() -> Response {
    page(StatusCode::OK, home(), None)
}

/// Redirects an address that ends in a slash to the form's page.
async fn without_slash(uri: Uri) -> Response {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    redirect(&format!("{}{query}", uri.path().trim_end_matches('/')))
}

async fn get_script(Path(name): Path<String>) -> Response {
    match [&FORM_SCRIPT, &LOGIC_SCRIPT].into_iter().find(|script| script.name == name) {
        Some(script) => script_response(&script.text, "public, max-age=31536000, immutable"),
        None => not_found(),
    }
}

/// The field with the page that visitors are sent to after another site's form.
const NEXT: &str = "_next";

/// Answers on a page, and where they come from.
struct Posted {
    fields: Arc<Fields>,
    /// Whether the answers were sent from one of the form's origins.
    is_from_listed_site: bool,
}

/// The page of one form that a visitor asks for.
struct Visit {
    visitor: Visitor,
    /// The form's name in the address: its id or slug.
    name: String,
    query: Fields,
}

impl Visit {
    /// Finds the form that is called `name` in the address `uri`; `None` if a visitor may not see it.
    async fn begin(shared: &Shared, name: String, uri: &Uri) -> Result<Option<Self>> {
        let query = Fields::parse(uri.query().unwrap_or_default().as_bytes());
        let preview = Some(query.value("_preview")).filter(|token| !token.is_empty());
        let visitor = shared.app.visitor(&name, preview).await?;
        Ok(visitor.map(|visitor| Self { visitor, name, query }))
    }

    fn form(&self) -> &Form {
        &self.visitor.current.form
    }

    /// Returns the part of the query that later pages need too.
    fn kept_query(&self) -> String {
        let preview: String = byte_serialize(self.query.value("_preview").as_bytes()).collect();
        let preview = (!preview.is_empty()).then(|| format!("_preview={preview}"));
        let embedded = self.query.contains("_embed").then(|| "_embed".to_owned());
        let kept: Vec<_> = [preview, embedded].into_iter().flatten().collect();
        if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) }
    }

    /// Renders the page of the form with these `fields`, and a new token.
    async fn form_page(
        &self,
        status: StatusCode,
        fields: &Fields,
        violations: &[Violation],
        notice: Option<Notice>,
    ) -> Result<Response> {
        let token = self.visitor.new_token().await?;
        let html = FormPage {
            form: self.form(),
            version: &self.visitor.current.version,
            fields,
            violations,
            notice,
            token: &token,
            action: &format!("{}{}", self.name, self.kept_query()),
            next: Some(fields.value(NEXT)).filter(|next| !next.is_empty()),
            is_preview: self.visitor.is_preview,
            is_embedded: self.query.contains("_embed"),
        };
        Ok(page(status, html.render(), Some(self.form())))
    }

    /// Returns the page that says why the form takes no answers now; `None` if it takes them.
    async fn closed_page(&self, fields: &Fields) -> Result<Option<Response>> {
        let Err(reason) = self.visitor.accepting().await? else { return Ok(None) };
        let status = match reason {
            AcceptingReason::NotOpenYet => StatusCode::FORBIDDEN,
            AcceptingReason::Draft => StatusCode::NOT_FOUND,
            AcceptingReason::Closed | AcceptingReason::Expired | AcceptingReason::Full => StatusCode::GONE,
        };
        let version = &self.visitor.current.version;
        let message = Message::not_accepting(self.form(), reason, version, fields);
        Ok(Some(page(status, message.render(), Some(self.form()))))
    }

    async fn post(
        &self,
        shared: &Shared,
        posted: &Posted,
        client: Option<ClientAddress>,
    ) -> Result<Response> {
        let Posted { fields, is_from_listed_site } = posted;
        if let Some(seconds) = wait_of(shared, client) {
            let status = StatusCode::TOO_MANY_REQUESTS;
            let response = self.form_page(status, fields, &[], Some(Notice::TooMany(seconds))).await?;
            return Ok(with_retry_after(response, Some(seconds)));
        }
        let token = self.visitor.read_token(fields.value("_t")).await?;
        if token.is_none() && !is_from_listed_site {
            if let Some(closed) = self.closed_page(fields).await? {
                return Ok(closed);
            }
            let notice = match fields.value("_t") {
                "" => Notice::FromElsewhere,
                _ => Notice::Expired,
            };
            return self.form_page(StatusCode::UNPROCESSABLE_ENTITY, fields, &[], Some(notice)).await;
        }
        let body = self.body(fields).await?;
        let opened_at = token.map(|token| token.opened_at);
        let status = match is_suspicious(fields, opened_at, self.visitor.now()) {
            true => SubmissionStatus::Quarantined,
            false => SubmissionStatus::Completed,
        };
        let stored = match self.visitor.is_preview {
            true => self.visitor.check(&body).await.map(|_checked| None),
            false => {
                self.visitor.submit(&body, token, status).await.map(|accepted| Some(accepted.submission.id))
            }
        };
        match stored {
            Ok(Some(id)) => Ok(redirect(&self.next_address(fields, id))),
            Ok(None) => self.form_page(StatusCode::OK, fields, &[], Some(Notice::PreviewAccepted)).await,
            Err(error) => self.refused(fields, error).await,
        }
    }

    /// Writes the answers in `fields` as the body of a submission.
    async fn body(&self, fields: &Arc<Fields>) -> Result<String> {
        let (version, language) =
            (Arc::clone(&self.visitor.current.version), self.form().settings.language());
        let (size, fields) = (fields.size(), Arc::clone(fields));
        let answers = self.visitor.run(size, move || to_answers(&version, &fields, language)).await?;
        Ok(format!("{{\"answers\":{}}}", Value::Object(answers)))
    }

    /// Returns where a visitor is sent whose answers were stored as `id`.
    fn next_address(&self, fields: &Fields, id: SubmissionId) -> String {
        if let Some(next) = Some(fields.value(NEXT)).filter(|next| !next.is_empty()) {
            return next.to_owned();
        }
        if let Some(FormConfirmation::RedirectUrl(url)) = &self.form().settings.confirmation {
            return Url::parse(url).map_or_else(|_invalid| url.clone(), String::from);
        }
        let embedded = if self.query.contains("_embed") { "&_embed" } else { "" };
        format!("/f/{}/done?r={id}{embedded}", self.name)
    }

    /// Shows the page again, with the answers and why they were not stored.
    async fn refused(&self, fields: &Fields, error: ApiError) -> Result<Response> {
        let status = StatusCode::from_u16(error.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        match error.problem.code.known() {
            Some(Code::ValidationFailed) => self.form_page(status, fields, &error.problem.errors, None).await,
            Some(Code::IdempotencyKeyReused) => {
                self.form_page(status, fields, &[], Some(Notice::AlreadySent)).await
            }
            Some(Code::FormNotFound) => Ok(not_found()),
            _ if status == StatusCode::CONFLICT => {
                let closed = self.closed_page(fields).await?;
                closed.map_or_else(|| Err(ApiError::overloaded()), Ok)
            }
            _ => {
                let response = self.form_page(status, fields, &[], Some(Notice::TryAgain)).await?;
                let mut response = with_retry_after(response, error.retry_after);
                response.extensions_mut().insert(PageFailure(error));
                Ok(response)
            }
        }
    }
}

async fn get_form_page(State(shared): State<Shared>, Path(name): Path<String>, uri: Uri) -> Response {
    let shown = async {
        let Some(visit) = Visit::begin(&shared, name, &uri).await? else { return Ok(not_found()) };
        if let Some(closed) = visit.closed_page(&Fields::default()).await? {
            return Ok(closed);
        }
        let version = &visit.visitor.current.version;
        let fields = prefill(version, &visit.query, visit.form().settings.language(), visit.visitor.now());
        visit.form_page(StatusCode::OK, &fields, &[], None).await
    };
    shown.await.unwrap_or_else(failed)
}

async fn post_form_page(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    client: Option<Extension<ClientAddress>>,
    request: Request,
) -> Response {
    let uri = request.uri().clone();
    let origin = sending_origin(request.headers());
    let client = client.map(|Extension(client)| client);
    let answered = async {
        let Some(visit) = Visit::begin(&shared, name, &uri).await? else { return Ok(not_found()) };
        let mut fields = read_fields(request, &shared).await?;
        let settings = &visit.form().settings;
        let listed_origin = origin.filter(|origin| settings.allows_origin(origin));
        let next = allowed_address(settings, fields.value(NEXT), listed_origin.as_deref());
        fields.set(NEXT, &next.unwrap_or_default());
        let posted = Posted { fields: Arc::new(fields), is_from_listed_site: listed_origin.is_some() };
        visit.post(&shared, &posted, client).await
    };
    answered.await.unwrap_or_else(failed)
}

async fn get_confirmation(State(shared): State<Shared>, Path(name): Path<String>, uri: Uri) -> Response {
    let shown = async {
        let Some(visit) = Visit::begin(&shared, name, &uri).await? else { return Ok(not_found()) };
        let reference = Some(visit.query.value("r")).filter(|text| text.parse::<SubmissionId>().is_ok());
        let again = format!("../{}{}", visit.name, visit.kept_query());
        let confirmation = Confirmation { form: visit.form(), reference, again: &again };
        Ok(page(StatusCode::OK, confirmation.render(), Some(visit.form())))
    };
    shown.await.unwrap_or_else(failed)
}

/// Returns the seconds that the client has to wait before it may send answers again, if it has.
fn wait_of(shared: &Shared, client: Option<ClientAddress>) -> Option<u64> {
    let (Some(posts), Some(ClientAddress(address))) = (&shared.page_posts, client) else { return None };
    posts.try_acquire(client_network(address), shared.app.now()).err()
}

/// Returns the origin of the site that sent a form: the header `Origin`, else that of `Referer`.
fn sending_origin(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text(ORIGIN) {
        Some(origin) => Some(origin.to_owned()),
        None => Some(Url::parse(text(REFERER)?).ok()?.origin().ascii_serialization()),
    }
}

/// Returns the address `next`, if it is a page of one of the form's origins; a path is one of the `site`.
fn allowed_address(settings: &Settings, next: &str, site: Option<&str>) -> Option<String> {
    let site = site.and_then(|site| Url::parse(site).ok());
    let url = Url::options().base_url(site.as_ref()).parse(next).ok().filter(|_| !next.is_empty())?;
    let is_page = matches!(url.scheme(), "http" | "https") && url.username().is_empty();
    (is_page && settings.allows_origin(&url.origin().ascii_serialization())).then(|| url.into())
}

fn not_found() -> Response {
    page(StatusCode::NOT_FOUND, Message::not_found().render(), None)
}

/// Returns the page for an error before there was a form to show.
fn failed(error: ApiError) -> Response {
    let status = StatusCode::from_u16(error.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let text = match &error.problem.detail {
        Some(detail) if status.is_client_error() => detail.clone(),
        _ => "The server cannot do this at the moment. Go back, and try again in a moment.".to_owned(),
    };
    let response = page(status, Message::failure(&text).render(), None);
    let mut response = with_retry_after(response, error.retry_after);
    response.extensions_mut().insert(PageFailure(error));
    response
}

/// Returns a page of `form`, or of none, with its security policy.
fn page(status: StatusCode, html: Html, form: Option<&Form>) -> Response {
    let mut response = text("text/html; charset=utf-8", html.text);
    *response.status_mut() = status;
    // Not `no-store`: browsers would have nothing to go back to.
    let response = with_header(response, CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    let redirect = form.and_then(|form| match &form.settings.confirmation {
        // After a form was sent, browsers only follow redirects to where it might have been sent.
        Some(FormConfirmation::RedirectUrl(url)) => {
            Some(Url::parse(url).ok()?.origin().ascii_serialization())
        }
        Some(FormConfirmation::Message(_)) | None => None,
    });
    // A host may have what begins another directive.
    let redirect = redirect.filter(|origin: &String| !origin.contains([';', ',', '\'']));
    let ancestors = match form.map(|form| &form.settings.origins) {
        Some(Some(origins)) => origins.iter().fold("'self'".to_owned(), |all, one| all + " " + one.as_str()),
        Some(None) => "*".to_owned(),
        None => "'none'".to_owned(),
    };
    let policy = format!(
        "default-src 'none'; style-src {}; script-src 'self'; img-src data:; form-action 'self' {}; \
         base-uri 'none'; frame-ancestors {ancestors}",
        html.style_hashes.join(" "),
        redirect.unwrap_or_default(),
    );
    with_header(response, CONTENT_SECURITY_POLICY, policy)
}

/// Adds the `seconds` after which a retry makes sense, if there are any.
fn with_retry_after(response: Response, seconds: Option<u64>) -> Response {
    match seconds {
        Some(seconds) => with_header(response, RETRY_AFTER, seconds),
        None => response,
    }
}

fn redirect(address: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    with_header(response, LOCATION, address)
}

fn script_response(script: &'static str, cache: &'static str) -> Response {
    let response = text("text/javascript; charset=utf-8", script);
    with_header(response, CACHE_CONTROL, HeaderValue::from_static(cache))
}

fn text(content_type: &'static str, body: impl Into<Body>) -> Response {
    let content_type = HeaderValue::from_static(content_type);
    with_header(Response::new(body.into()), CONTENT_TYPE, content_type)
}
