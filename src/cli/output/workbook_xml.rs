//! The parts of a workbook as XML.

use std::fmt::Write as _;

use crate::cli::output::table::Cell;

/// Maximum length of a text in a cell, in UTF-16 units.
const MAX_TEXT: usize = 32_767;

/// Largest number of digits of an integer that Excel shows; it replaces the others by zeros.
const MAX_DIGITS: usize = 15;

/// Largest magnitude of a number, according to the specification of Excel.
const MAX_NUMBER: f64 = 9.999_999_999_999_99e307;

/// Index in [`STYLES`] of the style of the header: bold.
const HEADER_STYLE: &str = " s=\"1\"";

macro_rules! declaration {
    () => {
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
    };
}

macro_rules! schema {
    ($path:literal) => {
        concat!("http://schemas.openxmlformats.org/", $path)
    };
}

/// The part that names the workbook.
pub const PACKAGE_RELATIONSHIPS: &str = concat!(
    declaration!(),
    "<Relationships xmlns=\"",
    schema!("package/2006/relationships"),
    "\"><Relationship Id=\"rId1\" Type=\"",
    schema!("officeDocument/2006/relationships/officeDocument"),
    "\" Target=\"xl/workbook.xml\"/></Relationships>",
);

/// The part with the styles of cells: normal and bold.
pub const STYLES: &str = concat!(
    declaration!(),
    "<styleSheet xmlns=\"",
    schema!("spreadsheetml/2006/main"),
    "\"><fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font>",
    "<font><b/><sz val=\"11\"/><name val=\"Calibri\"/></font></fonts>",
    "<fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill>",
    "<fill><patternFill patternType=\"gray125\"/></fill></fills>",
    "<borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border></borders>",
    "<cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"/></cellStyleXfs>",
    "<cellXfs count=\"2\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\"/>",
    "<xf numFmtId=\"0\" fontId=\"1\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyFont=\"1\"/></cellXfs>",
    "<cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles></styleSheet>",
);

/// The sheet before its rows: the first row stays visible.
pub const SHEET_BEGIN: &str = concat!(
    declaration!(),
    "<worksheet xmlns=\"",
    schema!("spreadsheetml/2006/main"),
    "\"><sheetViews><sheetView workbookViewId=\"0\">",
    "<pane ySplit=\"1\" topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/>",
    "</sheetView></sheetViews><sheetData>",
);

/// The sheet after its rows.
pub const SHEET_END: &str = "</sheetData></worksheet>";

/// Returns the name of the part of a sheet, the first being 1.
pub fn sheet_name(sheet: u32) -> String {
    format!("xl/worksheets/sheet{sheet}.xml")
}

/// Returns the part that lists the sheets.
pub fn workbook(sheets: u32) -> String {
    let sheet = |sheet| format!("<sheet name=\"Sheet{sheet}\" sheetId=\"{sheet}\" r:id=\"rId{sheet}\"/>");
    format!(
        "{}<workbook xmlns=\"{}\" xmlns:r=\"{}\"><bookViews><workbookView/></bookViews><sheets>{}</sheets></workbook>",
        declaration!(),
        schema!("spreadsheetml/2006/main"),
        schema!("officeDocument/2006/relationships"),
        (1..=sheets).map(sheet).collect::<String>(),
    )
}

/// Returns the part that says where the sheets and the styles are.
pub fn workbook_relationships(sheets: u32) -> String {
    let relationship = |id: u32, kind: &str, target: &str| {
        let types = schema!("officeDocument/2006/relationships");
        format!("<Relationship Id=\"rId{id}\" Type=\"{types}/{kind}\" Target=\"{target}\"/>")
    };
    let sheet = |sheet| relationship(sheet, "worksheet", &format!("/{}", sheet_name(sheet)));
    format!(
        "{}<Relationships xmlns=\"{}\">{}{}</Relationships>",
        declaration!(),
        schema!("package/2006/relationships"),
        (1..=sheets).map(sheet).collect::<String>(),
        relationship(sheets + 1, "styles", "/xl/styles.xml"),
    )
}

