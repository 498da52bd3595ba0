//! Rows of numbers, one row per clip.

use cuemark_core::VideoId;

/// The features of one video in one stream: one row of `width` numbers per **clip**, row after row.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    rows: usize,
    width: usize,
    data: Vec<f32>,
}

impl Features {
    /// `None` unless `data` holds exactly `rows * width` numbers.
    ///
    /// ```
    /// use cuemark_features::Features;
    /// let features = Features::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    /// assert_eq!(features.row(1), Some([4.0, 5.0, 6.0].as_slice()));
    /// assert!(Features::new(2, 3, vec![0.0; 5]).is_none());
    /// ```
    pub fn new(rows: usize, width: usize, data: Vec<f32>) -> Option<Self> {
        (rows.checked_mul(width) == Some(data.len())).then_some(Self { rows, width, data })
    }

    /// For numbers that are `rows * width` by construction: whole rows only, should they ever not be.
    pub(crate) fn from_parts(rows: usize, width: usize, mut data: Vec<f32>) -> Self {
        let rows = data.len().checked_div(width).map_or(rows, |whole| whole.min(rows));
        data.truncate(rows * width);
        Self { rows, width, data }
    }

    /// Number of clips.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers per clip.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One clip's numbers; `None` past the last.
    pub fn row(&self, clip: usize) -> Option<&[f32]> {
        if clip >= self.rows {
            return None;
        }
        self.data.get(clip * self.width..(clip + 1) * self.width)
    }

    /// All numbers, row after row.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The numbers themselves.
    pub fn into_data(self) -> Vec<f32> {
        self.data
    }

    /// Rows side by side, as many as the shortest of `sources` has.
    ///
    /// ```
    /// use cuemark_features::Features;
    /// let [a, b] = [Features::new(2, 1, vec![1.0, 2.0]), Features::new(1, 2, vec![3.0, 4.0])].map(Option::unwrap);
    /// assert_eq!(Features::beside(&[a, b]).data(), [1.0, 3.0, 4.0]);
    /// ```
    #[must_use]
    pub fn beside(sources: &[Self]) -> Self {
        let rows = sources.iter().map(Self::rows).min().unwrap_or(0);
        let row = |row: usize| sources.iter().filter_map(move |source| source.row(row)).flatten().copied();
        Self::from_parts(rows, sources.iter().map(Self::width).sum(), (0..rows).flat_map(row).collect())
    }

    /// The first row that holds NaN or an infinity.
    pub fn first_bad_row(&self) -> Option<usize> {
        let bad = self.data.iter().position(|number| !number.is_finite())?;
        Some(bad / self.width.max(1))
    }
}

/// Every stream of one video, on its way into a shard.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoFeatures {
    /// The video.
    pub video: VideoId,
    /// Its features by stream name; a video may lack a stream.
    pub streams: Vec<(String, Features)>,
}
