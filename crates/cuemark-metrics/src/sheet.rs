//! A table of methods and metrics as papers, pull requests and spreadsheets want it.

use std::fmt::Write as _;

/// A table: one row a method, one column a metric.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sheet {
    /// What the table is about; LaTeX makes it the caption.
    pub title: String,
    /// What the first column holds.
    pub corner: String,
    /// Names of the other columns: metrics as we spell them.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<SheetRow>,
    /// What stands below, a line each.
    pub notes: Vec<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SheetRow {
    /// The method.
    pub name: String,
    /// One cell a column; `None` where nothing was measured.
    pub cells: Vec<Option<SheetCell>>,
    /// Whether a rule parts it from the row above.
    pub rule: bool,
}

/// One number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SheetCell {
    /// As it is printed: `54.21`.
    pub text: String,
    /// What follows it, such as `±0.31` over seeds.
    pub spread: String,
    /// Its interval, in small print: `51.20 – 57.01`.
    pub below: String,
    /// Whether it is the best of its column.
    pub is_bold: bool,
    /// A superscript: the letters of the methods that it beats significantly.
    pub mark: String,
}

/// Points (1/72.27 inch) that a table may be wide: the narrowest column of the usual two-column styles, less a little.
const COLUMN_WIDTH: f64 = 215.0;
/// Room left and right of every column together, at the `\tabcolsep` that is set.
const GAP: f64 = 6.0;
/// A character in `\small` and in `\tiny`, generously.
const SMALL: f64 = 5.0;
const TINY: f64 = 3.4;
/// Points that the blocks of one float may be high together: a page of the usual styles, less room for the caption.
const PAGE_HEIGHT: f64 = 480.0;
/// A line in `\small` and in `\tiny`, generously.
const LINE: f64 = 12.0;
const TINY_LINE: f64 = 7.5;
/// The rules of a block and the room above the next, and a rule between rows.
const RULES: f64 = 16.0;
const RULE: f64 = 6.0;
/// A longer name is broken into lines.
const LONGEST_NAME: usize = 16;

