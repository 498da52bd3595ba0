//! A picture that is a file of its own.

use maud::{Markup, html};

/// What a page's style sheet would say. Colours are safe for eyes that tell few.
const STYLE: &str = "text{font-family:sans-serif;font-size:12px;fill:#333}.heading{font-size:16px;fill:#111}\
.title{font-size:13px}.middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#e4e4e4}\
.axis,.notch{stroke:#666}.line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}\
.dashed{stroke-dasharray:4 4;stroke-width:1}.c0{color:#787878}.c1{color:#0072b2}.c2{color:#d55e00}.ink{color:#111}";

/// An SVG file of these extents, in pixels, on white; `label` says what it shows.
pub fn picture(label: &str, (width, height): (f64, f64), content: &Markup) -> String {
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(label) {
            style { (maud::PreEscaped(STYLE)) }
            rect width=(width) height=(height) fill="#fff" {}
            (content)
        }
    };
    drawn.0 + "\n"
}
