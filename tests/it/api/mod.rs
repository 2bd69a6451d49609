//! The API over HTTP: bodies, codes, scopes, headers, and the loop that serves it.

mod specification; // the specification's bodies, over a socket
