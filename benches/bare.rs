//! The least a command can be: what `cargo bench --bench command` compares the start of `forms` with.

fn main() {
    clap::Command::new("bare").version("1").get_matches();
}
