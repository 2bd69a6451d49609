//! Extractors for path parameters, headers and bodies. Their rejections are problem documents.

use std::convert::Infallible;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, Version};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::api::Code;
use crate::app::IdempotentRequest;
use crate::app::{ApiError, Result};
use crate::domain::json;
use crate::domain::submission::batch::BatchFormat;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::shortened;
use crate::http::server::budget::{AuthenticatedKey, BudgetOwner, Reservation, SMALL};
use crate::http::wire::accept::{JSON, JSON_LINES};
use crate::http::wire::body::read_body;
use crate::http::wire::state::Shared;
use crate::keyed_semaphore::{FairPermit, FairSemaphore};
use crate::page::fields::{Fields as PageFields, is_utf8};

pub(crate) struct PathParams<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self> {
        let path = Path::<T>::from_request_parts(parts, shared).await;
        path.map(|Path(params)| Self(params)).map_err(|rejection| match rejection {
            // A path that does not decode to UTF-8 cannot name anything.
            PathRejection::FailedToDeserializePathParams(_) => ApiError::new(Code::RouteNotFound),
            _ => ApiError::new(Code::Internal),
        })
    }
}

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The text of a body, not yet parsed, with the reservation and permit it holds until the operation ends.
pub(crate) struct BodyText {
    bytes: Bytes,
    uri: Uri,
    idempotency_key: Option<HeaderValue>,
    _reservation: Reservation,
    _permit: Option<FairPermit>,
}

impl BodyText {
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("reading the body checked that it is UTF-8")
    }

    /// Returns the request for an operation that may be repeated. Fails if the value of `Idempotency-Key` is not valid.
    pub(crate) fn repeatable(&self) -> Result<IdempotentRequest<'_>> {
        let is_valid = |key: &&str| {
            (1..=255).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        let detail = "`Idempotency-Key` must have 1 to 255 printable ASCII characters";
        let idempotency_key = match &self.idempotency_key {
            Some(value) => {
                let key = value.to_str().ok().filter(is_valid);
                Some(key.ok_or_else(|| ApiError::with_detail(Code::InvalidHeader, detail))?)
            }
            None => None,
        };
        let query = self.uri.query().unwrap_or_default();
        Ok(IdempotentRequest { idempotency_key, query, body: self.as_str() })
    }
}

/// Reads a JSON body of at most `limit` bytes.
pub(crate) async fn read_json(request: Request, limit: usize, shared: &Shared) -> Result<BodyText> {
    check_type(request.headers(), &[JSON])?;
    read_text(request, limit, None, shared).await
}

/// Reads the body of a batch of at most `limit` bytes, in the format that its media type names.
pub(crate) async fn read_batch(
    request: Request,
    limit: usize,
    shared: &Shared,
) -> Result<(BodyText, BatchFormat)> {
    check_type(request.headers(), &[JSON, JSON_LINES])?;
    let is_json = check_type(request.headers(), &[JSON]).is_ok();
    let format = if is_json { BatchFormat::Json } else { BatchFormat::JsonLines };
    Ok((read_text(request, limit, Some(&shared.budgets.changes), shared).await?, format))
}

/// Reads an optional JSON body. If there is one, its media type must be right.
pub(crate) async fn read_optional_json(request: Request, shared: &Shared) -> Result<BodyText> {
    let typed = check_type(request.headers(), &[JSON]);
    let body = read_text(request, shared.settings.max_body, Some(&shared.budgets.changes), shared).await?;
    if body.as_str().is_empty() { Ok(body) } else { typed.map(|()| body) }
}

/// Reads a JSON merge patch (RFC 7396) of at most `limit` bytes.
pub(crate) async fn read_patch(request: Request, limit: usize, shared: &Shared) -> Result<BodyText> {
    check_type(request.headers(), &[JSON, MERGE_PATCH])?;
    read_text(request, limit, Some(&shared.budgets.changes), shared).await
}

/// Reads the body of an operation that takes none: nothing, or an object without members. Anything else is refused rather
/// than ignored.
pub(crate) async fn read_empty_body(request: Request, shared: &Shared) -> Result<BodyText> {
    let body = read_text(request, shared.settings.max_body, Some(&shared.budgets.changes), shared).await?;
    if body.as_str().is_empty() {
        return Ok(body);
    }
    let (value, mut violations) = (json::parse(body.as_str())?, Vec::new());
    if let Some(fields) = Fields::open(&value, "", "the body", &mut violations) {
        fields.close(&[]);
    }
    if violations.is_empty() {
        return Ok(body);
    }
    Err(ApiError::invalid("this operation takes no body".to_owned(), violations))
}

/// Reads the body, whatever its media type. A large one then waits for a permit for large bodies, a small one for a permit
/// of `small`, if given: for operations that return a whole object, however small the request.
///
/// A request that needs a permit may have a large response, and is refused while the response budget is exhausted: once
/// something has changed it would be too late. Over HTTP/2, this applies to every request with a body.
async fn read_text(
    request: Request,
    limit: usize,
    small: Option<&FairSemaphore<BudgetOwner>>,
    shared: &Shared,
) -> Result<BodyText> {
    let body = read_bytes(request, limit, small, shared).await?;
    match std::str::from_utf8(&body.bytes) {
        Ok(_) => Ok(body),
        Err(error) => {
            let detail = format!("the body is not valid UTF-8 after byte {}", error.valid_up_to());
            Err(ApiError::with_detail(Code::MalformedJson, detail))
        }
    }
}