impl Sheet {
    /// A Markdown table.
    pub fn to_markdown(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|name| escape_markdown(name)).collect();
        let mut text =
            format!("| {} | {} |\n| --- |{}\n", self.corner, columns.join(" | "), " ---: |".repeat(columns.len()));
        for row in &self.rows {
            let cells: Vec<String> =
                row.cells.iter().map(|cell| cell.as_ref().map_or("–".to_owned(), markdown_cell)).collect();
            let _ = writeln!(text, "| {} | {} |", escape_markdown(&row.name), cells.join(" | "));
        }
        for note in &self.notes {
            let _ = write!(text, "\n{}\n", escape_markdown(note));
        }
        text
    }

    /// Comma-separated values; intervals and marks stand in columns of their own where there are some.
    pub fn to_csv(&self) -> String {
        let has = |what: fn(&SheetCell) -> bool, column: usize| {
            self.rows.iter().any(|row| row.cells.get(column).and_then(Option::as_ref).is_some_and(what))
        };
        let mut header = vec![self.corner.clone()];
        let mut extras = Vec::new();
        for (column, name) in self.columns.iter().enumerate() {
            let (below, mark) = (has(|cell| !cell.below.is_empty(), column), has(|cell| !cell.mark.is_empty(), column));
            header.push(name.clone());
            header.extend(below.then(|| format!("{name} interval")));
            header.extend(mark.then(|| format!("{name} better than")));
            extras.push((below, mark));
        }
        let mut text = csv_line(&header);
        for row in &self.rows {
            let mut line = vec![row.name.clone()];
            for (cell, (below, mark)) in row.cells.iter().zip(&extras) {
                let cell = cell.clone().unwrap_or_default();
                line.push(cell.text);
                line.extend(below.then_some(cell.below));
                line.extend(mark.then_some(cell.mark));
            }
            text += &csv_line(&line);
        }
        text
    }

    /// A LaTeX table for one column of a paper (it wants `\usepackage{booktabs}`): as many metrics side by side as fit, the
    /// others in further blocks below, and those that no page has room for in further tables.
    pub fn to_latex(&self) -> String {
        let longest = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let name = longest.clamp(6, LONGEST_NAME) as f64 * SMALL + GAP;
        let widths: Vec<f64> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let notes: Vec<String> = self.notes.iter().map(|note| escape_latex(note)).collect();
        let caption = [&[escape_latex(&self.title)][..], &notes].concat();
        let caption: Vec<String> = caption.into_iter().filter(|line| !line.is_empty()).collect();
        let mut text = String::from(LATEX_NEEDS);
        let blocks = runs_that_fit(&widths, COLUMN_WIDTH - name);
        let heights: Vec<f64> = blocks.iter().map(|block| self.height(block.clone(), longest)).collect();
        for (place, page) in runs_that_fit(&heights, PAGE_HEIGHT).into_iter().enumerate() {
            let blocks: Vec<String> = blocks[page].iter().map(|block| self.block(block.clone(), longest)).collect();
            let caption = if place == 0 { caption.join(" ") } else { "Continued.".to_owned() };
            text += &latex_float(&blocks.join("\\par\\vspace{2pt}\n"), &caption);
        }
        text
    }

    fn block(&self, columns: std::ops::Range<usize>, longest: usize) -> String {
        let names =
            if longest > LONGEST_NAME { format!("p{{{:.0}pt}}", LONGEST_NAME as f64 * SMALL) } else { "l".to_owned() };
        let heads: Vec<String> = self.columns[columns.clone()].iter().map(|name| latex_head(name)).collect();
        let mut text = format!(
            "\\begin{{tabular}}{{{names}{}}}\n\\toprule\n{} & {} \\\\\n\\midrule\n",
            "r".repeat(columns.len()),
            escape_latex(&self.corner),
            heads.join(" & ")
        );
        for (place, row) in self.rows.iter().enumerate() {
            if row.rule && place > 0 {
                text += "\\midrule\n";
            }
            let cells: Vec<String> = columns
                .clone()
                .map(|column| row.cells.get(column).and_then(Option::as_ref).map_or("--".to_owned(), latex_cell))
                .collect();
            let name = escape_latex(&row.name);
            // A row of stacks throughout; where only some cells are, the name keeps to the line of the others.
            let is_high = !row.cells.is_empty() && row.cells.iter().flatten().all(|cell| !cell.below.is_empty());
            let name = match (longest > LONGEST_NAME, is_high) {
                (true, _) => format!("\\raggedright {name}"),
                // A stack stands on its last line: the name stands beside the first.
                (false, true) => format!("\\raisebox{{5pt}}{{{name}}}"),
                (false, false) => name,
            };
            let apart = if is_high { "[2pt]" } else { "" };
            let _ = writeln!(text, "{name} & {} \\\\{apart}", cells.join(" & "));
        }
        text + "\\bottomrule\n\\end{tabular}\n"
    }

    /// Points that a block is high.
    fn height(&self, columns: std::ops::Range<usize>, longest: usize) -> f64 {
        let head = self.columns[columns].iter().map(|name| head_lines(name).len()).max().unwrap_or(1);
        let row = |row: &SheetRow| {
            let names =
                if longest > LONGEST_NAME { row.name.chars().count().div_ceil(LONGEST_NAME - 2).max(1) } else { 1 };
            let stack =
                if row.cells.iter().flatten().any(|cell| !cell.below.is_empty()) { LINE + TINY_LINE } else { LINE };
            stack.max(names as f64 * LINE) + if row.rule { RULE } else { 0.0 }
        };
        RULES + LINE + (head - 1) as f64 * TINY_LINE + self.rows.iter().map(row).sum::<f64>()
    }

    /// Points that a column takes.
    fn width(&self, column: usize) -> f64 {
        let head = head_lines(&self.columns[column]);
        let (first, small) = head.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
        let mut widest = first.chars().count() as f64 * SMALL;
        for line in small {
            widest = widest.max(line.chars().count() as f64 * TINY);
        }
        for cell in self.rows.iter().filter_map(|row| row.cells.get(column)?.as_ref()) {
            let number = (cell.text.chars().count() + cell.spread.chars().count()) as f64 * SMALL;
            let marks = cell.mark.chars().count() as f64 * TINY;
            widest = widest.max(number + marks).max(cell.below.chars().count() as f64 * TINY);
        }
        widest + GAP
    }
}

