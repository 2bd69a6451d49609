//! `forms`: build forms and collect answers, from a file, a script or any HTTP client.
//!
//! One executable is a command line and a self-hosted server. This page is its architecture: what lives where, what may
//! know of what, and where to put something new.
//!
//! # The way of one request
//!
//! ```text
//!  HTTP request ── http            extract, call, shape the answer; no `if` about forms
//!                   │  call
//!                   ▼
//!                  app             who may do it; check in parallel; ask the store for one decision
//!                   │        ▲
//!       domain (pure rules) ─┘     check(answers), change(form), admit(submission)
//!                   │
//!                   ▼
//!                  store           load what the decision needs, ask the domain, write what it says: all or nothing
//!                   └─ sled        one writer thread: journal frame, fdatasync, index, answer
//!
//!  forms <command> ── cli ── client ── over HTTP, or the same router in this process (`--data`)
//!  forms serve     ── cli ── server ── store → app → router → accept loop, until told to stop
//! ```
//!
//! # The rooms
//!
//! | Room | Is for | Knows nothing of |
//! |---|---|---|
//! | [`clock`], [`id`], [`secret`] | time, randomness, identifiers, keys: passed in, never asked for | everything else |
//! | [`process`] | how many files this process may open, whether another still lives | everything else |
//! | [`cpu_pool`] | the one bounded pool for work that takes longer than a millisecond | everything else |
//! | [`keyed_semaphore`] | how many of something an id may have at a time | everything else |
//! | [`domain`] | the rules, as pure functions of plain values | time, files, HTTP, stores |
//! | [`api`] | the JSON of the API and the table of problem codes, for both ends of the wire | who sends it |
//! | [`store`] | where state lives: one trait of whole business steps, and who keeps it | HTTP, callers |
//! | [`app`] | use cases: authorise, validate, ask for one decision | HTTP, how a store works |
//! | [`http`] | routes, keys, limits, problem documents, our own accept loop | how a store works |
//! | [`config`] | the server's settings and their defaults | who reads them |
//! | [`server`] | puts store, app and router together, and takes them apart | forms |
//! | [`client`] | one method an operation, over HTTP or in process | terminals |
//! | [`cli`] | commands, files, output, prompts | how anything is done |
//!
//! `tests/it/layers.rs` holds the code to this, and keeps each large crate in the rooms named there.
//!
//! # What always holds
//!
//! * Nobody is told of success before it is durable, and nobody can read what is not durable.
//! * The journal is the truth. The index is believed only with proof, and can be thrown away at any time.
//! * One thread decides about writes, so ids, counters and idempotency keys are exact without a lock.
//! * Answers are kept and given back as the text that was sent.
//! * A cache holds what never changes: a form's version, compiled; a row with the very bytes it was decoded from.
//! * Absence is an `Option`, refusal is a value, failure is an `Err`; an internal cause never reaches a client.
//! * Time, ids and randomness come in as arguments, so every rule can be tested by a table.
//! * Only `cli::output` prints; only `main` ends the process, but for the store when it can promise nothing more.
//!
//! # Words
//!
//! | Word | Meaning |
//! |---|---|
//! | workspace | owner of forms and keys; nothing is seen across its border |
//! | form | title, questions, status (`draft`, `published`) |
//! | slug | the name an author gives a form; it stands wherever the form's id may |
//! | question | one item of a form, with an id (`q1`) and a kind (in JSON `type`) |
//! | answer | the value given for a question id |
//! | condition | what must hold of earlier answers for a question to be asked, or to be required |
//! | submission | one accepted set of answers |
//! | edit | a change of a submission after it was stored; what edits replace is its history |
//! | API key | credential of a workspace, with scopes; shown once |
//! | caller | a key that was proved, with its workspace and scopes |
//! | problem, code, violation | error document, its stable code, one broken rule in it |
//!
//! # Where to add something
//!
//! | Add | Touch | Who tells you what is missing |
//! |---|---|---|
//! | a kind of question | a file in `domain/question/`, a row in `kind.rs`, its settings in `draft.rs` | the tests over all kinds |
//! | a route | a handler in `http/`, its name in the `routes!` list, a use case in `app/`, a method in `client` once a command needs it | the golden OpenAPI document |
//! | a command | a variant and an arm in `cli/` | clap's own checks; the help sweep; golden man pages |
//! | a store | a folder in `store/`, and where [`server`] opens it | the conformance suite: one line to register |
//! | a problem code | a row in `api/problem.rs`, an arm in `http/problem.rs` | the compiler; the test that each code is reached |

pub mod api;
pub mod app;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod cpu_pool;
pub mod domain;
pub mod http;
pub mod id;
pub mod keyed_semaphore;
pub mod process;
pub mod secret;
pub mod server;
pub mod store;
