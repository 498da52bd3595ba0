//! An evaluation as scripts and papers want it.

use cuemark_core::RowCounts;
use serde_json::{Map, Value, json};

use crate::{Evaluation, Interval, Plan, csv_line, escape_latex};

/// An evaluation with how it was computed and, where they were asked for, intervals.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// How it was computed.
    pub plan: &'a Plan,
    /// What was found.
    pub evaluation: &'a Evaluation,
    /// One interval per column, in the columns' order.
    pub intervals: Option<&'a [Interval]>,
    /// What was wrong with the rows of the truth.
    pub truth_rows: &'a RowCounts,
    /// What was wrong with the rows of the predictions.
    pub prediction_rows: &'a RowCounts,
}

impl Report<'_> {
    /// What `cuemark eval --json` prints: fractions under the metrics' own names.
    ///
    /// `counted` has the metrics for which not every query counts; `intervals` is there when the report has some.
    pub fn to_json(&self) -> Value {
        let Self { plan, evaluation, .. } = self;
        let columns = || evaluation.columns.iter();
        let metrics: Map<String, Value> =
            columns().map(|column| (column.name.to_string(), column.mean().into())).collect();
        let counted: Map<String, Value> = columns()
            .filter(|column| column.counted() != evaluation.queries)
            .map(|column| (column.name.to_string(), column.counted().into()))
            .collect();
        let mut result = json!({
            "metrics": metrics,
            "queries": evaluation.queries,
            "missing": evaluation.missing,
            "unknown": evaluation.unknown,
        });
        if let Some(bounds) = self.intervals {
            let intervals: Map<String, Value> =
                columns().zip(bounds).map(|(column, b)| (column.name.to_string(), json!([b.low, b.high]))).collect();
            result["intervals"] = intervals.into();
        }
        if !counted.is_empty() {
            result["counted"] = counted.into();
        }
        if let Some(abstention) = &evaluation.abstention {
            result["abstention"] = json!(abstention);
        }
        result["preset"] = plan.preset.map(|preset| preset.to_string()).into();
        result["conventions"] = plan.conventions().into();
        result["notes"] = evaluation.notes.clone().into();
        result["rows"] = json!({ "truth": self.truth_rows.to_json(), "predictions": self.prediction_rows.to_json() });
        result
    }

    /// A Markdown table in percent with two decimals, one metric a row.
    pub fn to_markdown(&self) -> String {
        let rows = self.rows().into_iter().map(|row| format!("| {} |\n", row.join(" | ")));
        let (header, rule) = match self.intervals {
            Some(_) => ("| metric | percent | interval | queries |", "| --- | ---: | :---: | ---: |"),
            None => ("| metric | percent | queries |", "| --- | ---: | ---: |"),
        };
        format!("{header}\n{rule}\n{}", rows.collect::<String>())
    }

    /// A LaTeX `tabular` of the same (it wants `\usepackage{booktabs}`).
    pub fn to_latex(&self) -> String {
        let (columns, header) = match self.intervals {
            Some(_) => ("lrcr", r"metric & \% & interval & queries \\"),
            None => ("lrr", r"metric & \% & queries \\"),
        };
        let rows = self.rows().into_iter().map(|row| {
            let cells: Vec<String> = row.iter().map(|cell| escape_latex(cell)).collect();
            format!("{} \\\\\n", cells.join(" & "))
        });
        format!(
            "\\begin{{tabular}}{{@{{}}{columns}@{{}}}}\n\\toprule\n{header}\n\\midrule\n{}\\bottomrule\n\\end{{tabular}}\n",
            rows.collect::<String>()
        )
    }

    /// Comma-separated values: fractions with six decimals, one metric a line.
    pub fn to_csv(&self) -> String {
        let mut text = csv_line(&["metric", "value", "low", "high", "queries"]);
        for (position, column) in self.evaluation.columns.iter().enumerate() {
            let number = |value: f64| format!("{value:.6}");
            let bounds = self.intervals.and_then(|bounds| bounds.get(position));
            text += &csv_line(&[
                column.name.to_string(),
                column.mean().map(number).unwrap_or_default(),
                bounds.map(|bounds| number(bounds.low)).unwrap_or_default(),
                bounds.map(|bounds| number(bounds.high)).unwrap_or_default(),
                column.counted().to_string(),
            ]);
        }
        text
    }

    /// Name, percent, interval if there are some, queries that count.
    fn rows(&self) -> Vec<Vec<String>> {
        let percent = |fraction: f64| format!("{:.2}", 100.0 * fraction);
        let row = |(position, column): (usize, &crate::Column)| {
            let mut row = vec![column.name.to_string(), column.mean().map_or_else(String::new, percent)];
            if let Some(bounds) = self.intervals {
                let bounds = bounds.get(position).map(|b| format!("{} – {}", percent(b.low), percent(b.high)));
                row.push(bounds.unwrap_or_default());
            }
            row.push(column.counted().to_string());
            row
        };
        self.evaluation.columns.iter().enumerate().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bootstrap, Overrides, evaluate, intervals, parse_list};
    use cuemark_core::{Predictions, Progress, Query, QueryId, Span, Truth, Video};

    #[test]
    fn a_report_is_a_table_for_papers() {
        let query = Query { id: QueryId::from("1"), text: "opens 50 % of it".to_owned() };
        let span = Span::new(0.0, 5.0).unwrap();
        let truths = [Truth::single(query, Video::new("a", 10.0), [span])];
        let mut plan = Plan::plain(parse_list("R@1,IoU=0.5").unwrap(), Overrides::default());
        plan.groupings.push(crate::Grouping::Length);
        let evaluation = evaluate(&plan, &truths, &Predictions::any(Vec::new()), &Progress::new()).unwrap();
        let bounds =
            intervals(&evaluation.columns, Bootstrap { resamples: 10, ..Bootstrap::default() }, &Progress::new())
                .unwrap();
        let rows = RowCounts::default();
        let report = Report {
            plan: &plan,
            evaluation: &evaluation,
            intervals: Some(&bounds),
            truth_rows: &rows,
            prediction_rows: &rows,
        };
        assert_eq!(
            report.to_markdown(),
            "| metric | percent | interval | queries |\n| --- | ---: | :---: | ---: |\n\
             | R@1,IoU=0.5 | 0.00 | 0.00 – 0.00 | 1 |\n| R@1,IoU=0.5/length=30-50% | 0.00 | 0.00 – 0.00 | 1 |\n"
        );
        assert!(report.to_latex().contains("R@1,IoU=0.5/length=30-50\\% & 0.00 & 0.00 -- 0.00 & 1 \\\\\n"));
        let plain = Report { intervals: None, ..report };
        assert!(plain.to_latex().starts_with("\\begin{tabular}{@{}lrr@{}}\n\\toprule\n"));
    }
}
