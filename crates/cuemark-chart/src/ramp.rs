//! Colours from few to many.

/// Pale to dark, each darker than the one before, so that print and eyes without colour keep the order.
const RAMP: [[f64; 3]; 5] =
    [[255.0, 255.0, 217.0], [161.0, 218.0, 180.0], [65.0, 182.0, 196.0], [34.0, 94.0, 168.0], [8.0, 29.0, 88.0]];

/// Red, green and blue for a value in 0..1.
pub fn tone(value: f64) -> [u8; 3] {
    let place = value.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let below = (place as usize).min(RAMP.len() - 2);
    [0, 1, 2].map(|channel| {
        let (from, to) = (RAMP[below][channel], RAMP[below + 1][channel]);
        (from + (to - from) * (place - below as f64)).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_get_darker() {
        let light = |value: f64| {
            let [r, g, b] = tone(value).map(f64::from);
            0.299 * r + 0.587 * g + 0.114 * b
        };
        assert!((0..100).all(|n| light(f64::from(n) / 100.0) > light(f64::from(n + 1) / 100.0)));
    }
}
