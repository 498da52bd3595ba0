//! Axes, ticks and titles around a field of a picture.

use maud::{Markup, html};

use crate::{Axis, short};

/// Room for labels around a field.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// For names on the vertical axis.
    pub left: f64,
    /// For a heading.
    pub top: f64,
    /// So that the last tick's name is not cut.
    pub right: f64,
    /// For names on the horizontal axis.
    pub bottom: f64,
}

/// A field with two axes, somewhere in a picture.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Its upper left corner.
    pub corner: (f64, f64),
    /// Its width and height, labels included.
    pub size: (f64, f64),
    /// Room for labels.
    pub room: Room,
    /// The horizontal axis.
    pub x: &'a Axis,
    /// The vertical axis.
    pub y: &'a Axis,
}

impl Frame<'_> {
    /// Where a value of the horizontal axis lies.
    pub fn across(&self, value: f64) -> f64 {
        let (left, right) = (self.left(), self.right());
        left + self.x.place(value) * (right - left)
    }

    /// Where a value of the vertical axis lies; what is outside of it, at its end.
    pub fn up(&self, value: f64) -> f64 {
        let (top, bottom) = (self.top(), self.bottom());
        bottom - self.y.place(value).clamp(0.0, 1.0) * (bottom - top)
    }

    /// The left edge of the field.
    pub fn left(&self) -> f64 {
        self.corner.0 + self.room.left
    }

    /// The right edge of the field.
    pub fn right(&self) -> f64 {
        self.corner.0 + self.size.0 - self.room.right
    }

    /// The upper edge of the field.
    pub fn top(&self) -> f64 {
        self.corner.1 + self.room.top
    }

    /// The lower edge of the field.
    pub fn bottom(&self) -> f64 {
        self.corner.1 + self.size.1 - self.room.bottom
    }

    /// Axes with their ticks and titles, grid lines at the ticks of the vertical one.
    pub fn axes(&self) -> Markup {
        let (left, right, bottom) = (self.left(), self.right(), self.bottom());
        let middle = |a: f64, b: f64| short(f64::midpoint(a, b));
        let side = format!("translate({} {}) rotate(-90)", short(self.corner.0 + 11.0), middle(self.top(), bottom));
        html! {
            @for (at, name) in &self.y.ticks {
                line class="grid" x1=(short(left)) x2=(short(right)) y1=(short(self.up(*at))) y2=(short(self.up(*at))) {}
                text class="tick end" x=(short(left - 6.0)) y=(short(self.up(*at) + 3.5)) { (name) }
            }
            @for (at, name) in &self.x.ticks {
                line class="notch" x1=(short(self.across(*at))) x2=(short(self.across(*at))) y1=(short(bottom)) y2=(short(bottom + 4.0)) {}
                text class="tick middle" x=(short(self.across(*at))) y=(short(bottom + 16.0)) { (name) }
            }
            line class="axis" x1=(short(left)) x2=(short(right)) y1=(short(bottom)) y2=(short(bottom)) {}
            text class="title middle" x=(middle(left, right)) y=(short(self.corner.1 + self.size.1 - 6.0)) { (self.x.title) }
            text class="title middle" transform=(side) { (self.y.title) }
        }
    }

    /// A rectangle between two values of each axis; `style` is CSS.
    pub fn cell(&self, across: [f64; 2], up: [f64; 2], style: &str) -> Markup {
        let [left, right] = across.map(|value| self.across(value));
        let [bottom, top] = up.map(|value| self.up(value));
        html! {
            rect x=(short(left)) y=(short(top)) width=(short(right - left)) height=(short(bottom - top)) style=(style) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_edges_of_the_field() {
        let (x, y) = (Axis::unit("x"), Axis::even(0.0, 10.0, "y", |at| at.to_string()));
        let room = Room { left: 40.0, top: 10.0, right: 10.0, bottom: 30.0 };
        let frame = Frame { corner: (100.0, 200.0), size: (150.0, 140.0), room, x: &x, y: &y };
        assert_eq!((frame.across(0.0), frame.across(1.0)), (140.0, 240.0));
        assert_eq!((frame.up(0.0), frame.up(10.0), frame.up(99.0)), (310.0, 210.0, 210.0));
        let cell = frame.cell([0.0, 0.5], [0.0, 10.0], "").0;
        assert!(cell.contains(r#"x="140" y="210" width="50" height="100""#), "{cell}");
    }
}
