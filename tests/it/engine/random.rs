//! Random numbers from a seed.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A `SplitMix64` generator.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Runs `test` with as many seeds as the environment variable `variable` says, or with the one in `FORMS_SEED`; prints
/// the seed that fails.
pub(crate) fn each_seed(variable: &str, default: u64, mut test: impl FnMut(u64)) {
    let read = |name| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match read("FORMS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read(variable).unwrap_or(default),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            println!("to run it alone: FORMS_SEED={seed} cargo test --test it, with the name of this test");
            resume_unwind(panic);
        }
    }
}
