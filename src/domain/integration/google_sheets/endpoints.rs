//! Where Google's services are.

use std::str::FromStr;

use url::Url;

/// The URLs of the services that are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleEndpoints {
    /// Where access tokens are requested.
    pub token: Url,
    /// The spreadsheets of the Sheets API v4, without a slash at the end.
    pub spreadsheets: Url,
}

impl Default for GoogleEndpoints {
    fn default() -> Self {
        let url = |text| Url::parse(text).expect("a constant URL");
        Self {
            token: url("https://oauth2.googleapis.com/token"),
            spreadsheets: url("https://sheets.googleapis.com/v4/spreadsheets"),
        }
    }
}

/// A text is not a URL that can replace Google's hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an http or https URL without user, query and fragment, such as https://google.example.com")]
pub struct InvalidGoogleUrl;

/// Parses the URL that replaces the host of both services.
impl FromStr for GoogleEndpoints {
    type Err = InvalidGoogleUrl;

    fn from_str(text: &str) -> Result<Self, InvalidGoogleUrl> {
        let base = Url::parse(text).map_err(|_error| InvalidGoogleUrl)?;
        let is_plain = base.username().is_empty()
            && base.password().is_none()
            && base.query().is_none()
            && base.fragment().is_none();
        if !is_plain || !matches!(base.scheme(), "https" | "http") {
            return Err(InvalidGoogleUrl);
        }
        let base = base.as_str().trim_end_matches('/');
        let url = |path| Url::parse(&format!("{base}/{path}")).map_err(|_error| InvalidGoogleUrl);
        Ok(Self { token: url("token")?, spreadsheets: url("v4/spreadsheets")? })
    }
}
