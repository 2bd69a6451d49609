//! `forms`: build forms and collect answers, from a file, a script or any HTTP client.
//!
//! One executable is a command line and a self-hosted server. This page is its architecture: where things are, which
//! module may import which, and where to add something.
//!
//! # Data flow
//!
//! ```text
//!  HTTP request ── http            extract, call, shape the response; no `if` about forms
//!                   │  call
//!                   ▼
//!                  app             authorise; validate in parallel; ask the store for one decision
//!                   │        ▲
//!       domain (pure rules) ─┘     check(answers), change(form), admit(submission)
//!                   │
//!                   ▼
//!                  store           load what the decision needs, call the domain, write the result: all or nothing
//!                   ├─ sled        one writer thread: journal frame, fdatasync, index, answer
//!                   └─ postgres    one transaction, by any of several servers
//!
//!  after the answer, whatever the receivers do:
//!
//!                  store           deliveries, written with what they are about
//!                   │  claim_due    ▲  finish
//!                   ▼               │
//!               delivery ───────────┴ domain   render(event), plan(attempt), finish_attempt(outcome)
//!                   │
//!                   ▼
//!               receiver of a webhook, chat, mail server, spreadsheet, CSV file
//!
//!  forms <command> ── cli ── client ── over HTTP, or the same router in this process (`--data`)
//!  forms serve     ── cli ── server ── store → app → router → accept loop, until a signal stops it
//! ```
//!
//! # Modules
//!
//! | Module | Purpose | Knows nothing of |
//! |---|---|---|
//! | [`clock`], [`id`], [`secret`] | time, randomness, identifiers, keys: passed in, never global | everything else |
//! | [`process`] | open file limits, free disk space, what this process uses, whether another one lives | everything else |
//! | [`metrics`] | what the server counts about itself, for Prometheus | what is counted |
//! | [`cpu_pool`] | the one bounded pool for work that takes longer than a millisecond | everything else |
//! | [`keyed_semaphore`] | a limit of permits for each id | everything else |
//! | [`request_error`] | why a request to another server failed, in words | everything else |
//! | [`domain`] | the rules, as pure functions of plain values: `form`, `question`, `condition`, `submission`, `summary`, `integration`, `delivery`, `pattern`, `json`, `language`, `validation` | time, files, HTTP, stores |
//! | [`api`] | the JSON of the API and the table of problem codes, for both ends of the wire | transport |
//! | [`store`] | where state lives: one trait of whole business steps, the embedded store (`sled`), and that in a database (`postgres`) | HTTP, callers |
//! | [`vault`] | sealing of secrets at rest | everything but ids |
//! | [`delivery`] | carrying out deliveries: the only module that calls other servers on behalf of forms | HTTP requests to this server |
//! | [`backup`] | the archive of a backup, for both ends of the wire | how a store works |
//! | [`app`] | use cases: authorise, validate, ask for one decision, answer in the types of the API | HTTP, how a store works |
//! | [`page`] | the HTML pages where people answer forms | HTTP, how a store works |
//! | [`http`] | `routes` (handlers), `wire` (requests and responses), `server` (connections and limits), `openapi` | how a store works |
//! | [`config`] | the server's settings and their defaults | everything but limits |
//! | [`server`] | composition: store, app and router, put together and taken apart | forms |
//! | [`client`] | requests to the API, over HTTP or in process | terminals |
//! | [`receiver`] | a receiver of webhooks for developers: verify, report, forward | everything else |
//! | [`cli`] | `commands`, and what they share: `input`, `output`, `connection` | the rules' details |
//!
//! `tests/it/layers.rs` enforces this table, keeps each large crate in the modules named there, and refuses import circles
//! between files of different folders.
//!
//! # Invariants
//!
//! * Success is reported once it is durable, and nothing is readable before.
//! * Embedded store: the journal is the truth. The index is trusted only when verified, and can be discarded at any time.
//! * Embedded store: one thread decides about writes, so ids, counters and idempotency keys are exact without a lock.
//! * Database: a step locks the rows that it decides on, and runs again when it is interrupted. It writes a mark, by which the
//!   next run knows whether the one before was committed.
//! * Answers are stored and returned as the text that was sent.
//! * What happened and the deliveries that it causes are one write. Each ends delivered, dead, canceled or skipped.
//! * An attempt is counted when it ends: the end of the process costs none. Every counted attempt of a delivery sends the same
//!   content, to the addresses of that time.
//! * No stored wait reaches further into the future than its own length, whatever the clock did.
//! * A CSV file is a function of what is stored.
//! * Secrets of integrations are sealed at rest, opened for the request that needs them, and never shown.
//! * Caches hold compiled versions of forms, which never change, and decoded rows until they change.
//! * Absence is an `Option`, refusal is a value, failure is an `Err`; an internal cause never reaches a client.
//! * Time, ids and randomness are arguments, so every rule can be tested by a table.
//! * Only `cli::output` prints, except what a prompt shows. Only `main` ends the process, except the store when it can promise nothing more.
//!
//! # Glossary
//!
//! | Term | Meaning |
//! |---|---|
//! | workspace | owner of forms and keys; the boundary of visibility |
//! | form | title, questions, status (`draft`, `published`) |
//! | slug | the author's name for a form, usable wherever its id is |
//! | question | one item of a form, with an id (`q1`) and a kind (in JSON `type`) |
//! | answer | the value given for a question id |
//! | condition | tests on earlier answers that decide whether a question is asked or required |
//! | submission | one accepted set of answers |
//! | quarantine | where a submission is that may be spam: not counted, listed or delivered, until it is released |
//! | edit | a change of a stored submission; replaced answers are its history |
//! | integration | what a form sends elsewhere: its kind (in JSON `type`), events, condition and settings |
//! | event | one thing that happened to a form or a submission, with a snapshot of it |
//! | delivery | one event owed to one address of an integration, with its status |
//! | claim | the right to attempt a delivery, until it is finished or released |
//! | attempt | one try to carry out a delivery, logged with its outcome |
//! | queue | the deliveries of one integration; queues do not delay each other |
//! | journal | all writes in order, in segments; what a store is rebuilt from |
//! | base | the rows that a compaction has left of the segments before it |
//! | index | the rows by key, for reading; can be discarded |
//! | lease | a claim on a row of a database, until a time by its clock |
//! | record | an object with all that belongs to it, as a copy moves it from store to store |
//! | API key | credential of a workspace, with scopes; shown once |
//! | caller | an authenticated key with its workspace and scopes |
//! | problem, code, violation | error document, its stable code, one broken rule in it |
//!
//! # Where to add something
//!
//! | Add | Touch | Reported by |
//! |---|---|---|
//! | a kind of question | a file in `domain/question/`, a row in `kind.rs`, its schema in `api/schema/questions.json` | the tests over all kinds |
//! | a kind of integration | a file in `domain/integration/` with its spec and the trait `Kind` (for a chat, a file in `chat/` with a `Chat`), and its two lines in `IntegrationType`; for a new way to send, a variant of `Outbound` and its sender in `delivery` | the compiler |
//! | a language | a file in `domain/language/` with its `Texts`, and its two lines in `Language` | the compiler; the test of the places of templates |
//! | a route | a handler in `http/routes/`, its line in `routes::operations`, its own codes in `http/openapi/problems.rs`, a use case in `app/` | the golden OpenAPI document |
//! | a command | a file in `cli/commands/`, its line in `Command` | clap's own checks; golden man pages |
//! | a store | a folder in `store/`, and its line in `server/store.rs`, which opens it | the conformance suite: one line to register |
//! | a change of the tables | a file in `store/postgres/schema/`, its line in `schema.rs` | `store verify`; the tests over a database |
//! | a metric | a field of [`metrics::Metrics`], where it is counted, its row in `docs/operating.md` | the test that each documented one is exposed |
//! | a problem code | a row in `api/problem.rs`, an arm in `app/error.rs` | the compiler; the test that each code is reached |

pub mod api;
pub mod app;
pub mod backup;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod cpu_pool;
pub mod delivery;
pub mod domain;
pub mod http;
pub mod id;
pub mod keyed_semaphore;
pub mod metrics;
pub mod page;
pub mod process;
pub mod receiver;
pub mod request_error;
pub mod secret;
pub mod server;
pub mod store;
pub mod vault;
