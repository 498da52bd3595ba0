//! Principal components: fewer numbers a row, the least of the variance lost.
//!
//! The field's ActivityNet features are 4096 numbers brought to 500 this way. Fitted by the eigenvectors of the covariance
//! matrix of a sample of rows.

use camino::Utf8Path;
use cuemark_core::Advice;
use cuemark_formats::{Overwrite, ReadError, WholeFile};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::number::{ByteOrder, Number};
use crate::{Features, Result};

/// The one key of the file's `__metadata__`.
const HEADER_KEY: &str = "cuemark-pca";
/// Rows that are widened to `f64` at a time.
const BLOCK: usize = 1024;
/// A file of 16,384 components as wide is smaller.
const LARGEST: u64 = 2 << 30;

/// A fitted projection.
#[derive(Debug, Clone, PartialEq)]
pub struct Pca {
    mean: Vec<f32>,
    /// One row per component, the one with the largest variance first; each of length 1, its largest entry positive.
    components: Vec<f32>,
    /// Variance along each component.
    variances: Vec<f64>,
    header: Header,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Header {
    /// Rows it was fitted on.
    rows: usize,
    /// Variance of those rows along all directions together.
    total_variance: f64,
}

impl Pca {
    /// Fits `components` directions to `rows`, which are a sample of the rows that it will be applied to. The same rows give
    /// the same projection on one machine. The error says what is wrong.
    pub fn fit(rows: &Features, components: usize) -> Result<Self, String> {
        let (count, width) = (rows.rows(), rows.width());
        if components == 0 || components > width {
            return Err(format!("{components} components of rows that are {width} wide"));
        }
        if count <= components {
            return Err(format!("{components} components need more than {components} rows, there are {count}"));
        }
        if let Some(row) = rows.first_bad_row() {
            return Err(format!("row {row} of the sample holds a number that is not finite"));
        }
        let mean = mean(rows);
        let covariance = covariance(rows, &mean);
        let total_variance = (0..width).map(|i| covariance[(i, i)]).sum();
        let eigen =
            covariance.self_adjoint_eigen(Side::Lower).map_err(|error| format!("no eigenvectors: {error:?}"))?;
        let (vectors, values) = (eigen.U(), eigen.S().column_vector());
        let mut directions = Vec::with_capacity(components * width);
        // The library sorts them the other way round.
        let wanted = (0..width).rev().take(components);
        for at in wanted.clone() {
            let direction: Vec<f64> = (0..width).map(|i| vectors[(i, at)]).collect();
            // An eigenvector may point either way; this makes it one way.
            let largest = direction.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(1.0);
            directions.extend(direction.iter().map(|number| (number * largest.signum()) as f32));
        }
        let mean = mean.into_iter().map(|number| number as f32).collect();
        let variances = wanted.map(|at| values[at].max(0.0)).collect();
        Ok(Self { mean, components: directions, variances, header: Header { rows: count, total_variance } })
    }

    /// Width of the rows that go in.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Width of the rows that come out.
    pub fn components(&self) -> usize {
        self.variances.len()
    }

    /// Variance along each component, largest first.
    pub fn variances(&self) -> &[f64] {
        &self.variances
    }

    /// Rows that it was fitted on.
    pub fn rows(&self) -> usize {
        self.header.rows
    }

    /// The share of the variance that the components keep, 0 to 1; 1 when there was none.
    pub fn kept(&self) -> f64 {
        let kept: f64 = self.variances.iter().sum();
        if self.header.total_variance > 0.0 { (kept / self.header.total_variance).min(1.0) } else { 1.0 }
    }

    /// The features along the components. `None` when they are of another width.
    pub fn apply(&self, features: &Features) -> Option<Features> {
        if features.width() != self.width() {
            return None;
        }
        let centred = self.centred(features);
        let rows = MatRef::from_row_major_slice(&centred, features.rows(), self.width());
        let directions = MatRef::from_row_major_slice(&self.components, self.components(), self.width());
        let mut data = vec![0.0; features.rows() * self.components()];
        let out = MatMut::from_row_major_slice_mut(&mut data, features.rows(), self.components());
        // Videos are handled side by side, so one of them needs one thread only.
        matmul(out, Accum::Replace, rows, directions.transpose(), 1.0, Par::Seq);
        Some(Features::from_parts(features.rows(), self.components(), data))
    }

    fn centred(&self, features: &Features) -> Vec<f32> {
        let rows = features.data().chunks_exact(self.width().max(1));
        rows.flat_map(|row| row.iter().zip(&self.mean).map(|(number, mean)| number - mean)).collect()
    }

