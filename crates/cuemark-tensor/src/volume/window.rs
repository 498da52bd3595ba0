//! Which inputs each output of a convolution or a pooling looks at.

use candle_core::{Result, bail};

/// What lies around a volume, seen from the window at its edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// As many places as make the output `ceil(input / stride)` long; an odd one is put at the end. TensorFlow's `SAME`.
    Same,
    /// So many on both sides, by axis: time, height, width. PyTorch's.
    Each([usize; 3]),
}

/// A kernel's extent and how it moves; axes are time, height, width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Places of the kernel.
    pub kernel: [usize; 3],
    /// Steps from one output to the next.
    pub stride: [usize; 3],
    /// What lies around.
    pub padding: Padding,
}

impl Window {
    /// One place: every output looks at its own input.
    pub const POINT: Self = Self { kernel: [1; 3], stride: [1; 3], padding: Padding::Each([0; 3]) };

    /// A window padded as TensorFlow does.
    pub const fn same(kernel: [usize; 3], stride: [usize; 3]) -> Self {
        Self { kernel, stride, padding: Padding::Same }
    }

    /// A square window over pictures, padded as PyTorch does.
    pub const fn square(kernel: usize, stride: usize, padding: usize) -> Self {
        Self { kernel: [1, kernel, kernel], stride: [1, stride, stride], padding: Padding::Each([0, padding, padding]) }
    }

    /// Where the window stands on an input of these extents.
    pub(super) fn place(&self, input: [usize; 3]) -> Result<Placed> {
        let (mut output, mut before) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            let (kernel, stride, length) = (self.kernel[axis], self.stride[axis], input[axis]);
            if kernel == 0 || stride == 0 || length == 0 {
                bail!("a window of {:?} places, {:?} apart, on {input:?}", self.kernel, self.stride);
            }
            (output[axis], before[axis]) = match self.padding {
                Padding::Same => {
                    let outputs = length.div_ceil(stride);
                    let around = ((outputs - 1) * stride + kernel).saturating_sub(length);
                    (outputs, around / 2)
                }
                Padding::Each(around) => {
                    let Some(room) = (length + 2 * around[axis]).checked_sub(kernel) else {
                        bail!("a window of {:?} places is larger than {input:?} with its padding", self.kernel);
                    };
                    (room / stride + 1, around[axis])
                }
            };
        }
        Ok(Placed { window: *self, input, output, before })
    }
}

/// A window on an input of known extents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) window: Window,
    pub(super) input: [usize; 3],
    pub(super) output: [usize; 3],
    /// Padding before the first input.
    pub(super) before: [usize; 3],
}

impl Placed {
    /// Whether every output is made of its own input alone.
    pub(super) fn is_point(&self) -> bool {
        self.window.kernel == [1; 3] && self.input == self.output && self.before == [0; 3]
    }

    /// Places of an axis with its padding, as far as any output looks.
    pub(super) fn padded(&self, axis: usize) -> usize {
        (self.output[axis] - 1) * self.window.stride[axis] + self.window.kernel[axis]
    }

    /// The input that `output` finds at `place` of the kernel along `axis`; `None` in the padding.
    pub(super) fn at(&self, axis: usize, output: usize, place: usize) -> Option<usize> {
        let from = (output * self.window.stride[axis] + place).checked_sub(self.before[axis])?;
        (from < self.input[axis]).then_some(from)
    }

    /// Inputs of one item.
    pub(super) fn inputs(&self) -> usize {
        self.input.iter().product()
    }

    /// Outputs of one item.
    pub(super) fn outputs(&self) -> usize {
        self.output.iter().product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_padding_puts_the_odd_place_at_the_end() {
        // I3D's first layer: 7 places, 2 apart, on 224 leave 112 outputs and 5 places to pad.
        let placed = Window::same([7, 7, 7], [2, 2, 2]).place([16, 224, 224]).unwrap();
        assert_eq!((placed.output, placed.before), ([8, 112, 112], [2, 2, 2]));
        assert_eq!(placed.padded(1), 229);
        assert_eq!([placed.at(1, 0, 1), placed.at(1, 0, 2), placed.at(1, 111, 6)], [None, Some(0), None]);
    }

    #[test]
    fn windows_larger_than_their_input_are_refused() {
        assert!(Window::square(3, 1, 0).place([1, 2, 5]).is_err());
        assert_eq!(Window::square(3, 1, 1).place([1, 2, 5]).unwrap().output, [1, 2, 5]);
        assert!(Window::square(3, 0, 1).place([1, 2, 5]).is_err());
    }
}
