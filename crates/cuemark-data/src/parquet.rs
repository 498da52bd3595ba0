//! A split as a Parquet table, one row per query and moment.
//!
//! | column | type | |
//! |---|---|---|
//! | `qid`, `query` | text | |
//! | `video` | text, may be null | the moment's video, or the query's where it has no moment |
//! | `duration` | double, may be null | of that video, seconds |
//! | `start`, `end` | double, may be null | seconds; null for a query without a moment |
//! | `relevance` | double, may be null | null where the file grades nothing |
//! | `kind` | text, may be null | the kind of query, in the dataset's words |
//! | `pool` | list of text, may be null | the videos the query is searched in |
//!
//! Clip ratings and unknown fields are not in the table; the JSON lines have them.

use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{GradedMoment, Span, Split, Truth, VideoId};
use cuemark_formats::{Overwrite, ReadError, Result, WholeFile};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use rustc_hash::FxHashMap;

const SCHEMA: &str = "
    message truth {
        required binary qid (UTF8);
        required binary query (UTF8);
        optional binary video (UTF8);
        optional double duration;
        optional double start;
        optional double end;
        optional double relevance;
        optional binary kind (UTF8);
        optional group pool (LIST) { repeated group list { required binary element (UTF8); } }
    }
";

/// Rows that are held and written together.
const GROUP: usize = 1 << 16;

/// One row of the table.
struct Row<'a> {
    truth: &'a Truth,
    moment: Option<&'a GradedMoment>,
    video: Option<&'a VideoId>,
    duration: Option<f64>,
}

/// Writes `split` to `path`, whole or not at all.
///
/// # Errors
/// When something is there already and may not be replaced, or the file cannot be written.
pub fn write_parquet(split: &Split, path: &Utf8Path, overwrite: Overwrite) -> Result<()> {
    let mut file = WholeFile::create(path, overwrite)?;
    write(split, &mut file)
        .map_err(|error| ReadError::Write { path: path.to_owned(), source: std::io::Error::other(error) })?;
    file.finish()
}

fn write(split: &Split, file: &mut WholeFile) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = Arc::new(WriterProperties::builder().set_compression(zstd).build());
    let mut writer = SerializedFileWriter::new(file, schema, properties)?;
    let durations: FxHashMap<&VideoId, Option<f64>> =
        split.videos.iter().map(|video| (&video.id, video.duration)).collect();
    let mut rows = split.queries.iter().flat_map(|truth| rows_of(truth, &durations));
    loop {
        let group: Vec<Row> = rows.by_ref().take(GROUP).collect();
        if group.is_empty() {
            break;
        }
        let mut columns = writer.next_row_group()?;
        write_group(&group, &mut columns)?;
        columns.close()?;
    }
    writer.close()?;
    Ok(())
}

/// A query's rows: one per moment, or one without.
fn rows_of<'a>(truth: &'a Truth, durations: &FxHashMap<&'a VideoId, Option<f64>>) -> Vec<Row<'a>> {
    let row = |moment: Option<&'a GradedMoment>| {
        let own = truth.video.as_ref();
        let video = moment.map(|graded| &graded.moment.video).or(own.map(|video| &video.id));
        let stated = video.and_then(|video| durations.get(video).copied().flatten());
        let duration = stated.or_else(|| own.filter(|own| Some(&own.id) == video)?.duration);
        Row { truth, moment, video, duration }
    };
    if truth.moments.is_empty() {
        vec![row(None)]
    } else {
        truth.moments.iter().map(|moment| row(Some(moment))).collect()
    }
}

fn write_group(
    rows: &[Row<'_>],
    columns: &mut SerializedRowGroupWriter<'_, &mut WholeFile>,
) -> Result<(), ParquetError> {
    let span = |row: &Row| row.moment.map(|graded| graded.moment.span);
    texts(columns, rows.iter().map(|row| Some(row.truth.query.id.as_str())), Null::Never)?;
    texts(columns, rows.iter().map(|row| Some(row.truth.query.text.as_str())), Null::Never)?;
    texts(columns, rows.iter().map(|row| row.video.map(VideoId::as_str)), Null::Maybe)?;
    doubles(columns, rows.iter().map(|row| row.duration))?;
    doubles(columns, rows.iter().map(|row| span(row).map(Span::start)))?;
    doubles(columns, rows.iter().map(|row| span(row).map(Span::end)))?;
    doubles(columns, rows.iter().map(|row| Some(row.moment?.relevance?.value())))?;
    texts(columns, rows.iter().map(|row| row.truth.kind.as_deref()), Null::Maybe)?;
    pools(columns, rows)
}

/// Whether a column may hold nothing.
#[derive(Clone, Copy, PartialEq)]
enum Null {
    Never,
    Maybe,
}

type Columns<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut WholeFile>;

fn texts<'t>(
    columns: &mut Columns<'_, '_>,
    values: impl Iterator<Item = Option<&'t str>> + Clone,
    null: Null,
) -> Result<(), ParquetError> {
    let present: Vec<ByteArray> = values.clone().flatten().map(ByteArray::from).collect();
    let levels: Vec<i16> = values.map(|value| i16::from(value.is_some())).collect();
    let levels = (null == Null::Maybe).then_some(levels.as_slice());
    let mut column = columns.next_column()?.ok_or_else(no_column)?;
    column.typed::<ByteArrayType>().write_batch(&present, levels, None)?;
    column.close()
}

fn doubles(
    columns: &mut Columns<'_, '_>,
    values: impl Iterator<Item = Option<f64>> + Clone,
) -> Result<(), ParquetError> {
    let present: Vec<f64> = values.clone().flatten().collect();
    let levels: Vec<i16> = values.map(|value| i16::from(value.is_some())).collect();
    let mut column = columns.next_column()?.ok_or_else(no_column)?;
    column.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

/// Lists are written as levels: definition 0 no pool, 1 an empty one, 2 a video; repetition 1 continues a list.
fn pools(columns: &mut Columns<'_, '_>, rows: &[Row<'_>]) -> Result<(), ParquetError> {
    let (mut present, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        match row.truth.pool.as_deref() {
            None | Some([]) => {
                defined.push(i16::from(row.truth.pool.is_some()));
                repeated.push(0);
            }
            Some(pool) => {
                for (index, video) in pool.iter().enumerate() {
                    present.push(ByteArray::from(video.as_str()));
                    defined.push(2);
                    repeated.push(i16::from(index > 0));
                }
            }
        }
    }
    let mut column = columns.next_column()?.ok_or_else(no_column)?;
    column.typed::<ByteArrayType>().write_batch(&present, Some(&defined), Some(&repeated))?;
    column.close()
}

fn no_column() -> ParquetError {
    ParquetError::General("the schema has fewer columns than are written".to_owned())
}
