//! What a screen reader would stumble over: axe-core, run inside the page.

use serde_json::Value;

use super::driver::Browser;

/// The script of axe-core, where `cargo xtask test` has put it.
pub(crate) struct Axe(Option<String>);

impl Axe {
    /// Without it nothing is checked, and the test says so.
    pub(crate) fn find() -> Self {
        let path = cuemark_testkit::scratch("axe/package/axe.min.js");
        Self(std::fs::read_to_string(path).ok().or_else(|| {
            cuemark_testkit::note_skipped_part("axe-core");
            None
        }))
    }

    /// Fails when the page as it is now breaks a rule.
    pub(crate) fn check(&self, browser: &Browser, what: &str) {
        let Some(axe) = &self.0 else { return };
        browser.run(axe);
        let found = browser.run_later(
            "axe.run(document, { resultTypes: ['violations'] }).then( \
                 r => done(r.violations.map(v => [v.id, v.help, v.nodes.map(n => n.html.slice(0, 200))])), \
                 e => done([String(e)]))",
        );
        assert_eq!(found, Value::Array(Vec::new()), "{what}: {found:#}");
    }
}
