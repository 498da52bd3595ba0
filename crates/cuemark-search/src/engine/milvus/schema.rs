//! The two collections of an index: its moments, and the catalogue of its videos.
//!
//! ```text
//! NAME          id* (by the server)  video (partitions go by it)  put  number  lot  start  end  present  tags  embedding
//! NAME_videos   id* (the video)      put  moments  present  entry (JSON)  unused (Milvus wants a vector)
//! ```
//! Every time that a video is put, its moments get a new `put` number; those count whose number the catalogue names. So a
//! writer that dies half way leaves moments that nobody finds, and replacing a video is one upsert in the catalogue.
//! `present` and `tags` stand beside every moment too, because a server filters by nothing else. `lot` is a hash that makes
//! samples cheap. The description of `NAME` is the index's manifest.

use milvus::proto::common::KeyValuePair;
use milvus::proto::schema::{CollectionSchema, DataType, FieldSchema};
use serde::{Deserialize, Serialize};

use super::super::{CollectionLayout, VectorIndex};
use crate::Manifest;

/// Partitions over which the server spreads the videos of a collection.
pub(super) const PARTITIONS: i64 = 16;
/// Bytes of the longest name of a video.
pub(super) const LONGEST_NAME: usize = 4096;
/// Bytes of the longest entry of the catalogue: the longest text that Milvus takes.
pub(super) const LONGEST_ENTRY: usize = 65_535;
/// Numbers of the vector that nothing uses.
pub(super) const UNUSED: usize = 2;
/// Links of a moment in the server's graph, and candidates kept while one is put in: as in the embedded engine.
const LINKS: usize = 16;
const BUILD_EXPANSION: usize = 96;

/// What the description of the moments' collection says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) layout: CollectionLayout,
    pub(super) manifest: Manifest,
}

pub(super) fn pair(key: &str, value: &dyn ToString) -> KeyValuePair {
    KeyValuePair { key: key.to_owned(), value: value.to_string() }
}

fn field(name: &str, kind: DataType, parameters: Vec<KeyValuePair>) -> FieldSchema {
    FieldSchema { name: name.to_owned(), data_type: kind as i32, type_params: parameters, ..FieldSchema::default() }
}

fn text(name: &str, longest: usize) -> FieldSchema {
    field(name, DataType::VarChar, vec![pair("max_length", &longest)])
}

fn vector(name: &str, width: usize) -> FieldSchema {
    field(name, DataType::FloatVector, vec![pair("dim", &width)])
}

/// The moments.
pub(super) fn moments(name: &str, description: &Description) -> CollectionSchema {
    let fields = vec![
        FieldSchema { is_primary_key: true, auto_id: true, ..field("id", DataType::Int64, vec![]) },
        FieldSchema { is_partition_key: true, ..text("video", LONGEST_NAME) },
        field("put", DataType::Int64, vec![]),
        field("number", DataType::Int64, vec![]),
        field("lot", DataType::Int64, vec![]),
        field("start", DataType::Double, vec![]),
        field("end", DataType::Double, vec![]),
        field("present", DataType::Bool, vec![]),
        field("tags", DataType::Json, vec![]),
        vector("embedding", description.manifest.width),
    ];
    let description = serde_json::to_string(description).unwrap_or_default();
    CollectionSchema { name: name.to_owned(), description, fields, ..CollectionSchema::default() }
}

/// The catalogue.
pub(super) fn catalogue(name: &str) -> CollectionSchema {
    let fields = vec![
        FieldSchema { is_primary_key: true, ..text("id", LONGEST_NAME) },
        field("put", DataType::Int64, vec![]),
        field("moments", DataType::Int64, vec![]),
        field("present", DataType::Bool, vec![]),
        text("entry", LONGEST_ENTRY),
        vector("unused", UNUSED),
    ];
    CollectionSchema { name: name.to_owned(), fields, ..CollectionSchema::default() }
}

/// What `create_index` wants to hear.
pub(super) fn index_parameters(index: VectorIndex) -> Vec<KeyValuePair> {
    let (kind, parameters) = match index {
        VectorIndex::Flat => ("FLAT", "{}".to_owned()),
        VectorIndex::Hnsw => ("HNSW", format!("{{\"M\":{LINKS},\"efConstruction\":{BUILD_EXPANSION}}}")),
    };
    vec![pair("index_type", &kind), pair("metric_type", &"IP"), pair("params", &parameters)]
}
