//! Help that clap cannot generate: the commands by group, sections common to all commands, and topics.

mod integration_types;
mod question_types;

use clap::Args;
use serde_json::{Value, json};

use crate::cli;
use crate::cli::commands::{Group, OVERVIEW, Run};
use crate::cli::connection::session::Session;
use crate::cli::environment::VARIABLES;
use crate::cli::output::exit::{CliError, Exit};
use crate::cli::output::table::Table;
use crate::cli::output::{Format, value_of, wrap};
use crate::domain::integration::IntegrationType;
use crate::domain::validation::similar::similar;

use integration_types::TypeHelp;

/// Returns the commands by group, two per line. clap has no groups (clap issue 1553).
fn overview() -> String {
    let mut text = String::new();
    for commands in OVERVIEW.chunk_by(|(one, ..), (other, ..)| one == other) {
        let mut heading = format!("{:?}", commands[0].0).to_uppercase();
        for line in commands.chunks(2) {
            let cell = |(index, (_, name, summary)): (usize, &(Group, &str, &str))| {
                let (names, summaries) = [(10, 25), (13, 0)][index];
                format!("{:<names$}{summary:<summaries$}", name.to_lowercase())
            };
            let cells: String = line.iter().enumerate().map(cell).collect();
            text += format!("{:<9}{cells}", std::mem::take(&mut heading)).trim_end();
            text += "\n";
        }
    }
    text
}

/// Text after the root's help.
const ROOT_AFTER: &str = "\
Examples:
  forms serve --data ./store
  id=$(forms create -f survey.yaml) && forms publish $id
  forms submit $id q1=hello && forms responses $id

forms help TOPIC: environment, exit-codes, formatting, integrations, questions";

/// Note in a command's help on where the global options are.
const GLOBAL_NOTE: &str = "Global options (-o FORMAT, --columns, --data, --url, -q, ...): forms --help";

/// Global options that a command shows in its own help: the command, the option, and its help there.
const SHOWN: [(&str, &str, &str); 2] = [
    ("serve", "data", "Where forms, answers and keys are kept [env: FORMS_DATA]"),
    ("login", "key_file", "File with the API key, - for stdin; default: ask for it"),
];

/// Adds the common sections to the help of every command, and the examples to its short help.
pub fn with_common(command: clap::Command) -> clap::Command {
    let template = format!(
        "forms — build forms and collect answers, from a file, a script or a server\n\n\
         Usage: forms [OPTIONS] <COMMAND>\n\n{}\nGlobal options:\n{}{{after-help}}\n",
        overview(),
        options(&command)
    );
    let after = format!("{ROOT_AFTER}\n\n{}", common_section());
    let command = command.after_help(ROOT_AFTER);
    command.help_template(template).after_long_help(after).mut_subcommands(with_common_below)
}

/// Returns the global options, one line each: clap's long help would use four lines.
fn options(command: &clap::Command) -> String {
    let own = command.get_arguments().filter(|argument| argument.is_global_set()).map(|argument| {
        let short = argument.get_short().map_or("    ".to_owned(), |short| format!("-{short}, "));
        let long = argument.get_long().unwrap_or_default();
        let names = argument.get_value_names().filter(|_| argument.get_action().takes_values());
        let value = names.and_then(<[_]>::first).map(|name| format!(" <{name}>")).unwrap_or_default();
        let default = argument.get_default_values().first().filter(|_| !argument.is_hide_default_value_set());
        let default = default.map(|value| format!(" [default: {}]", value.to_string_lossy()));
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        (format!("{short}--{long}{value}"), help + &default.unwrap_or_default())
    });
    let usual = ("-h, --help".to_owned(), "Print help, --help more of it; -V, --version: version".to_owned());
    let line = |(name, help): (String, String)| {
        let help = wrap(&help, 80 - OPTION_COLUMN).replace('\n', &format!("\n{:OPTION_COLUMN$}", ""));
        format!("  {name:<width$}{help}", width = OPTION_COLUMN - 2)
    };
    own.chain([usual]).map(line).collect::<Vec<_>>().join("\n")
}

/// Column at which option descriptions begin.
const OPTION_COLUMN: usize = 25;

fn with_common_below(command: clap::Command) -> clap::Command {
    let own = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let examples = own.find("Examples:").map_or("", |place| &own[place..]);
    command
        .after_help(format!("{examples}\n\n{GLOBAL_NOTE}"))
        .after_long_help(format!("{own}\n\n{GLOBAL_NOTE}\n\n{}", common_section()))
        .mut_subcommands(with_common_below)
}

