//! How a page draws a question, and how the fields that are posted become its answer.

use std::ops::RangeInclusive;

use crate::domain::question::labels::Labels;
use crate::domain::question::options::OptionList;

/// The form control that a page shows for a question.
#[derive(Debug, Clone)]
pub enum Control<'a> {
    Line(Line<'a>),
    /// A text area; `max_length` is in characters.
    Lines {
        placeholder: Option<&'a str>,
        max_length: usize,
    },
    /// A row of numbers, with labels of some.
    Scale {
        values: RangeInclusive<i64>,
        labels: &'a Labels,
        is_rating: bool,
    },
    YesNo(&'a Labels),
    /// A box to tick; the text is Markdown.
    Consent(Option<&'a str>),
    One {
        options: &'a OptionList,
        is_dropdown: bool,
        takes_other: bool,
    },
    Several {
        options: &'a OptionList,
        fewest: usize,
        most: usize,
        takes_other: bool,
    },
    /// All options, in order of preference.
    Ranking(&'a OptionList),
    Matrix {
        rows: &'a OptionList,
        columns: &'a OptionList,
        takes_several: bool,
    },
    /// Not drawn. Its value comes from the parameter of the page's address with this name.
    Hidden {
        from_url: Option<&'a str>,
    },
    Statement,
    Page,
}

/// One line of text.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    pub kind: LineKind,
    pub placeholder: Option<&'a str>,
    /// The earliest and the latest date or time, if fixed.
    pub bounds: [Option<&'a str>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Text,
    Email,
    Url,
    Phone,
    Number,
    WholeNumber,
    Date,
    Time,
    DateTime,
}

impl Control<'_> {
    /// About how many bytes of a page it takes.
    pub fn size(&self) -> usize {
        match self {
            Self::One { options, .. } | Self::Several { options, .. } => options.page_size(),
            Self::Ranking(options) => options.len() * options.page_size(),
            Self::Matrix { rows, columns, .. } => rows.page_size() + rows.len() * columns.page_size(),
            Self::Line(_)
            | Self::Lines { .. }
            | Self::Scale { .. }
            | Self::YesNo(_)
            | Self::Consent(_)
            | Self::Hidden { .. }
            | Self::Statement
            | Self::Page => CHOICE,
        }
    }
}

/// Bytes of one choice on a page, without its texts.
pub(super) const CHOICE: usize = 150;

impl LineKind {
    pub(super) fn control(self) -> Control<'static> {
        Control::Line(Line { kind: self, placeholder: None, bounds: [None, None] })
    }
}
