//! Tests of a form, in its file or in `NAME.test.yaml` beside it: answers, and what the form should do with them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cli::input::answers::suggest_question;
use crate::cli::input::document::Document;
use crate::cli::input::document::files::EXTENSIONS;
use crate::cli::input::document::read::{read, single};
use crate::cli::input::document::violations::locate_violations;
use crate::cli::output::diagnostics::{Diagnostic, Location, Report};
use crate::cli::output::exit::CliError;
use crate::clock::Timestamp;
use crate::domain::json::{Object, Value, join};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::similar::nearest_first;
use crate::domain::validation::violation::{Rule, Violation, shortened};

/// Maximum characters of the name of a test.
const MAX_NAME: usize = 300;

/// One test of a form.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub location: Location,
    pub answers: Object,
    /// The codes of all errors, by question id; empty if the answers should be accepted.
    pub errors: BTreeMap<String, BTreeSet<String>>,
    /// Ids of questions that must be asked.
    pub asked: Vec<String>,
    /// Ids of questions that must not be asked.
    pub not_asked: Vec<String>,
    /// When the answers are sent; `None` for the present.
    pub now: Option<Timestamp>,
}

/// Reads the forms of the file at `path`, `-` for standard input, with their tests.
///
/// # Errors
/// With all problems of the forms or of their tests; or if a file cannot be read.
pub fn read_tested(path: &Path) -> Result<Vec<(Vec<Case>, Document)>, CliError> {
    let with_cases = |form: Document| (form.cases().unwrap_or_default(), form);
    let mut tested: Vec<_> = read(path)?.into_iter().map(with_cases).collect();
    let beside = EXTENSIONS.iter().map(|extension| path.with_extension(format!("test.{extension}")));
    for file in beside.filter(|file| file.is_file()) {
        let [(cases, form)] = &mut tested[..] else {
            let message = format!("{} has tests of one form, found {}", file.display(), tested.len());
            return Err(CliError::usage_with_help(message, "write the tests of each form into its `tests`"));
        };
        let tests = single(&file, "one list of tests", |_| true)?.read_cases(form);
        let name = file.display().to_string();
        cases.extend(tests.map_err(|diagnostics| Report::of_file(&name, diagnostics))?);
    }
    Ok(tested)
}

/// Returns the file of the form that the tests at `path` are about; `None` if it is not a file of tests.
pub fn tested_form(path: &Path) -> Option<PathBuf> {
    let name = path.file_stem()?.to_str()?.strip_suffix(".test")?;
    let form = |extension| path.with_file_name(format!("{name}.{extension}"));
    Some(EXTENSIONS.map(form).into_iter().find(|form| form.is_file()).unwrap_or_else(|| form(EXTENSIONS[0])))
}

impl Document {
    /// Returns the tests in the form's own file, or all of their problems.
    pub(super) fn cases(&self) -> Result<Vec<Case>, Vec<Diagnostic>> {
        let Some(tests) = &self.tests else { return Ok(Vec::new()) };
        let value = Value::Object(vec![("tests".to_owned(), tests.clone())]);
        Self { value, ..self.clone() }.read_cases(self)
    }

    /// Reads the document, a list of tests of `form` or an object with it; questions are unknown if the form is not valid.
    fn read_cases(&self, form: &Self) -> Result<Vec<Case>, Vec<Diagnostic>> {
        let (tests, start) = self.value.get("tests").map_or((&self.value, ""), |tests| (tests, "/tests"));
        let definition = form.definition();
        let ids = definition.map(|form| form.questions.into_iter().filter_map(|one| one.id).collect());
        let mut reader = CaseReader { ids, violations: Vec::new() };
        if tests.as_array().is_none() {
            reader.violations.push(Violation::wrong_type(start, "tests", "a list", tests));
        }
        let case = |(place, test)| {
            let pointer = format!("{start}/{place}");
            reader.case(test, &pointer, self.location_of(&pointer, false))
        };
        let cases = tests.as_array().unwrap_or_default().iter().enumerate().filter_map(case).collect();
        match &reader.violations[..] {
            [] => Ok(cases),
            violations => Err(locate_violations(self, violations)),
        }
    }
}

/// Reads tests of a form.
struct CaseReader {
    /// The ids of the form's questions, if they are known.
    ids: Option<Vec<String>>,
    violations: Vec<Violation>,
}

impl CaseReader {
    fn case(&mut self, test: &Value, pointer: &str, location: Location) -> Option<Case> {
        let mut fields = Fields::open(test, pointer, "a test", &mut self.violations)?;
        let name = fields.required_text("name", MAX_NAME);
        let object =
            |value: &Value| if let Value::Object(members) = value { Some(members.clone()) } else { None };
        let mut object = |name| fields.typed(name, "an object", object, |_| None).unwrap_or_default();
        let (answers, expected) = (object("answers"), object("errors"));
        let (now, accepted) = (fields.timestamp("now"), fields.flag("accepted"));
        let mut ids = |name| fields.texts(name, usize::MAX).unwrap_or_default();
        let (asked, not_asked) = (ids("asked"), ids("not_asked"));
        if accepted.is_some_and(|accepted| accepted != expected.is_empty()) {
            fields.refuse(
                "accepted",
                Rule::InvalidRange,
                "`accepted` can only be true, and not beside `errors`",
            );
        }
        fields.close(&[]);
        for (member, ids) in [("asked", &asked), ("not_asked", &not_asked)] {
            let at = |place| format!("{pointer}/{member}/{place}");
            ids.iter().enumerate().for_each(|(place, id)| self.expect_question(id, at(place)));
        }
        // The answer to an unknown question may be what is tested.
        for (member, ids, others) in [("answers", &answers, &expected), ("errors", &expected, &answers)] {
            let unpaired = ids.iter().filter(|(id, _)| others.iter().all(|(other, _)| other != id));
            unpaired.for_each(|(id, _)| self.expect_question(id, join(&join(pointer, member), id)));
        }
        let pointer = join(pointer, "errors");
        let codes =
            |(id, codes): (String, Value)| (id.clone(), self.codes(&id, &codes, &join(&pointer, &id)));
        let errors = expected.into_iter().map(codes).collect();
        Some(Case { name: name?, location, answers, errors, asked, not_asked, now })
    }

    /// Reads the codes that are expected for the question `id`.
    fn codes(&mut self, id: &str, value: &Value, pointer: &str) -> BTreeSet<String> {
        let Some(codes) = value.as_array() else {
            self.violations.push(Violation::wrong_type(pointer, id, "a list of codes", value));
            return BTreeSet::new();
        };
        for (place, code) in codes.iter().enumerate() {
            let code = code.as_str().unwrap_or_default();
            if Rule::parse(code).is_none() {
                let message = format!("`{}` is not the code of an error", shortened(code));
                let mut violation = Violation::new(format!("{pointer}/{place}"), Rule::NotAnOption, message);
                violation.allowed = nearest_first(code, Rule::ALL.map(Rule::name));
                self.violations.push(violation);
            }
        }
        codes.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Reports that the form has no question `id`, if its questions are known.
    fn expect_question(&mut self, id: &str, pointer: String) {
        let Some(ids) = self.ids.as_ref().filter(|ids| !ids.iter().any(|known| known == id)) else { return };
        let message = format!("`{}` is not a question of the form", shortened(id));
        let help = suggest_question(ids, id);
        self.violations.push(Violation::new(pointer, Rule::UnknownQuestion, message).help(help));
    }
}
