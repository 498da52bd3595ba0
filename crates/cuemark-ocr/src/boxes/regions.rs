//! Groups of pixels that touch, and the holes in them.
//!
//! The reference follows every outline, outer and inner. What it goes on with is the convex hull of each, so outlines are not followed
//! here: lines of the map are cut into runs, runs that touch are joined (text by side or corner, what is between it by side), and
//! the ends of a group's runs, or of what surrounds a hole, have the same hull as the outline.

use super::rectangle::convex_hull;
use super::{Map, THRESHOLD};

/// One stretch of equal pixels in a line.
#[derive(Debug, Clone, Copy)]
struct Run {
    row: usize,
    /// `[start, end)`.
    start: usize,
    end: usize,
    is_text: bool,
}

/// The convex hull of every group and of every hole, from top to bottom, at least one point each.
pub(super) fn hulls(map: &Map) -> Vec<Vec<[i64; 2]>> {
    // One empty pixel all around, so that what is outside is one piece.
    let (width, height) = (map.width + 2, map.height + 2);
    let mask = grown_mask(map, width, height);
    let (runs, pieces) = joined(&mask, width);
    let outside = pieces.first().copied().unwrap_or(0);
    let mut points: Vec<Vec<[i64; 2]>> = vec![Vec::new(); runs.len()];
    for (run, &piece) in runs.iter().zip(&pieces) {
        if run.is_text {
            points[piece].extend([point(run.start, run.row), point(run.end - 1, run.row)]);
        } else if piece != outside {
            points[piece].extend(around_hole(&mask, width, run));
        }
    }
    points.into_iter().filter(|points| !points.is_empty()).map(convex_hull).collect()
}

/// In pixels of the map, without the border.
fn point(x: usize, y: usize) -> [i64; 2] {
    [x as i64 - 1, y as i64 - 1]
}

/// What is above the threshold, a pixel wider to the right and below.
fn grown_mask(map: &Map, width: usize, height: usize) -> Vec<bool> {
    let mut mask = vec![false; width * height];
    for (y, line) in map.values.chunks_exact(map.width).enumerate() {
        for (x, _) in line.iter().enumerate().filter(|(_, value)| **value > THRESHOLD) {
            for row in [y + 1, (y + 2).min(map.height)] {
                for column in [x + 1, (x + 2).min(map.width)] {
                    mask[row * width + column] = true;
                }
            }
        }
    }
    mask
}

/// All runs, and for each the number of one that stands for its piece.
fn joined(mask: &[bool], width: usize) -> (Vec<Run>, Vec<usize>) {
    let mut runs: Vec<Run> = Vec::new();
    let mut parents: Vec<usize> = Vec::new();
    let mut above = 0..0;
    for (row, line) in mask.chunks_exact(width).enumerate() {
        let first = runs.len();
        let mut start = 0;
        for stretch in line.chunk_by(|a, b| a == b) {
            runs.push(Run { row, start, end: start + stretch.len(), is_text: stretch[0] });
            parents.push(parents.len());
            start += stretch.len();
        }
        let mut upper = above.start;
        for lower in first..runs.len() {
            // Runs above that end before this one cannot touch those after it either; one more may touch by its corner.
            while upper < above.end && runs[upper].end < runs[lower].start {
                upper += 1;
            }
            let mut next = upper;
            while next < above.end && runs[next].start <= runs[lower].end {
                if touch(&runs[next], &runs[lower]) {
                    join(&mut parents, next, lower);
                }
                next += 1;
            }
        }
        above = first..runs.len();
    }
    let pieces = (0..runs.len()).map(|run| root(&mut parents, run)).collect();
    (runs, pieces)
}

fn touch(a: &Run, b: &Run) -> bool {
    match (a.is_text, b.is_text) {
        (true, true) => a.start <= b.end && b.start <= a.end,
        (false, false) => a.start < b.end && b.start < a.end,
        _ => false,
    }
}

fn root(parents: &mut [usize], mut run: usize) -> usize {
    while parents[run] != run {
        parents[run] = parents[parents[run]];
        run = parents[run];
    }
    run
}

/// The earlier run stands for both, so that pieces come out from top to bottom.
fn join(parents: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(parents, a), root(parents, b));
    parents[a.max(b)] = a.min(b);
}

/// The outermost pixels of text beside, above and below a run of a hole.
fn around_hole(mask: &[bool], width: usize, run: &Run) -> Vec<[i64; 2]> {
    let mut points = vec![point(run.start - 1, run.row), point(run.end, run.row)];
    for row in [run.row - 1, run.row + 1] {
        let line = &mask[row * width..(row + 1) * width];
        let text = |x: &usize| line[*x];
        points.extend((run.start..run.end).find(text).map(|x| point(x, row)));
        points.extend((run.start..run.end).rev().find(text).map(|x| point(x, row)));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drawing with `#` for text, in which the growth to the right and below is undone by drawing single pixels.
    fn hulls_of(drawing: &[&str]) -> Vec<Vec<[i64; 2]>> {
        let width = drawing[0].len();
        let values = drawing.concat().chars().map(|c| if c == '#' { 1.0 } else { 0.0 }).collect();
        let mut hulls = hulls(&Map { width, height: drawing.len(), values });
        hulls.iter_mut().for_each(|hull| hull.sort_unstable());
        hulls
    }

    #[test]
    fn corners_join_text() {
        // The upper pixel grows to (0..=1, 0..=1), the lower to (2..=3, 2..=3), and these touch by a corner.
        assert_eq!(hulls_of(&["#....", ".....", "..#..", "....."]).len(), 1);
        assert_eq!(hulls_of(&["#....", ".....", ".....", "...#."]).len(), 2);
    }

    #[test]
    fn a_hole_has_the_hull_of_the_text_around_it() {
        let ring = ["######..", "#.......", "#.......", "#....#..", "######..", "........"];
        let hulls = hulls_of(&ring);
        // The open ring is one piece without a hole: it is open at the right.
        assert_eq!(hulls, [vec![[0, 0], [0, 5], [6, 0], [6, 5]].into_iter().collect::<Vec<_>>()]);
        let ring = ["######..", "#....#..", "#....#..", "#....#..", "######..", "........"];
        let hulls = hulls_of(&ring);
        assert_eq!(hulls.len(), 2);
        assert_eq!(hulls[0], [[0, 0], [0, 5], [6, 0], [6, 5]]);
        // The hole is 2..=4 by 2..=3; what is beside it by a side has the hull of a cut rectangle.
        assert_eq!(hulls[1], [[1, 2], [1, 3], [2, 1], [2, 4], [4, 1], [4, 4], [5, 2], [5, 3]]);
    }

    #[test]
    fn text_at_the_edge_of_the_map_is_closed_by_it() {
        assert_eq!(hulls_of(&["##", "##"]), [[[0, 0], [0, 1], [1, 0], [1, 1]]]);
    }
}
