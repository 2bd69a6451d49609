//! A minimal clap program, with which `cargo bench --bench command` compares the start of `forms`.

fn main() {
    clap::Command::new("bare").version("1").get_matches();
}
