//! From a frame of any size to the picture an encoder wants.

use std::fmt;

/// How pixels are mixed when a picture changes its size. All look at every pixel when it shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Straight lines between pixels.
    Bilinear,
    /// Cubics between pixels: sharper.
    Bicubic,
    /// The mean of the pixels that a new one covers.
    Area,
}

/// How a frame is brought to one size, in **pixels**. What comes out is the same for all videos.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// The shorter side becomes `short_side`, then the middle `crop` × `crop` is cut out.
    CentreCrop {
        /// Pixels of the shorter side.
        short_side: usize,
        /// Pixels of each side of what is kept; no more than `short_side`.
        crop: usize,
        /// How pixels are mixed.
        filter: Filter,
    },
    /// Becomes `width` × `height`, whatever its shape was.
    Stretch {
        /// Pixels.
        width: usize,
        /// Pixels.
        height: usize,
        /// How pixels are mixed.
        filter: Filter,
    },
}

impl Framing {
    /// Width and height of the pictures.
    pub fn size(&self) -> [usize; 2] {
        match *self {
            Self::CentreCrop { crop, .. } => [crop, crop],
            Self::Stretch { width, height, .. } => [width, height],
        }
    }

    /// Bytes of one picture: red, green and blue of each pixel.
    pub fn bytes(&self) -> usize {
        3 * self.size().iter().product::<usize>()
    }

    /// As ffmpeg's filters. Colours are restored at full resolution before the cut, so that it may fall on any pixel.
    pub(crate) fn filters(&self) -> String {
        let flags = |filter: Filter| match filter {
            Filter::Bilinear => "bilinear+accurate_rnd+full_chroma_int",
            Filter::Bicubic => "bicubic+accurate_rnd+full_chroma_int",
            Filter::Area => "area",
        };
        match *self {
            Self::CentreCrop { short_side, crop, filter } => format!(
                "scale=w='if(lt(iw,ih),{short_side},-2)':h='if(lt(iw,ih),-2,{short_side})':flags={},format=rgb24,\
                 crop={crop}:{crop}",
                flags(filter)
            ),
            Self::Stretch { width, height, filter } => {
                format!("scale=w={width}:h={height}:flags={},format=rgb24", flags(filter))
            }
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |filter: Filter| match filter {
            Filter::Bilinear => "bilinear",
            Filter::Bicubic => "bicubic",
            Filter::Area => "area",
        };
        match *self {
            Self::CentreCrop { short_side, crop, filter } => {
                write!(f, "short side {short_side}, centre {crop}, {}", name(filter))
            }
            Self::Stretch { width, height, filter } => write!(f, "stretched to {width} x {height}, {}", name(filter)),
        }
    }
}
