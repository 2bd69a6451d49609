//! `forms man`, and the manual pages: one for each command and each topic of `forms help`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Arg, ArgAction, Args, ValueHint};
use clap_mangen::Man as Roff;
use regex::Regex;
use serde_json::json;

use crate::cli;
use crate::cli::commands::help::hide_globals;
use crate::cli::commands::help::topics::{TOPICS, Topic};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::destination::OutputFile;
use crate::cli::output::humanize::count_noun;

/// Date of the manual, which mandoc expects in the header.
const DATE: &str = "2026-11-24";

/// Why rendering cannot fail.
const IN_MEMORY: &str = "writing to memory cannot fail";

/// The last section of the page of a command.
const SEE_ALSO: &str = ".fi\n.SH \"SEE ALSO\"\n.BR forms (1),\n.BR forms\\-environment (7),\n.BR forms\\-exit\\-codes (7),\n.BR forms\\-formatting (7)\n";

/// Write the manual pages into a folder
#[derive(Debug, Args)]
#[command(after_long_help = "\
A page for each command, such as forms-submit.1, and for topics of `forms help`,
such as forms-exit-codes.7. Older ones are replaced. Prints the folder.

Examples:
  forms man ~/.local/share/man/man1
  forms man man && man ./man/forms-submit.1")]
pub struct Man {
    /// Folder, created if it is missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

impl Run for Man {
    const COLUMNS: Columns = Columns::Fixed(&["folder", "pages"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let (shown, pages) = (self.folder.display().to_string(), pages());
        let unwritable = |error| CliError::io(format!("cannot write {shown}"), error);
        fs::create_dir_all(&self.folder).map_err(unwritable)?;
        for (name, page) in &pages {
            let mut file = OutputFile::create(&self.folder.join(name))?;
            file.write_all(page.as_bytes()).and_then(|()| file.save()).map_err(unwritable)?;
        }
        let written = json!({"folder": shown, "pages": pages.len()});
        session.output.object(&written, || format!("{shown}\n"))?;
        session.output.success(&format!("wrote {}", count_noun(pages.len(), "page")));
        Ok(())
    }
}

/// Returns all pages with the names of their files.
pub fn pages() -> Vec<(String, String)> {
    let (_, examples) = include_str!("help/root.txt").split_once("\nExamples:\n").unwrap_or_default();
    let root = hide_globals(cli::command()).after_long_help(format!("Examples:\n{examples}"));
    let mut found = Vec::new();
    add_pages(&root, "forms", &mut found);
    found.extend(TOPICS.iter().map(topic_page));
    found
}

/// Renders the pages of `command` and its subcommands. `clap_mangen` can do this itself, but writes a wrong program name in the
/// header, and a synopsis without values.
fn add_pages(command: &clap::Command, name: &str, found: &mut Vec<(String, String)>) {
    found.push((format!("{name}.1"), page(command, name)));
    for below in command.get_subcommands() {
        add_pages(below, &format!("{name}-{}", below.get_name()), found);
    }
}

fn roff(command: clap::Command, name: &str, section: &str) -> Roff {
    let source = format!("forms {}", env!("CARGO_PKG_VERSION"));
    let roff = Roff::new(command.name(name.to_owned())).title(name.to_uppercase()).section(section);
    roff.date(DATE).source(source).manual("Forms Manual")
}

fn page(command: &clap::Command, name: &str) -> String {
    // A value is in italics, without the brackets of the help.
    static VALUE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\\fI<(.*?)>\\fR|(?m:^)[<\[]\\fI(.*)\\fR[>\]](?:\.\.\.)?(?m:$)")
            .expect("the expression is valid")
    });
    let program = name.replace('-', " ");
    let usage = format!("{program} {}", synopsis(command));
    let command = command.clone().disable_help_subcommand(true).bin_name(program);
    let command = command.override_usage(usage.trim_end().to_owned());
    // clap_mangen omits the descriptions of arguments that the short help hides.
    let command = command.mut_args(|argument| argument.hide_short_help(false));
    let mut page = Vec::new();
    roff(command, name, "1").render(&mut page).expect(IN_MEMORY);
    let mut page = String::from_utf8_lossy(&page).into_owned();
    // The long help has lines of its own, as wide as a terminal, and headings that a manual page has as sections.
    for (heading, section) in
        [(".SH EXTRA\n", ".SH DETAILS\n.nf\n.in 0\n"), ("Examples:\n", ".fi\n.SH EXAMPLES\n.nf\n.in 0\n")]
    {
        page = page.replace(&format!("\n{heading}"), &format!("\n{section}"));
    }
    let page = page.replace(".SH DETAILS\n.nf\n.in 0\n.fi\n", "").replace("\n.br\n\n.br\n", "\n.br\n");
    let note = page.find("\nGlobal options (").unwrap_or(page.len());
    VALUE.replace_all(&page[..note], r"\fI$1$2\fR").into_owned() + SEE_ALSO
}

/// The options and arguments of a command: `[--dry-run] [-f FILE] FORM [KEY=VALUE...]`.
fn synopsis(command: &clap::Command) -> String {
    let shown =
        command.get_arguments().filter(|argument| !argument.is_hide_set() && argument.get_id() != "help");
    let (positional, options): (Vec<_>, Vec<_>) = shown.partition(|argument| argument.is_positional());
    let below = command.has_subcommands().then(|| match command.is_subcommand_required_set() {
        true => "COMMAND".to_owned(),
        false => "[COMMAND]".to_owned(),
    });
    let words = options.into_iter().chain(positional).map(usage).chain(below);
    words.collect::<Vec<_>>().join(" ")
}

fn usage(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default().join(" ");
    let short = argument.get_short().map(|short| format!("-{short}"));
    let flag = short.or_else(|| argument.get_long().map(|long| format!("--{long}")));
    let name = match flag {
        Some(flag) if argument.get_action().takes_values() => format!("{flag} {values}"),
        Some(flag) => flag,
        None => values,
    };
    let is_repeated = matches!(argument.get_action(), ArgAction::Append | ArgAction::Count);
    let dots = if is_repeated { "..." } else { "" };
    if argument.is_required_set() { format!("{name}{dots}") } else { format!("[{name}{dots}]") }
}

/// The page of a topic of `forms help`.
fn topic_page(topic: &Topic) -> (String, String) {
    let name = format!("forms-{}", topic.name);
    let roff = roff(clap::Command::new("forms").about(topic.title).after_long_help(topic.page()), &name, "7");
    let mut page = Vec::new();
    roff.render_title(&mut page).expect(IN_MEMORY);
    roff.render_name_section(&mut page).expect(IN_MEMORY);
    roff.render_extra_section(&mut page).expect(IN_MEMORY);
    let page = String::from_utf8_lossy(&page).replace(".SH EXTRA\n", ".SH DESCRIPTION\n.nf\n.in 0\n");
    (format!("{name}.7"), page + ".fi\n")
}
