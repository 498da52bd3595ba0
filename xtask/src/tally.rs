//! Counting tests from the lines that test runners close with.

use std::ops::AddAssign;

/// Tests that passed and tests that did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Passed.
    pub(crate) passed: usize,
    /// Failed, timed out, or never run because something before them failed.
    pub(crate) failed: usize,
}

impl Tally {
    /// One check that stands for itself.
    pub(crate) fn one(ok: bool) -> Self {
        Self { passed: usize::from(ok), failed: usize::from(!ok) }
    }

    /// What the runners in `output` counted. A runner that ended badly without counting a failure counts as one.
    ///
    /// nextest shows the output of failed tests, with a closing line of each test binary: where it has closed with a
    /// summary of its own, only that counts.
    pub(crate) fn of_runners(output: &str, ok: bool) -> Self {
        let sum = |read: fn(&str) -> Option<Self>| {
            output.lines().filter_map(read).reduce(|mut total, next| {
                total += next;
                total
            })
        };
        let mut tally = sum(of_nextest).or_else(|| sum(of_libtest)).unwrap_or_default();
        if !ok && tally.failed == 0 {
            tally.failed = 1;
        }
        tally
    }

    /// What pytest counted: `3 failed, 41 passed, 2 skipped, 1 error in 3.21s`.
    pub(crate) fn of_pytest(output: &str, ok: bool) -> Self {
        let closing = output.lines().rev().find(|line| {
            line.contains(" in ") && [" passed", " failed", " error"].iter().any(|word| line.contains(word))
        });
        let count = |word: &str| closing.and_then(|line| number_before(line, word)).unwrap_or(0);
        let mut tally = Self { passed: count(" passed"), failed: count(" failed") + count(" error") };
        if !ok && tally.failed == 0 {
            tally.failed = 1;
        }
        tally
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// `Summary [   0.1s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped`, or `7/12 tests run: …`
/// when the run was cut short. What ran (or should have) and did not pass has failed.
fn of_nextest(line: &str) -> Option<Tally> {
    let (before, after) = line.split_once(" tests run: ").or_else(|| line.split_once(" test run: "))?;
    before.trim_start().strip_prefix("Summary [")?;
    let total: usize = before.rsplit([' ', '/']).next()?.parse().ok()?;
    let passed = number_before(after, " passed").unwrap_or(0);
    Some(Tally { passed, failed: total.saturating_sub(passed) })
}

/// `test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s`
fn of_libtest(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?;
    Some(Tally { passed: number_before(counts, " passed")?, failed: number_before(counts, " failed")? })
}

/// The number that ends where `word` begins.
fn number_before(text: &str, word: &str) -> Option<usize> {
    text.split_once(word)?.0.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_counts_whatever_did_not_pass_as_failed() {
        let all = "     Summary [   0.112s] 12 tests run: 12 passed, 0 skipped";
        assert_eq!(Tally::of_runners(all, true), Tally { passed: 12, failed: 0 });
        let some = "     Summary [  61.0s] 12 tests run: 9 passed (1 slow, 1 leaky), 2 failed, 1 timed out, 3 skipped";
        assert_eq!(Tally::of_runners(some, false), Tally { passed: 9, failed: 3 });
        let one = "     Summary [   0.1s] 1 test run: 0 passed, 1 failed, 0 skipped";
        assert_eq!(Tally::of_runners(one, false), Tally { passed: 0, failed: 1 });
        let cut = "     Summary [   0.1s] 7/12 tests run: 6 passed, 1 failed, 0 skipped";
        assert_eq!(Tally::of_runners(cut, false), Tally { passed: 6, failed: 6 });
    }

    #[test]
    fn what_nextest_shows_of_a_failed_test_is_not_counted_again() {
        let output = "\
    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.36s
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.36s
     Summary [   0.810s] 40 tests run: 39 passed, 1 failed, 0 skipped
";
        assert_eq!(Tally::of_runners(output, false), Tally { passed: 39, failed: 1 });
    }

    #[test]
    fn results_of_several_test_binaries_add_up() {
        let output = "\
test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
noise: 3 passed by
test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";
        assert_eq!(Tally::of_runners(output, false), Tally { passed: 7, failed: 1 });
    }

    #[test]
    fn pytest_counts_errors_as_failures_and_skipped_tests_not_at_all() {
        let some = "FAILED x - 1 passed in vain\n1 failed, 41 passed, 2 skipped, 3 errors in 3.21s\n";
        assert_eq!(Tally::of_pytest(some, false), Tally { passed: 41, failed: 4 });
        assert_eq!(Tally::of_pytest("7 passed in 0.10s\n", true), Tally { passed: 7, failed: 0 });
        assert_eq!(Tally::of_pytest("no module named pytest", false), Tally { passed: 0, failed: 1 });
    }

    #[test]
    fn a_runner_that_did_not_get_to_run_is_a_failure() {
        assert_eq!(Tally::of_runners("error: could not compile `x`", false), Tally { passed: 0, failed: 1 });
        assert_eq!(Tally::of_runners("", true), Tally::default());
    }
}
