//! The wire: the JSON of the API, as the server writes it and the command line reads it.
//!
//! Shapes only; `contract` is what they must match. Nothing here decides anything.

mod forms;
mod keys;
mod problem;
pub mod schema;
mod server;
mod submissions;

pub use forms::{FormCreated, FormDetail, FormEntry, FormList, VersionList, VersionView};
pub use keys::{
    KeyCreated, KeyDetail, KeyList, NewKey, NewWorkspace, RotateKey, WorkspaceCreated, WorkspaceDetail,
    WorkspaceList,
};
pub use problem::{Code, PROBLEM_TYPE, Problem, explain};
pub use server::{KeyView, LimitsView, Whoami, WorkspaceView};
pub use submissions::{HistoryList, ReplacedView, SubmissionBody, SubmissionDetail, SubmissionList};
