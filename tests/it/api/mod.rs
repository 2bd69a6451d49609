//! The API over HTTP: bodies, codes, scopes, headers, and the loop that serves it.

mod access; // who may do what, and what foreign ids look like
mod advice; // what stands beside the messages of refusals
mod apart; // long work, and those who do not wait for it
mod codes; // every problem code is reached
mod connections; // how many there may be, and which one gives way
mod damage; // values that cannot be read
mod document; // the OpenAPI document: its examples, its schemas of questions
mod earlier; // stores of earlier versions
mod filters; // lists of submissions by what was answered
mod forms; // forms
mod headers; // what every answer bears
mod life; // revisions, versions, the trash, when a form takes answers
mod logs; // what the log tells, and what it never does
mod maintenance;
mod malformed; // requests that are no HTTP, or that two readers read differently
mod negotiation; // types, charsets, tags and defaults that clients send
mod overload; // large bodies and answers share a bounded memory
mod paging; // lists followed by their links while things change
mod serving; // connections, times, shutdown
mod specification; // the specification's bodies, over a socket
mod starting; // the key file, the address, the end
mod submission_life; // metadata, edits, history
mod submission_trash; // the trash of submissions
mod submissions; // submissions
mod unknown; // answers to what is no question of the form
mod written; // the JSON of submissions, written by hand