/// What stands above every table of ours in LaTeX.
pub const LATEX_NEEDS: &str = "% Needs \\usepackage{booktabs}. Made by cuemark.\n";

/// `tables` as one float with a caption; both are LaTeX already.
pub fn latex_float(tables: &str, caption: &str) -> String {
    format!(
        "\\begin{{table}}[t]\n\\centering\\small\n\\setlength{{\\tabcolsep}}{{3pt}}\n\
         {tables}\\caption{{{caption}}}\n\\end{{table}}\n"
    )
}

/// Runs of columns, or of blocks, that fit into some room together; at least one each.
fn runs_that_fit(sizes: &[f64], room: f64) -> Vec<std::ops::Range<usize>> {
    let (mut runs, mut from, mut taken) = (Vec::new(), 0, 0.0);
    for (place, size) in sizes.iter().enumerate() {
        if place > from && taken + size > room {
            runs.push(from..place);
            (from, taken) = (place, 0.0);
        }
        taken += size;
    }
    if from < sizes.len() || sizes.is_empty() {
        runs.push(from..sizes.len());
    }
    runs
}

/// `R@1,IoU=0.5/short` in three short lines.
fn head_lines(name: &str) -> Vec<&str> {
    let (base, part) = name.split_once('/').map_or((name, None), |(base, part)| (base, Some(part)));
    let mut lines: Vec<&str> = base.splitn(2, ',').collect();
    lines.extend(part);
    lines
}

fn latex_head(name: &str) -> String {
    let lines: Vec<String> = head_lines(name)
        .iter()
        .enumerate()
        .map(|(place, line)| if place == 0 { escape_latex(line) } else { format!("{{\\tiny {}}}", escape_latex(line)) })
        .collect();
    match lines.as_slice() {
        [only] => only.clone(),
        several => format!("\\shortstack[r]{{{}}}", several.join("\\\\")),
    }
}

fn latex_cell(cell: &SheetCell) -> String {
    let number = escape_latex(&cell.text);
    let mut text = if cell.is_bold { format!("\\textbf{{{number}}}") } else { number };
    if !cell.mark.is_empty() {
        let _ = write!(text, "$^{{\\mathrm{{{}}}}}$", escape_latex(&cell.mark));
    }
    if !cell.spread.is_empty() {
        let _ = write!(text, "{{\\tiny {}}}", escape_latex(&cell.spread));
    }
    if cell.below.is_empty() {
        return text;
    }
    format!("\\shortstack[r]{{{text}\\\\{{\\tiny {}}}}}", escape_latex(&cell.below))
}

fn markdown_cell(cell: &SheetCell) -> String {
    let mut text = if cell.is_bold { format!("**{}**", cell.text) } else { cell.text.clone() };
    if !cell.mark.is_empty() {
        let _ = write!(text, "<sup>{}</sup>", escape_markdown(&cell.mark));
    }
    if !cell.spread.is_empty() {
        let _ = write!(text, " {}", cell.spread);
    }
    if !cell.below.is_empty() {
        let _ = write!(text, " [{}]", cell.below);
    }
    text
}

/// One line of a CSV file; a cell that a spreadsheet would compute gets a quote in front.
pub fn csv_line<S: AsRef<str>>(cells: &[S]) -> String {
    let cell = |text: &S| {
        let text = text.as_ref();
        let is_number = text.parse::<f64>().is_ok();
        let text = if !is_number && text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            format!("'{text}")
        } else {
            text.to_owned()
        };
        if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    let cells: Vec<String> = cells.iter().map(cell).collect();
    format!("{}\n", cells.join(","))
}