    /// A name for exactly these numbers, to stand in a recipe.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for number in self.mean.iter().chain(&self.components) {
            hash.update(number.to_le_bytes());
        }
        cuemark_core::digest::hex(&hash.finalize()[..8])
    }

    /// Writes it to a safetensors file: `mean`, `components`, `variances`.
    ///
    /// # Errors
    /// When the file is there already and may not be replaced, or the disk refuses.
    pub fn save(&self, path: &Utf8Path, overwrite: Overwrite) -> Result<()> {
        let fault = |problem: String| ReadError::file(path, problem);
        let floats = |numbers: &[f32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let (mean, components) = (floats(&self.mean), floats(&self.components));
        let variances: Vec<u8> = self.variances.iter().flat_map(|number| number.to_le_bytes()).collect();
        let (kept, width) = (self.components(), self.width());
        let views = [
            ("mean", Dtype::F32, vec![width], &mean),
            ("components", Dtype::F32, vec![kept, width], &components),
            ("variances", Dtype::F64, vec![kept], &variances),
        ];
        let views = views
            .into_iter()
            .map(|(name, dtype, shape, bytes)| Ok((name, TensorView::new(dtype, shape, bytes)?)))
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
            .map_err(|error| fault(error.to_string()))?;
        let header = serde_json::to_string(&self.header).map_err(|error| fault(error.to_string()))?;
        let header = [(HEADER_KEY.to_owned(), header)].into_iter().collect();
        let bytes = safetensors::serialize(views, Some(header)).map_err(|error| fault(error.to_string()))?;
        Ok(WholeFile::write_all_to(path, overwrite, &bytes)?)
    }

    /// Reads what [`Pca::save`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read, or is not such a file.
    pub fn load(path: &Utf8Path) -> Result<Self> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        if path.metadata().map_err(io)?.len() > LARGEST {
            let (path, what) = (path.to_owned(), "the file".to_owned());
            return Err(ReadError::TooLarge { path, what, limit: LARGEST }.into());
        }
        let bytes = std::fs::read(path).map_err(io)?;
        let fault = |problem: String| {
            ReadError::file(path, problem).with_hint(Advice::say("make it again with ").set_any("pca", "N"))
        };
        Ok(Self::parse(&bytes).map_err(fault)?)
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| format!("no safetensors: {error}"))?;
        let header = metadata.metadata().as_ref().and_then(|fields| fields.get(HEADER_KEY));
        let header = header.ok_or_else(|| format!("its header has no `{HEADER_KEY}` entry"))?;
        let header: Header = serde_json::from_str(header).map_err(|error| format!("`{HEADER_KEY}`: {error}"))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| format!("no safetensors: {error}"))?;
        let tensor = |name: &str, dtype: Dtype| {
            let tensor = tensors.tensor(name).map_err(|_| format!("no tensor `{name}`"))?;
            if tensor.dtype() != dtype {
                return Err(format!("`{name}` holds {:?}, not {dtype:?}", tensor.dtype()));
            }
            Ok(tensor)
        };
        let (mean, components) = (tensor("mean", Dtype::F32)?, tensor("components", Dtype::F32)?);
        let variances = tensor("variances", Dtype::F64)?;
        let (&[width], &[kept, across], &[along]) = (mean.shape(), components.shape(), variances.shape()) else {
            return Err("`mean`, `components` and `variances` do not have 1, 2 and 1 axes".to_owned());
        };
        if width == 0 || kept == 0 || across != width || along != kept {
            return Err("`mean`, `components` and `variances` do not fit each other".to_owned());
        }
        let (numbers, _) = variances.data().as_chunks::<8>();
        Ok(Self {
            mean: Number::F32.decode(mean.data(), ByteOrder::Little),
            components: Number::F32.decode(components.data(), ByteOrder::Little),
            variances: numbers.iter().map(|number| f64::from_le_bytes(*number)).collect(),
            header,
        })
    }
}

fn mean(rows: &Features) -> Vec<f64> {
    let mut sum = vec![0.0; rows.width()];
    for row in rows.data().chunks_exact(rows.width().max(1)) {
        sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += f64::from(*number));
    }
    sum.into_iter().map(|sum| sum / rows.rows() as f64).collect()
}

/// The covariance of the columns, over one less than the number of rows.
fn covariance(rows: &Features, mean: &[f64]) -> Mat<f64> {
    let width = rows.width();
    let mut covariance = Mat::zeros(width, width);
    let share = 1.0 / (rows.rows() - 1) as f64;
    for block in rows.data().chunks(BLOCK * width) {
        let centred: Vec<f64> = block
            .chunks_exact(width)
            .flat_map(|row| row.iter().zip(mean).map(|(number, mean)| f64::from(*number) - mean))
            .collect();
        let centred = MatRef::from_row_major_slice(&centred, block.len() / width, width);
        matmul(&mut covariance, Accum::Add, centred.transpose(), centred, share, Par::rayon(0));
    }
    covariance
}

