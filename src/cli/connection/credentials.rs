//! Contexts: named servers and their API keys, kept in `credentials.yaml` of the configuration folder.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Not;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use serde_yaml::Mapping;

use crate::cli::connection::target::{is_same, warn_if_public};
use crate::cli::environment::Environment;
use crate::cli::output::Output;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::client::Url;
use crate::domain::validation::similar::similar;
use crate::secret::Secret;

const FILE_NAME: &str = "credentials.yaml";

/// The file that a command locks while it changes the credentials. Theirs cannot be locked: each change replaces it.
const LOCK_NAME: &str = "credentials.lock";

/// Maximum size of the file.
const MAX_SIZE: u64 = 1 << 20;

/// A server and the key for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Context {
    pub url: String,
    #[serde(serialize_with = "reveal")]
    pub key: Secret<String>,
    /// Whether the key may be sent unencrypted beyond this machine.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub insecure_http: bool,
    /// Members of newer versions, which are kept.
    #[serde(flatten)]
    unknown: Mapping,
}

impl Context {
    pub fn new(url: String, key: Secret<String>, insecure_http: bool) -> Self {
        Self { url, key, insecure_http, unknown: Mapping::new() }
    }
}

/// The contexts, and the file that has them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Credentials {
    /// `None` if the user has no home folder.
    #[serde(skip)]
    path: Option<PathBuf>,
    /// The name of the context that is used by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
    #[serde(flatten)]
    unknown: Mapping,
}

/// Writes a key into a file that only its owner can read.
pub(super) fn reveal<S: Serializer>(key: &Secret<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.reveal())
}

impl Credentials {
    /// Reads the file; a missing file has no contexts. Warns if other users can read it.
    pub fn load(environment: &Environment, output: &Output) -> Result<Self, CliError> {
        let path = folder(environment).map(|folder| folder.join(FILE_NAME));
        let text = path.as_deref().map_or(Ok(None), |path| read(path, output))?;
        let stored = match (&path, text) {
            (Some(path), Some(text)) => parse(path, &text)?,
            _ => Self::default(),
        };
        Ok(Self { path, ..stored })
    }

    /// Reads the file, applies `edit` and writes the file, while no other command changes it. Returns the credentials
    /// written, and the result of `edit`.
    ///
    /// # Errors
    /// If `edit` fails, which writes nothing; or if the file cannot be read or written, or is not valid.
    pub fn update<T>(
        environment: &Environment,
        output: &Output,
        edit: impl FnOnce(&mut Self) -> Result<T, CliError>,
    ) -> Result<(Self, T), CliError> {
        let _released_when_dropped = lock(environment)?;
        let mut credentials = Self::load(environment, output)?;
        let result = edit(&mut credentials)?;
        credentials.save()?;
        Ok((credentials, result))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> Result<&Path, CliError> {
        self.path.as_deref().ok_or_else(no_folder)
    }

    /// Returns the context `name`.
    pub fn get(&self, name: &str) -> Result<&Context, CliError> {
        self.contexts.get(name).ok_or_else(|| self.unknown(name))
    }

    /// Removes the context `name`; if it is the current one, there is none afterwards.
    pub fn remove(&mut self, name: &str) -> Result<Context, CliError> {
        let removed = self.contexts.remove(name).ok_or_else(|| self.unknown(name))?;
        self.current.take_if(|current| current == name);
        Ok(removed)
    }

    /// Returns the context whose address is exactly `url`: of several, `preferred` or else the current one.
    pub fn find_by_url(&self, url: &Url, preferred: Option<&str>) -> Option<(&str, &Context)> {
        let is_at = |context: &Context| Url::parse(&context.url).is_ok_and(|own| is_same(&own, url));
        let found = self.contexts.iter().map(|(name, context)| (name.as_str(), context));
        found
            .filter(|(_, context)| is_at(context))
            .min_by_key(|(name, _)| (Some(*name) != preferred, Some(*name) != self.current.as_deref()))
    }

    fn unknown(&self, name: &str) -> CliError {
        let help = match similar(name, self.contexts.keys().map(String::as_str)) {
            Some(near) => format!("a similar name exists: {near}"),
            None if self.contexts.is_empty() => "forms login URL makes one".to_owned(),
            None => "forms context list shows all".to_owned(),
        };
        CliError::UnknownContext { name: name.to_owned(), help }
    }

    /// Writes the file into its folder. Readers see the old file or the new one, and a link in its place is replaced, not
    /// followed.
    fn save(&self) -> Result<(), CliError> {
        let path = self.path()?;
        let write = || -> io::Result<()> {
            let folder = path.parent().unwrap_or(Path::new("."));
            let text = serde_yaml::to_string(self).map_err(io::Error::other)?;
            // Only its owner can read the new file.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|error| CliError::io(format!("cannot write {}", path.display()), error))
    }
}

/// Returns the configuration folder, which may not exist; `None` if the user has no home folder.
fn folder(environment: &Environment) -> Option<PathBuf> {
    if let Some(folder) = environment.get("FORMS_CONFIG_DIR") {
        return Some(folder.into());
    }
    // The XDG specification: relative paths are ignored.
    if let Some(parent) = environment.get("XDG_CONFIG_HOME").map(Path::new).filter(|path| path.is_absolute())
    {
        return Some(parent.join("forms"));
    }
    let home = directories::BaseDirs::new()?.home_dir().join(".config/forms");
    if home.exists() {
        return Some(home);
    }
    Some(directories::ProjectDirs::from("", "", "forms")?.config_dir().to_owned())
}

fn no_folder() -> CliError {
    let help = "set HOME, or FORMS_CONFIG_DIR to a folder for them";
    CliError::usage_with_help("there is no folder for credentials: HOME is not set", help)
}

/// Waits until no other command changes the credentials, and keeps others from it until the file is dropped. Creates the
/// folder if it is missing.
fn lock(environment: &Environment) -> Result<File, CliError> {
    let folder = folder(environment).ok_or_else(no_folder)?;
    let path = folder.join(LOCK_NAME);
    let lock = || -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|error| CliError::io(format!("cannot lock {}", path.display()), error))
}

/// Reads the file; `None` if there is none.
fn read(path: &Path, output: &Output) -> Result<Option<String>, CliError> {
    let unreadable = |why: &str| CliError::usage(format!("cannot read {}: {why}", path.display()));
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&reason(&error))),
    };
    // Opening a FIFO would block.
    if !metadata.is_file() {
        return Err(unreadable("it is not a file"));
    }
    warn_if_public(path, output);
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_SIZE + 1).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(&reason(&error)))?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(unreadable(&format!("it is larger than {} MiB", MAX_SIZE >> 20)));
    }
    String::from_utf8(bytes).map(Some).map_err(|_error| unreadable("it is not valid UTF-8"))
}

fn parse(path: &Path, text: &str) -> Result<Credentials, CliError> {
    let broken = |error: serde_yaml::Error| {
        // The parser's own message can quote a key.
        let place = error.location().map(|at| format!(":{}:{}", at.line(), at.column())).unwrap_or_default();
        let help = "expected `current: NAME` and `contexts: {NAME: {url: URL, key: KEY}}`; \
                    correct the file, or move it away and log in again";
        CliError::usage_with_help(format!("{}{place} is not valid", path.display()), help)
    };
    // Only a mapping reports duplicate names. An empty file is `null`.
    let document: Option<Mapping> = serde_yaml::from_str(text).map_err(broken)?;
    document.map_or(Ok(Credentials::default()), |_| serde_yaml::from_str(text).map_err(broken))
}
