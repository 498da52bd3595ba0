//! The tables as LaTeX (`booktabs`), to be put into a paper with `\input`.

use super::super::Report;
use super::super::table::{Cell, Table};
use super::text::{harmless, percent, short, thousands};

pub(super) fn latex(report: &Report) -> String {
    let mut text = String::from(
        "% Needs \\usepackage{booktabs}. Made by cuemark; bold: p < 0.05 against the next best, paired.\n",
    );
    for board in &report.boards {
        text += &table(&board.table);
    }
    harmless(&text).into_owned()
}

fn table(table: &Table) -> String {
    let header: Vec<String> = table.metrics.iter().map(|name| escaped(name)).collect();
    let mut text = format!(
        "\n\\begin{{table}}\n\\centering\\small\n\\begin{{tabular}}{{l{}}}\n\\toprule\nMethod & {} \\\\\n\\midrule\n",
        "r".repeat(header.len()),
        header.join(" & ")
    );
    let mut blind = false;
    for row in &table.rows {
        let baseline = row.name.kind == super::super::about::Answerer::Baseline;
        if baseline && !blind && !std::ptr::eq(row, &table.rows[0]) {
            text += "\\midrule\n";
        }
        blind = baseline;
        let cells: Vec<String> = row.cells.iter().map(|cell| cell.as_ref().map_or("--".to_owned(), score)).collect();
        text += &format!("{} & {} \\\\\n", escaped(&row.name.label()), cells.join(" & "));
    }
    text += &format!(
        "\\bottomrule\n\\end{{tabular}}\n\\caption{{{}: percent of {} queries; small: 95\\,\\% interval.}}\n\\end{{table}}\n",
        escaped(&table.place.title()),
        thousands(table.queries)
    );
    text
}

fn score(cell: &Cell) -> String {
    let plain = |fraction: f64| percent(fraction).replace('\u{2212}', "-");
    let value = plain(cell.estimate.value);
    let value = if cell.best { format!("\\textbf{{{value}}}") } else { value };
    let sd = cell.sd.map_or(String::new(), |sd| format!("$\\pm${}", plain(sd)));
    format!("{value}{sd} {{\\tiny[{}, {}]}}", plain(cell.estimate.low), plain(cell.estimate.high))
}

/// Text from anywhere, without a character that LaTeX would act on.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in short(text, 200).chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '·' => out.push_str("\\textperiodcentered{}"),
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => out.extend(['\\', c]),
            c if c.is_whitespace() || c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_in_a_name_is_a_command() {
        assert_eq!(escaped("\\input{/etc/passwd} 50%_a"), "\\textbackslash{}input\\{/etc/passwd\\} 50\\%\\_a");
    }
}
