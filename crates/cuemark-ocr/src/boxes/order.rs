//! The order of corners in a box, and of boxes in a picture.

use super::Corners;

/// Boxes whose upper left corners differ by less than so many pixels in height stand on one line.
const SAME_LINE: f32 = 10.0;

/// The corners clockwise from the upper left one: the two leftmost are on the left.
pub(super) fn clockwise(mut corners: Corners) -> Corners {
    corners.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let [a, b, c, d] = corners;
    let by_height = |a: [f32; 2], b: [f32; 2]| if b[1] < a[1] { [b, a] } else { [a, b] };
    let ([top_left, bottom_left], [top_right, bottom_right]) = (by_height(a, b), by_height(c, d));
    [top_left, top_right, bottom_right, bottom_left]
}

/// From top to bottom, and from left to right where boxes stand on one line.
pub(super) fn reading_order(mut boxes: Vec<Corners>) -> Vec<Corners> {
    boxes.sort_by(|a, b| a[0][1].total_cmp(&b[0][1]).then(a[0][0].total_cmp(&b[0][0])));
    for last in 1..boxes.len() {
        for at in (0..last).rev() {
            let [upper, lower] = [boxes[at][0], boxes[at + 1][0]];
            if (lower[1] - upper[1]).abs() >= SAME_LINE || lower[0] >= upper[0] {
                break;
            }
            boxes.swap(at, at + 1);
        }
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_go_around_clockwise() {
        let wanted = [[1.0, 2.0], [9.0, 1.0], [9.5, 5.0], [1.5, 6.0]];
        let mixed = [wanted[2], wanted[0], wanted[3], wanted[1]];
        assert_eq!(clockwise(mixed), wanted);
    }

    #[test]
    fn a_box_a_little_higher_on_the_right_is_still_read_second() {
        let at = |x: f32, y: f32| [[x, y], [x + 5.0, y], [x + 5.0, y + 5.0], [x, y + 5.0]];
        let boxes = reading_order(vec![at(50.0, 10.0), at(5.0, 18.0), at(70.0, 30.0)]);
        let starts: Vec<f32> = boxes.iter().map(|corners| corners[0][0]).collect();
        assert_eq!(starts, [5.0, 50.0, 70.0]);
    }
}
