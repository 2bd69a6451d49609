//! Randomness from a seed: the same seed is the same story.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// splitmix64.
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

/// Runs a story for as many seeds as the variable `number` asks for, or for the one in `FORMS_SEED`; a story that
/// fails names its seed.
pub(crate) fn each_seed(number: &str, default: u64, mut story: impl FnMut(u64)) {
    let given = |name| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match given("FORMS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..given(number).unwrap_or(default),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| story(seed))) {
            println!("to see it alone: FORMS_SEED={seed} cargo test --test it engine");
            resume_unwind(panic);
        }
    }
}
