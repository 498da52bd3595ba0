//! Names and colours of a page's charts; the charts themselves are `cuemark-chart`'s.

pub(super) use cuemark_chart::{Axis, Series, Style, chart, short};
use maud::{Markup, html};

/// The names of series with their colours, `(class, name)`.
pub(super) fn legend<'a>(series: impl Iterator<Item = (String, &'a str)>) -> Markup {
    html! {
        ul class="legend" {
            @for (class, name) in series {
                li class=(class) {
                    svg class="swatch" viewBox="0 0 18 8" aria-hidden="true" { line class="line" x1="0" x2="18" y1="4" y2="4" {} }
                    (super::text::short(name, 60))
                }
            }
        }
    }
}

/// Which colour stands for whom, the same all over the page.
pub(super) struct Palette(Vec<String>);

impl Palette {
    /// In the order of `labels`; there are eight colours, then they repeat.
    pub(super) fn of_labels<'a>(labels: impl Iterator<Item = &'a str>) -> Self {
        let mut known: Vec<String> = Vec::new();
        for label in labels {
            if !known.iter().any(|other| other == label) {
                known.push(label.to_owned());
            }
        }
        Self(known)
    }

    /// The CSS class of the colour of `label`.
    pub(super) fn of(&self, label: &str) -> String {
        format!("c{}", self.0.iter().position(|known| known == label).unwrap_or(7) % 8)
    }
}
