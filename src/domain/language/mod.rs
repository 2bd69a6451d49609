//! The texts that respondents read, in eight languages: messages about answers, and the words of the page.
//!
//! To add a language: a file with its [`Texts`], and its two lines in [`Language`]. A missing text does not compile. Texts
//! for developers, such as help, hints and messages about definitions, are English.

mod arabic;
mod chinese;
mod english;
mod french;
mod german;
mod japanese;
mod portuguese;
mod spanish;

use std::fmt::{Display, Write as _};

use crate::domain::open_enum::named_enum;

/// The texts of developers, and of forms in a language that is not known.
pub const ENGLISH: &Texts = &english::TEXTS;

named_enum! {
    /// A language that the texts exist in, named by its BCP 47 tag.
    #[derive(Default)]
    Language {
        #[default]
        English = "en",
        German = "de",
        French = "fr",
        Spanish = "es",
        Portuguese = "pt",
        Arabic = "ar",
        Japanese = "ja",
        Chinese = "zh",
    }
}

impl Language {
    /// Returns the language of a BCP 47 `tag`, such as `de-AT`, by its primary subtag; English if it is not known.
    pub fn of_tag(tag: Option<&str>) -> Self {
        let primary = tag.unwrap_or_default().split('-').next().unwrap_or_default();
        Self::parse(&primary.to_ascii_lowercase()).unwrap_or_default()
    }

    pub fn texts(self) -> &'static Texts {
        match self {
            Self::English => ENGLISH,
            Self::German => &german::TEXTS,
            Self::French => &french::TEXTS,
            Self::Spanish => &spanish::TEXTS,
            Self::Portuguese => &portuguese::TEXTS,
            Self::Arabic => &arabic::TEXTS,
            Self::Japanese => &japanese::TEXTS,
            Self::Chinese => &chinese::TEXTS,
        }
    }

    /// Whether a comma separates the decimals of a number.
    pub fn decimal_comma(self) -> bool {
        matches!(self, Self::German | Self::French | Self::Spanish | Self::Portuguese)
    }
}

/// Returns the direction of the script of a BCP 47 `tag`, for `dir` in HTML.
pub fn direction(tag: &str) -> &'static str {
    const RIGHT_TO_LEFT: [&str; 9] = ["ar", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"];
    let primary = tag.split('-').next().unwrap_or_default();
    if RIGHT_TO_LEFT.iter().any(|known| known.eq_ignore_ascii_case(primary)) { "rtl" } else { "ltr" }
}

/// Declares [`Texts`] from the names of its texts.
macro_rules! texts {
    ($($name:ident)*) => {
        /// All texts of a language. Those with places, such as `{max}`, are templates for [`fill`].
        #[derive(Debug)]
        pub struct Texts { $(pub $name: &'static str,)* }

        impl Texts {
            /// Returns each text with its name.
            pub fn all(&self) -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}

// In the order of the files of the languages.
texts! {
    comma quoted

    error_prefix problem_heading optional send sending back next start_again send_another step reference your_answers
    choose other other_text yes no agree choose_several choose_at_least choose_at_most choose_between
    up_to_characters characters_left characters_too_many rank_hint place stars utc_hint local_time_hint
    answer_only_if leave_empty scroll_hint draft_restored not_sent
    send_from_here page_expired already_sent try_again_text
    preview preview_accepted

    thanks_title thanks_text closed_title closed_text full_title full_text not_open_title not_open_text
    not_found_title not_found_text too_many_title too_many_text

    needs_answer not_asked asked_depends_on not_answerable enter instead_of
    type_null type_boolean type_number type_text type_list type_object
    at_least_characters at_most_characters at_most_bytes number_characters matching one_line control_character
    email domains_allowed domain_denied schemes_allowed option rows already_chosen other_object

    expects_line expects_lines expects_email expects_url expects_phone expects_phone_of
    expects_number expects_integer range_between range_from range_to steps
    expects_boolean expects_consent expects_hidden expects_nothing expects_option expects_list expects_ranking
    expects_rows expects_each_row expects_date expects_time expects_datetime date_from date_to

    and or not if_eq if_ne if_includes if_matches if_lt if_lte if_gt if_gte
    if_before if_until if_after if_since if_answered if_unanswered
}

impl Texts {
    /// Returns `text`, such as the title of a question, in the quotation marks of the language.
    pub fn quote(&self, text: &str) -> String {
        fill(self.quoted, &[("text", &text)])
    }
}

/// Fills the places of `template`, such as `{max}`, with `values`. Braces in values are kept as they are.
pub fn fill(template: &str, values: &[(&str, &dyn Display)]) -> String {
    let mut parts = template.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for (name, rest) in parts.filter_map(|part| part.split_once('}')) {
        for (_, value) in values.iter().filter(|(known, _)| *known == name) {
            write!(filled, "{value}").expect("a string can be written to");
        }
        filled += rest;
    }
    filled
}