/// Hides the global options in the help of every command, except those of [`SHOWN`].
pub fn hide_globals(command: clap::Command) -> clap::Command {
    let globals = command.get_arguments().filter(|argument| argument.is_global_set());
    let globals: Vec<_> = globals.cloned().collect();
    command.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.args(globals.iter().cloned().map(|argument| {
            let is_shown = |(own, id, _): &&(&str, &str, &str)| *own == name && argument.get_id() == *id;
            match SHOWN.iter().find(is_shown) {
                Some((.., help)) => argument.help(*help).help_heading(None).display_order(0),
                None => argument.hide(true),
            }
        }))
    })
}

fn common_section() -> String {
    let variables = VARIABLES.map(|(name, _)| name).join(", ");
    // A no-break space keeps a number and its name on one line.
    let exits =
        Exit::ALL.map(|(exit, name, _)| format!("{} {name}", exit.code()).replace(' ', "\u{a0}")).join(", ");
    let indented = |list: &str| wrap(list, 76).replace('\u{a0}', " ").replace('\n', "\n  ");
    let variables = indented(&format!("{variables}; see forms help environment"));
    let exits = indented(&format!("{exits}; see forms help exit-codes"));
    format!("Environment:\n  {variables}\n\nExit codes:\n  {exits}")
}

/// Show help on a command or a topic
#[derive(Debug, Args)]
#[command(after_long_help = "\
Topics are environment, exit-codes, formatting, integrations and questions.

Examples:
  forms help submit
  forms help responses list
  forms help integrations slack
  forms help exit-codes -o json")]
pub struct Help {
    /// A command, or a topic; after integrations, a type of these
    names: Vec<String>,
}

impl Run for Help {
    async fn run(self, session: &Session) -> Result<(), CliError> {
        if let [name] = &self.names[..]
            && let Some(topic) = TOPICS.iter().find(|topic| topic.name == name)
        {
            return topic.show(session);
        }
        if let [topic, name] = &self.names[..]
            && topic == INTEGRATIONS
            && let Some(integration_type) = IntegrationType::parse(name)
        {
            return show_type(integration_type, session);
        }
        let mut command = hide_globals(cli::command());
        command.build();
        for name in &self.names {
            command = command.find_subcommand(name).cloned().ok_or_else(|| unknown(name, &command))?;
        }
        let text = command.render_long_help();
        if session.output.format != Format::Table {
            return session.output.object(&json!({"text": text.to_string()}), String::new);
        }
        session.output.help(&text.to_string(), &text.ansi().to_string(), false)
    }
}

fn unknown(name: &str, command: &clap::Command) -> CliError {
    if command.get_name() == INTEGRATIONS {
        return unknown_type(name, command);
    }
    let commands = command.get_subcommands().map(clap::Command::get_name);
    let names = commands.chain(TOPICS.iter().map(|topic| topic.name));
    let help = similar(name, names).map(|name| format!("a similar name exists: {name}"));
    CliError::Usage { message: format!("there is no command or topic `{name}`"), help }
}

/// Creates the error about a `name` after `forms help integrations`, with all types.
fn unknown_type(name: &str, command: &clap::Command) -> CliError {
    let types = IntegrationType::ALL.map(IntegrationType::name);
    let names = command.get_subcommands().map(clap::Command::get_name).chain(types);
    let near = similar(name, names).map(|name| format!("a similar name exists: {name};\n"));
    let all = wrap(&format!("types are {}", types.join(", ")), 68);
    let message = format!("`{name}` is neither a command nor a type of integration");
    CliError::usage_with_help(message, near.unwrap_or_default() + &all)
}

/// Prints what the topic `integrations` has on one type.
fn show_type(integration_type: IntegrationType, session: &Session) -> Result<(), CliError> {
    let help = TypeHelp::of(integration_type);
    show_page(session, &json!({INTEGRATIONS: [help]}), &TYPE_COLUMNS, || help.text())
}

/// Name of the topic, and of the command, about integrations.
const INTEGRATIONS: &str = "integrations";

/// Columns of the table of types of integrations.
const TYPE_COLUMNS: [&str; 6] = ["type", "about", "members", "set_up", "limits", "repeats"];

/// A help page that is not about a command.
pub struct Topic {
    /// Name used with `forms help`.
    pub name: &'static str,
    pub title: &'static str,
    pub text: fn() -> String,
    /// The page as JSON: an object with one member.
    value: fn() -> Value,
    /// Columns of the page's table; empty if it has none.
    columns: &'static [&'static str],
}

