//! The API over HTTP: bodies, codes, scopes, headers, connections.

mod authorization; // keys, scopes, other workspaces
mod background_work; // long work on the CPU pool
mod backup;
mod batches; // many submissions in one request
mod both_stores; // the same answers from either store
mod connection_limits; // the number of connections, and which is closed for the next
mod cors; // which web origins may read responses
mod damage; // damaged rows of the index
mod deliveries; // listing deliveries, sending them again, canceling them
mod earlier_versions; // stores written by earlier versions
mod erasure; // erasing all that forms have of someone; retention
mod error_details; // `allowed`, `help` and `related` of errors
mod export; // lists of submissions as a whole, in JSON lines and CSV
mod filters; // filters and order of submission lists
mod form_lifecycle; // versions, settings, when a form accepts answers
mod forms; // creating, changing and listing forms
mod headers; // headers of responses
mod http2; // HTTP/2: deadlines, limits, cancelled requests
mod idempotency; // repeated requests
mod integrations; // integrations of a form, and what they never show
mod keys; // creation, listing, revocation, rotation, expiry and last use of API keys
mod languages; // messages in the language of the form
mod logs; // the request log
mod maintenance; // emptying the trash when the clock jumps
mod malformed; // requests that are not valid HTTP, or ambiguous
mod metrics; // what Prometheus reads
mod negotiation; // media types, charsets and encodings
mod notifications; // the short way to write mail integrations
mod openapi; // the OpenAPI document: its examples and schemas
mod overload; // memory for large bodies and responses is bounded
mod paging; // following the links of a list during writes
mod problem_codes; // every problem code is reached
mod proxies; // the address and the URLs of clients behind proxies
mod quarantine; // submissions that may be spam
mod rate_limit; // the limit of requests with one key
mod revisions; // entity tags, and changes that require them
mod startup;
mod store; // the key file, readiness, the address
mod submission_edits; // metadata, edits, history
mod submissions; // creating and listing submissions
mod summary; // counts and averages
mod timeouts; // timeouts of connections, heads and bodies; shutdown
mod tls; // certificates, handshakes
mod trash; // the trash of forms and of submissions
mod unknown_answers; // answers to unknown questions
mod workspaces; // creation, listing and deletion of workspaces
