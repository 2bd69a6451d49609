//! Times of commands: the start compared to a minimal clap program, and a list of a small store; executable size.
//!
//! `cargo bench --bench command`. A time is from starting the process until its exit.

mod common;

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use self::common::fill::published_form;
use self::common::samples::median;
use self::common::server::{Server, forms_serve, operator_key};
use self::common::settings;
use self::common::table::Table;

/// Starts of each program.
const STARTS: usize = 200;

/// Commands on the small store.
const COMMANDS: usize = 30;

/// Submissions in the small store.
const SMALL: u64 = 1_000;

/// Files of forms.
const FILES: usize = 200;

const FORMS: &str = env!("CARGO_BIN_EXE_forms");

fn main() -> Result<(), Box<dyn Error>> {
    let bare = build_bare()?;
    let (mut forms_times, mut bare_times) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        forms_times.push(milliseconds(Command::new(FORMS).arg("--version"))?);
        bare_times.push(milliseconds(Command::new(&bare).arg("--version"))?);
    }
    let ratio = median(forms_times.iter().zip(&bare_times).map(|(ours, bare)| ours / bare));

    let mut table = Table::new(&["command", "result", "target"]);
    table.row(["bare --version".into(), format!("{:.2} ms", median(bare_times)), String::new()]);
    table.row(["forms --version".into(), format!("{:.2} ms", median(forms_times)), String::new()]);
    table.row(["  ratio to bare".into(), format!("{ratio:.2}"), "<= 3.00".into()]);
    let folder = settings::folder()?;
    table.row(["one fdatasync".into(), format!("{:.2} ms", median(syncs(folder.path())?)), String::new()]);
    let listing = median(list_small_store(folder.path())?);
    table.row(["forms list --data".into(), format!("{listing:.1} ms"), "<= 60 ms".into()]);
    let files = write_forms(folder.path())?;
    let validated = median(repeated(|| {
        let mut command = Command::new(FORMS);
        command.arg("validate").args(&files);
        command
    })?);
    table.row([format!("validate of {FILES} files"), format!("{validated:.1} ms"), "<= 100 ms".into()]);
    let applied = median(apply_unchanged(folder.path())?);
    table.row([format!("apply of {FILES} unchanged"), format!("{applied:.0} ms"), "<= 1000 ms".into()]);
    let size = std::fs::metadata(FORMS)?.len() as f64 / f64::from(1 << 20);
    table.row(["executable".into(), format!("{size:.1} MiB"), "<= 15 MiB".into()]);
    table.print()?;
    Ok(())
}

/// Writes many files of forms, and returns their paths.
fn write_forms(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let forms = folder.join("forms");
    std::fs::create_dir(&forms)?;
    let example = include_str!("../examples/conference-registration.yaml");
    (0..FILES)
        .map(|number| {
            let path = forms.join(format!("{number:03}.yaml"));
            std::fs::write(&path, format!("slug: form-{number}\n{example}"))?;
            Ok(path)
        })
        .collect()
}

/// Times of a command.
fn repeated(command: impl Fn() -> Command) -> io::Result<Vec<f64>> {
    (0..COMMANDS).map(|_| milliseconds(&mut command())).collect()
}

/// Times of `forms apply` against a server whose forms are those of the files.
fn apply_unchanged(folder: &Path) -> io::Result<Vec<f64>> {
    let data = folder.join("applied");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let apply = || {
        let mut command = Command::new(FORMS);
        let url = format!("http://{}", server.endpoint().address);
        command.args(["apply", "-f"]).arg(folder.join("forms")).args(["--url", &url]);
        command.arg("--key-file").arg(data.join("operator-key"));
        command
    };
    milliseconds(&mut apply())?;
    let times = repeated(apply);
    server.stop()?;
    times
}

/// Builds the minimal program, an example of this package, with the profile of this executable.
fn build_bare() -> io::Result<PathBuf> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--profile", "bench", "--example", "bare", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .status()?;
    if built.success() {
        Ok(Path::new(FORMS).with_file_name("examples").join("bare"))
    } else {
        Err(io::Error::other("the bare program could not be built"))
    }
}

fn milliseconds(command: &mut Command) -> io::Result<f64> {
    let begin = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let elapsed = begin.elapsed().as_secs_f64() * 1e3;
    if status.success() { Ok(elapsed) } else { Err(io::Error::other(format!("{command:?}: {status}"))) }
}

/// Times of a sync on this disk, for comparison with a command that opens a store.
fn syncs(folder: &Path) -> io::Result<Vec<f64>> {
    let file = File::create_new(folder.join("syncs"))?;
    (0..COMMANDS as u64)
        .map(|turn| {
            file.write_all_at(&[1; 4096], turn * 4096)?;
            let begin = Instant::now();
            file.sync_data()?;
            Ok(begin.elapsed().as_secs_f64() * 1e3)
        })
        .collect()
}

/// Times of `forms list` on a store that a server has filled and closed.
fn list_small_store(folder: &Path) -> io::Result<Vec<f64>> {
    let data = folder.join("store");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        published_form(server.endpoint(), &operator_key(&data)?).await?.fill(SMALL).await
    })?;
    server.stop()?;
    (0..COMMANDS).map(|_| milliseconds(Command::new(FORMS).args(["list", "--data"]).arg(&data))).collect()
}