#[cfg(test)]
mod tests {
    use cuemark_core::Rng;

    use super::*;

    /// Rows whose columns hang together, with a mean far from 0.
    fn correlated(rows: usize, width: usize, seed: u64) -> Features {
        let mut rng = Rng::new(seed);
        let mixing: Vec<f64> = (0..width * width).map(|_| rng.normal()).collect();
        let mut data = Vec::new();
        for _ in 0..rows {
            let hidden: Vec<f64> = (0..width).map(|i| rng.normal() / (1.0 + i as f64)).collect();
            for column in 0..width {
                let mixed: f64 = hidden.iter().enumerate().map(|(i, h)| h * mixing[i * width + column]).sum();
                data.push((mixed + 5.0) as f32);
            }
        }
        Features::new(rows, width, data).unwrap()
    }

    /// The square of what projecting and going back loses, summed over a row, mean over rows as variances are.
    fn lost(pca: &Pca, rows: &Features) -> f64 {
        let projected = pca.apply(rows).unwrap();
        let mut lost = 0.0;
        for (row, along) in (0..rows.rows()).map(|at| (rows.row(at).unwrap(), projected.row(at).unwrap())) {
            for (column, number) in row.iter().enumerate() {
                let back: f64 = along
                    .iter()
                    .enumerate()
                    .map(|(k, a)| f64::from(*a) * f64::from(pca.components[k * rows.width() + column]))
                    .sum();
                lost += (f64::from(*number) - f64::from(pca.mean[column]) - back).powi(2);
            }
        }
        lost / (rows.rows() - 1) as f64
    }

    #[test]
    fn what_is_lost_is_the_variance_of_the_directions_left_out() {
        let rows = correlated(400, 12, 1);
        let all = Pca::fit(&rows, 12).unwrap();
        for kept in [1, 5, 11] {
            let pca = Pca::fit(&rows, kept).unwrap();
            let tail: f64 = all.variances()[kept..].iter().sum();
            assert!((lost(&pca, &rows) - tail).abs() < 1e-3 * tail, "{kept}: {} against {tail}", lost(&pca, &rows));
            assert!((pca.kept() - (1.0 - tail / all.header.total_variance)).abs() < 1e-9);
        }
        assert!((all.kept() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn projected_columns_are_uncorrelated_and_have_the_variances_promised() {
        let rows = correlated(500, 8, 2);
        let pca = Pca::fit(&rows, 4).unwrap();
        let projected = pca.apply(&rows).unwrap();
        let spread = covariance(&projected, &mean(&projected));
        for i in 0..4 {
            for j in 0..4 {
                let expected = if i == j { pca.variances()[i] } else { 0.0 };
                assert!((spread[(i, j)] - expected).abs() < 1e-3 * pca.variances()[0], "{i} {j} {}", spread[(i, j)]);
            }
        }
        assert!(pca.variances().is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn a_known_plane_is_found() {
        // Points on a line along (3, 4): one direction holds everything.
        let data = (0..10).flat_map(|t| [3.0 * t as f32 + 1.0, 4.0 * t as f32 - 2.0]).collect();
        let pca = Pca::fit(&Features::new(10, 2, data).unwrap(), 1).unwrap();
        assert!((pca.components[0] - 0.6).abs() < 1e-6 && (pca.components[1] - 0.8).abs() < 1e-6, "{pca:?}");
        assert!((pca.kept() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn samples_that_cannot_do_are_refused() {
        assert!(Pca::fit(&correlated(5, 8, 3), 5).unwrap_err().contains("there are 5"));
        assert!(Pca::fit(&correlated(50, 8, 3), 9).is_err());
        assert!(Pca::fit(&correlated(50, 8, 3), 0).is_err());
        assert!(Pca::fit(&Features::new(3, 1, vec![0.0, f32::NAN, 1.0]).unwrap(), 1).is_err());
        assert!(Pca::fit(&correlated(50, 8, 3), 2).unwrap().apply(&correlated(5, 7, 3)).is_none());
    }

    #[test]
    fn a_projection_survives_its_file_and_damage_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("visual.pca")).unwrap();
        let pca = Pca::fit(&correlated(60, 6, 4), 3).unwrap();
        pca.save(&path, Overwrite::Never).unwrap();
        assert_eq!(Pca::load(&path).unwrap(), pca);
        assert!(pca.save(&path, Overwrite::Never).is_err());
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 4, 40, bytes.len() / 2, bytes.len() - 1] {
            assert!(Pca::parse(&bytes[..cut]).is_err(), "{cut}");
        }
    }
}
