//! A report as files: a page that opens anywhere, text, tables for papers, and data.

mod bars;
mod cards;
mod chart;
mod csv;
mod data;
mod heat_map;
mod latex;
mod markdown;
mod page;
mod sections;
mod table;
mod text;
mod timeline;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_formats::{Overwrite, WholeFile};

pub(super) use latex::sheet;

use super::Report;
use crate::Result;

/// The files of a report, in the order that [`Report::write`] returns them.
pub const FILES: [&str; 5] = ["report.html", "report.md", "report.tex", "report.csv", "report.json"];

impl Report {
    /// Writes `report.html`, `report.md`, `report.tex`, `report.csv` and `report.json` into `folder`, which is made if need be.
    ///
    /// The page is one file without a request to anywhere. The same runs give the same bytes.
    ///
    /// # Errors
    /// When a file stands there and may not be replaced (nothing is written then), or cannot be written.
    pub fn write(&self, folder: &Utf8Path, overwrite: Overwrite) -> Result<Vec<Utf8PathBuf>> {
        let paths = FILES.map(|name| folder.join(name));
        for path in &paths {
            overwrite.check(path)?;
        }
        let texts = [page::html(self), markdown::markdown(self), latex::latex(self), csv::csv(self)];
        for (path, text) in paths.iter().zip(&texts) {
            WholeFile::write_all_to(path, overwrite, text.as_bytes())?;
        }
        let mut json = WholeFile::create(&paths[4], overwrite)?;
        json.put_json(self)?;
        json.put(b"\n")?;
        json.finish()?;
        Ok(paths.to_vec())
    }

    /// The page as text.
    pub fn to_html(&self) -> String {
        page::html(self)
    }
}