/// Reads the body as [`read_text`] does, whatever bytes it has.
async fn read_bytes(
    request: Request,
    limit: usize,
    small: Option<&FairSemaphore<BudgetOwner>>,
    shared: &Shared,
) -> Result<BodyText> {
    let (budgets, uri) = (&shared.budgets, request.uri().clone());
    let idempotency_key = request.headers().get(IDEMPOTENCY_KEY).cloned();
    let owner = request.extensions().get::<AuthenticatedKey>().and_then(AuthenticatedKey::owner);
    let mut reservation = budgets.bodies.charge(owner, 0);
    let is_http2 = request.version() == Version::HTTP_2;
    let slow = budgets.slow_bodies.charge(owner, 0);
    let bytes = read_body(request, limit, &shared.settings, &mut reservation, slow).await?;
    let permits = if bytes.len() <= SMALL { small } else { Some(&budgets.large_bodies) };
    let permit = match permits {
        Some(permits) => Some(permits.acquire(owner).await.ok_or_else(ApiError::overloaded)?),
        None => None,
    };
    if (permit.is_some() || is_http2) && budgets.responses.reserve(owner, 1).is_none() {
        return Err(ApiError::overloaded());
    }
    Ok(BodyText { bytes, uri, idempotency_key, _reservation: reservation, _permit: permit })
}

/// Reads the fields of an HTML form. A file that was chosen is refused: no question takes one.
pub(crate) async fn read_fields(request: Request, shared: &Shared) -> Result<PageFields> {
    check_type(request.headers(), &[URL_ENCODED, MULTIPART])?;
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let boundary = content_type.and_then(|text| multer::parse_boundary(text).ok());
    let body = read_bytes(request, shared.settings.max_body, None, shared).await?;
    let not_utf8 = || {
        let detail = "the form is not sent as UTF-8; give it the attribute `accept-charset=\"utf-8\"`";
        ApiError::with_detail(Code::UnsupportedMediaType, detail)
    };
    let Some(boundary) = boundary else {
        let fields =
            if is_utf8(&body.bytes) { PageFields::parse(&body.bytes) } else { return Err(not_utf8()) };
        return check_count(fields);
    };
    let bytes = body.bytes.clone();
    let parts = futures_util::stream::once(std::future::ready(Ok::<_, Infallible>(bytes)));
    let mut parts = multer::Multipart::new(parts, boundary);
    let malformed = |error: multer::Error| {
        ApiError::with_detail(
            Code::MalformedJson,
            format!("the body is not valid multipart/form-data: {error}"),
        )
    };
    let mut fields = PageFields::default();
    while let Some(part) = parts.next_field().await.map_err(malformed)? {
        let name = part.name().unwrap_or_default().to_owned();
        let is_file = part.file_name().is_some();
        let bytes = part.bytes().await.map_err(malformed)?;
        let text = std::str::from_utf8(&bytes).map_err(|_error| not_utf8());
        if is_file && !bytes.is_empty() {
            let detail = format!("the field `{}` has a file; files are not accepted", shortened(&name));
            return Err(ApiError::with_detail(Code::UnsupportedMediaType, detail));
        }
        fields.add(&name, text?);
    }
    check_count(fields)
}

/// Maximum fields that are posted to a page.
const MAX_FIELDS: usize = 5_000;

fn check_count(fields: PageFields) -> Result<PageFields> {
    let count: usize = fields.iter().map(|(_, values)| values.len()).sum();
    if count <= MAX_FIELDS {
        return Ok(fields);
    }
    let detail = format!("the form has {count} fields, {MAX_FIELDS} are allowed");
    Err(ApiError::with_detail(Code::BodyTooLarge, detail))
}

const URL_ENCODED: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

const MERGE_PATCH: &str = "application/merge-patch+json";

fn check_type(headers: &HeaderMap, types: &[&str]) -> Result<()> {
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parameters = sent.split(';');
    let name = parameters.next().unwrap_or_default().trim();
    if !types.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        let detail = format!("send the header `Content-Type: {}`", types.join("` or `Content-Type: "));
        return Err(ApiError::with_detail(Code::UnsupportedMediaType, detail));
    }
    if !parameters.all(|parameter| is_utf_8(parameter.trim())) {
        let detail = "the body must be UTF-8, declared as `charset=utf-8` or without a charset";
        return Err(ApiError::with_detail(Code::UnsupportedMediaType, detail));
    }
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            Err(ApiError::with_detail(
                Code::UnsupportedMediaType,
                "compressed request bodies are not supported; send it without `Content-Encoding`",
            ))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether a parameter of a media type is anything but `charset`, or `charset=utf-8`.
fn is_utf_8(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, charset)) if name.eq_ignore_ascii_case("charset") => {
            charset.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        Some(_) | None => true,
    }
}