/// Returns the part with the content type of each part.
pub fn content_types(sheets: u32) -> String {
    let part = |name: &str, kind: &str| {
        let types = "application/vnd.openxmlformats-officedocument.spreadsheetml";
        format!("<Override PartName=\"/{name}\" ContentType=\"{types}.{kind}+xml\"/>")
    };
    format!(
        "{}<Types xmlns=\"{}\"><Default Extension=\"rels\" ContentType=\"{}\"/>{}{}{}</Types>",
        declaration!(),
        schema!("package/2006/content-types"),
        "application/vnd.openxmlformats-package.relationships+xml",
        part("xl/workbook.xml", "sheet.main"),
        part("xl/styles.xml", "styles"),
        (1..=sheets).map(|sheet| part(&sheet_name(sheet), "worksheet")).collect::<String>(),
    )
}

/// Returns the name of the column at `index`: A to Z, AA to ZZ, AAA.
pub fn column_name(index: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(index % 26).expect("less than 26"));
    match index / 26 {
        0 => letter.to_string(),
        more => column_name(more - 1) + &letter.to_string(),
    }
}

/// Returns row `number`, the first being the header, and the number of its cells whose text was cut.
pub fn row(columns: &[String], number: u32, cells: &[Cell], raw: bool) -> (String, u64) {
    let mut xml = format!("<row r=\"{number}\">");
    let mut cut = 0;
    let style = if number == 1 { HEADER_STYLE } else { "" };
    for (column, cell) in columns.iter().zip(cells) {
        let text = cell.export_text(raw);
        let _infallible = match &*text {
            "" => Ok(()),
            "true" | "false" if !cell.is_text() => {
                write!(xml, "<c r=\"{column}{number}\" t=\"b\"><v>{}</v></c>", u8::from(text == "true"))
            }
            number_text if !cell.is_text() && is_number(number_text) => {
                write!(xml, "<c r=\"{column}{number}\"><v>{number_text}</v></c>")
            }
            text => {
                let kept = cut_text(text);
                cut += u64::from(kept.is_some());
                let text = text_xml(&kept.unwrap_or_else(|| text.to_owned()));
                write!(xml, "<c r=\"{column}{number}\"{style} t=\"inlineStr\"><is>{text}</is></c>")
            }
        };
    }
    xml.push_str("</row>");
    (xml, cut)
}

/// Whether Excel shows the number `text`, which is in the syntax of JSON, with all its digits.
fn is_number(text: &str) -> bool {
    let is_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_long = is_integer && text.trim_start_matches('-').len() > MAX_DIGITS;
    !is_long && text.parse::<f64>().is_ok_and(|number| number.abs() <= MAX_NUMBER)
}

/// Returns the beginning of a text that is too long for a cell, with an ellipsis.
fn cut_text(text: &str) -> Option<String> {
    if text.len() <= MAX_TEXT {
        return None;
    }
    let mut units = 0;
    let mut end = 0;
    for (index, character) in text.char_indices() {
        units += character.len_utf16();
        if units > MAX_TEXT {
            return Some(format!("{}…", &text[..end]));
        }
        if units < MAX_TEXT {
            end = index + character.len_utf8();
        }
    }
    None
}

/// Returns `text` as the content of a cell.
///
/// Excel decodes `_x0041_` to `A`, and some other programs do not. Where a text has that form it is split into two runs, so
/// that all show it as it is.
fn text_xml(text: &str) -> String {
    const BEGIN: &str = "<t xml:space=\"preserve\">";
    let mut xml = BEGIN.to_owned();
    let mut has_runs = false;
    for (index, character) in text.char_indices() {
        match character {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            // A parser would convert it to a line feed.
            '\r' => xml.push_str("&#13;"),
            '\t' | '\n' => xml.push(character),
            // XML 1.0 §2.2 does not allow these.
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            '_' if is_escape(&text.as_bytes()[index..]) => {
                has_runs = true;
                xml.push_str("_</t></r><r>");
                xml.push_str(BEGIN);
            }
            _ => xml.push(character),
        }
    }
    xml.push_str("</t>");
    if has_runs { format!("<r>{xml}</r>") } else { xml }
}

/// Whether `text` begins with an escaped character, such as `_x0041_` (ECMA-376 Part 1 §22.9.2.19).
fn is_escape(text: &[u8]) -> bool {
    let code = text.strip_prefix(b"_x").and_then(|rest| rest.split_at_checked(4));
    code.is_some_and(|(code, rest)| code.iter().all(u8::is_ascii_hexdigit) && rest.starts_with(b"_"))
}
