//! The look of a form's page: two colours and a logo.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::domain::json::Value;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation};

/// Background of the page in the light and in the dark scheme.
const LIGHT: Color = Color([0xff, 0xff, 0xff]);
const DARK: Color = Color([0x14, 0x16, 0x1a]);

/// Minimum contrast of text (WCAG 2.2, success criterion 1.4.3).
const MIN_CONTRAST: f64 = 4.5;

/// Maximum bytes of a logo: it is sent with every page.
pub const MAX_LOGO: usize = 16 << 10;

/// Maximum characters of a logo as a `data:` URL.
const MAX_LOGO_URL: usize = 64 + MAX_LOGO.div_ceil(3) * 4;

const LOGO_TYPES: [&str; 3] = ["image/png", "image/webp", "image/svg+xml"];

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Theme {
    /// Colour of buttons, links and what is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent: Option<Color>,
    /// The accent of the dark scheme. If not set, it is derived from `accent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent_dark: Option<Color>,
    /// A `data:` URL of a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
}

impl Theme {
    /// Parses the setting `theme`, and reports all violations.
    pub(super) fn read(value: &Value, violations: &mut Vec<Violation>) -> Option<Self> {
        let mut fields = Fields::open(value, "/settings/theme", "`theme`", violations)?;
        let accent = read_accent(&mut fields, "accent", LIGHT, "a light");
        let accent_dark = read_accent(&mut fields, "accent_dark", DARK, "a dark");
        let logo = fields.text("logo", MAX_LOGO_URL);
        if logo.as_ref().is_some_and(|logo| !is_logo(logo)) {
            let message = "`logo` must be a base64 data: URL of a PNG, WebP or SVG of at most 16 KiB";
            fields.refuse("logo", Rule::InvalidUrl, message);
        }
        fields.close(&[]);
        Some(Self { accent, accent_dark, logo })
    }

    /// Returns the accent of the light and of the dark scheme, if there are any.
    pub fn accents(&self) -> Option<[Color; 2]> {
        let light = self.accent.or(self.accent_dark.map(|dark| dark.toward(Color([0; 3]), LIGHT)))?;
        let dark = self.accent_dark.unwrap_or_else(|| light.toward(LIGHT, DARK));
        Some([light, dark])
    }
}

fn read_accent(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    background: Color,
    scheme: &str,
) -> Option<Color> {
    let text = fields.text(name, 7)?;
    let Ok(color) = text.parse::<Color>() else {
        fields.refuse(name, Rule::InvalidRange, format!("`{name}` must be a colour such as #1a56c4"));
        return None;
    };
    let contrast = color.contrast(background);
    if contrast < MIN_CONTRAST {
        // Rounded down: 4.49 is not 4.5.
        let contrast = (contrast * 10.0).floor() / 10.0;
        let message = format!(
            "{color} has a contrast of {contrast}:1 on {scheme} page, at least {MIN_CONTRAST}:1 is needed"
        );
        let better = color.toward(if background == LIGHT { Color([0; 3]) } else { LIGHT }, background);
        let help = format!("choose another colour, such as {better}");
        fields.refuse(name, Rule::InvalidRange, message).help = Some(help);
    }
    Some(color)
}

/// Whether `url` is a `data:` URL of a picture that pages may show.
fn is_logo(url: &str) -> bool {
    let Some((kind, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) else {
        return false;
    };
    LOGO_TYPES.contains(&kind) && STANDARD.decode(data).is_ok_and(|bytes| bytes.len() <= MAX_LOGO)
}

/// A colour in sRGB, `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Color([u8; 3]);

impl Color {
    /// Contrast ratio from 1 to 21 (WCAG 2.2, definition of "contrast ratio").
    fn contrast(self, other: Self) -> f64 {
        let [lighter, darker] = {
            let [one, two] = [self.luminance(), other.luminance()];
            [one.max(two), one.min(two)]
        };
        (lighter + 0.05) / (darker + 0.05)
    }

    /// Relative luminance from 0 to 1 (WCAG 2.2, definition of "relative luminance").
    fn luminance(self) -> f64 {
        let linear = |channel: u8| match f64::from(channel) / 255.0 {
            channel if channel <= 0.04045 => channel / 12.92,
            channel => ((channel + 0.055) / 1.055).powf(2.4),
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// Mixes the colour with `target`, black or white, until it can be read on `background`.
    fn toward(self, target: Self, background: Self) -> Self {
        const STEPS: u16 = 16;
        let mix = |step: u16| {
            let channel = |index: usize| {
                let [from, to] = [self.0[index], target.0[index]].map(u16::from);
                u8::try_from((from * (STEPS - step) + to * step) / STEPS).unwrap_or(u8::MAX)
            };
            Self([channel(0), channel(1), channel(2)])
        };
        (0..STEPS).map(mix).find(|mixed| mixed.contrast(background) >= MIN_CONTRAST).unwrap_or(target)
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl From<Color> for String {
    fn from(color: Color) -> Self {
        color.to_string()
    }
}

impl TryFrom<String> for Color {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for Color {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = "expected a colour such as #1a56c4";
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6).ok_or(invalid)?;
        let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).map_err(|_number| invalid)?;
        let [_, red, green, blue] = number.to_be_bytes();
        if is_hexadecimal { Ok(Self([red, green, blue])) } else { Err(invalid) }
    }
}
