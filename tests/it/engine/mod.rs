//! The storage engine: rows survive whatever happens to the process, the machine and the index.

mod real;