/// Text from anywhere, without a character that LaTeX would act on or that its usual fonts lack.
pub fn escape_latex(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '\\' => escaped.push_str(r"\textbackslash{}"),
            '~' => escaped.push_str(r"\textasciitilde{}"),
            '^' => escaped.push_str(r"\textasciicircum{}"),
            '–' => escaped.push_str("--"),
            '−' => escaped.push_str("$-$"),
            '±' => escaped.push_str(r"$\pm$"),
            '<' => escaped.push_str("$<$"),
            '>' => escaped.push_str("$>$"),
            '·' => escaped.push_str(r"\textperiodcentered{}"),
            '…' => escaped.push_str(r"\ldots{}"),
            c if c.is_whitespace() || c.is_control() => escaped.push(' '),
            c if (c as u32) < 0x180 => escaped.push(c),
            _ => escaped.push('?'),
        }
    }
    escaped
}

/// Text from anywhere, without a character that Markdown or HTML would act on.
pub fn escape_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => escaped.extend(['\\', c]),
            c if c.is_whitespace() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(columns: usize) -> Sheet {
        let cell = |n: usize| {
            let text = format!("{n}.00");
            Some(SheetCell { text, below: "51.20 – 57.01".to_owned(), is_bold: n == 0, ..SheetCell::default() })
        };
        let rows = vec![SheetRow { name: "a_b".to_owned(), cells: (0..columns).map(cell).collect(), rule: false }];
        let columns = (0..columns).map(|n| format!("R@{n},IoU=0.5")).collect();
        Sheet { title: "50 % of it".to_owned(), corner: "method".to_owned(), columns, rows, notes: Vec::new() }
    }

    #[test]
    fn columns_that_do_not_fit_stand_in_blocks_below() {
        let one = sheet(3).to_latex();
        assert_eq!(one.matches("\\begin{tabular}").count(), 1);
        let many = sheet(13).to_latex();
        assert!(many.matches("\\begin{tabular}").count() >= 3, "{many}");
        for column in 0..13 {
            assert!(many.contains(&format!("R@{column}\\\\")), "column {column} is there");
        }
        assert_eq!(runs_that_fit(&[400.0, 400.0], 100.0), [0..1, 1..2]);
        // Blocks that no page has room for stand in a table of their own.
        assert_eq!(many.matches("\\begin{table}").count(), 1);
        let row = sheet(13).rows.remove(0);
        let tall = Sheet { rows: vec![row; 12], ..sheet(13) }.to_latex();
        assert!(tall.matches("\\begin{table}").count() >= 2 && tall.contains("\\caption{Continued.}"), "{tall}");
    }

    #[test]
    fn nothing_in_a_name_is_a_command() {
        assert!(
            sheet(1).to_latex().contains("{a\\_b} & \\shortstack[r]{\\textbf{0.00}\\\\{\\tiny 51.20 -- 57.01}} \\\\")
        );
        assert!(sheet(1).to_latex().contains("\\caption{50 \\% of it}"));
        assert_eq!(escape_latex("\\input{x}"), "\\textbackslash{}input\\{x\\}");
        assert_eq!(csv_line(&["=1+1", "a,b", "-5.00"]), "'=1+1,\"a,b\",-5.00\n");
    }

    #[test]
    fn markdown_and_csv_hold_the_same_numbers() {
        let sheet = sheet(1);
        assert_eq!(
            sheet.to_markdown(),
            "| method | R@0,IoU=0.5 |\n| --- | ---: |\n| a\\_b | **0.00** [51.20 – 57.01] |\n"
        );
        assert_eq!(sheet.to_csv(), "method,\"R@0,IoU=0.5\",\"R@0,IoU=0.5 interval\"\na_b,0.00,51.20 – 57.01\n");
    }
}