pub const TOPICS: [Topic; 5] = [
    Topic {
        name: "environment",
        title: "Environment variables",
        text: environment,
        value: || {
            let variable = |(name, meaning)| json!({"name": name, "meaning": meaning});
            json!({"variables": VARIABLES.map(variable)})
        },
        columns: &["name", "meaning"],
    },
    Topic {
        name: "exit-codes",
        title: "Exit codes",
        text: exit_codes,
        value: || {
            let exit = |(exit, name, meaning): (Exit, &str, &str)| json!({"code": exit.code(), "name": name, "meaning": meaning});
            json!({"exit_codes": Exit::ALL.map(exit)})
        },
        columns: &["code", "name", "meaning"],
    },
    Topic {
        name: "formatting",
        title: "Output formats",
        text: || FORMATTING.to_owned(),
        value: || json!({"text": FORMATTING}),
        columns: &[],
    },
    Topic {
        name: INTEGRATIONS,
        title: "Types of integrations",
        text: integration_types::text,
        value: || json!({INTEGRATIONS: integration_types::all()}),
        columns: &TYPE_COLUMNS,
    },
    Topic {
        name: "questions",
        title: "Types of questions",
        text: question_types::text,
        value: || json!({"questions": question_types::all()}),
        columns: &["type", "answer", "example", "settings"],
    },
];

impl Topic {
    fn show(&self, session: &Session) -> Result<(), CliError> {
        show_page(session, &(self.value)(), self.columns, self.text)
    }
}

/// Prints a page; as CSV, its table.
fn show_page(
    session: &Session,
    value: &Value,
    columns: &[&str],
    text: impl FnOnce() -> String,
) -> Result<(), CliError> {
    match value.as_object().and_then(|members| members.values().next()) {
        Some(Value::Array(rows)) if session.output.format == Format::Csv => {
            let rows: Result<Vec<_>, _> = rows.iter().map(value_of).collect();
            let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
            session.output.rows(&Table::of_objects(&rows?, &columns))
        }
        _ => session.output.object(value, text),
    }
}

fn environment() -> String {
    let lines: String = VARIABLES.iter().map(|(name, meaning)| format!("  {name:<21} {meaning}\n")).collect();
    format!(
        "Environment variables. Flags override them; an empty one counts as not set.

{lines}
Address: --url or --context, then FORMS_URL, then FORMS_CONTEXT, then the
current context (forms context list), then a running server of this user, then
http://127.0.0.1:8787. Key: --key-file, then FORMS_API_KEY, then
FORMS_API_KEY_FILE, then the key stored for exactly this address, then the key
of that running server. A key of the environment goes only to the address of the
environment, never to another --url or --context. `forms whoami` shows what was
found, and where.

credentials.yaml, which has the contexts and their keys, is in FORMS_CONFIG_DIR,
then in forms/ of XDG_CONFIG_HOME, then in ~/.config/forms.
"
    )
}

fn exit_codes() -> String {
    let line = |(exit, _, meaning): (Exit, _, &str)| format!("  {:>3}  {meaning}\n", exit.code());
    format!(
        "Exit codes. Only 0 is success; only after 7 and 8 can a retry help.

{}
With -o json the number is also the member `exit` of the error.
",
        Exit::ALL.into_iter().map(line).collect::<String>()
    )
}

const FORMATTING: &str = "\
Output formats. Results go to stdout, everything else to stderr.

  -o table   columns on a terminal; tab-separated and complete in a pipe
  -o json    the API's response as one JSON document, all pages
  -o jsonl   one JSON object per line, all pages
  -o csv     with a header, all pages; formulas are escaped with a '
  -o yaml    YAML; for `forms show`, a file to create the form from
  -o xlsx    an Excel workbook with the columns of CSV; for `forms responses`
             only, with --to FILE

--columns id,title selects the columns of tables, CSV and XLSX, and their order;
answers have one column per question id. It cannot be used with JSON and YAML:
select members with a program such as jq.

In a workbook, numbers and booleans are cells of that type, except integers of
more than 15 digits, which Excel would round: they are text. A text of more than
32,767 characters is cut, with a warning; characters that XML cannot hold become
U+FFFD; rows beyond 1,048,576 continue on the next sheet.

`forms responses FORM --to FILE` replaces FILE only once all answers have
arrived: if the command fails, FILE is as it was.

With a format other than table, a failure leaves stdout empty and writes one
line of JSON to stderr: the problem document of the API, with `exit`, `hint`
and, for a file, `line` and `column`. To a terminal, it writes text with csv,
yaml and xlsx. The exception is `forms validate` with answers: its result is on
stdout even if answers are refused.

Colours: --color, then NO_COLOR, then FORCE_COLOR and CLICOLOR_FORCE, then
whether the stream is a terminal and TERM is not `dumb`.

Several items (publish A B) give one JSON array, one CSV, or YAML documents
separated by ---; the failures are in `failures` of the error.

Control characters in titles and answers are shown as \\u{1b} on a terminal
and in tables.
";
