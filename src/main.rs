//! The `forms` executable.

fn main() {}
