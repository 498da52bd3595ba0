//! The calls that the engine makes, each as a server from 2.3 on understands it.

use std::time::{Duration, Instant};

use milvus::proto::common::{
    ConsistencyLevel, DslType, IndexState, LoadState, PlaceholderGroup, PlaceholderType, PlaceholderValue,
};
use milvus::proto::milvus as rpc;
use milvus::proto::milvus::search_request::SearchInput;
use milvus::proto::schema::{CollectionSchema, FieldData, SearchResultData};
use prost::Message as _;

use super::super::VectorIndex;
use super::columns::Columns;
use super::schema::{PARTITIONS, index_parameters, pair};
use super::wire::{Failure, Wire};
use crate::Result;

/// How long loading, flushing and indexing may take before something is said.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Between two looks at what takes long.
const LOOK: Duration = Duration::from_millis(100);

/// How fresh an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fresh {
    /// With everything that was written until the server's time `since`.
    Since(u64),
    /// With everything that was written until five seconds ago. A server that takes up its log again after a restart makes
    /// a question wait until it has got so far.
    Recent,
    /// With everything that was written until now, by anybody. Waits for the server's next tick.
    Now,
}

impl Fresh {
    fn level(self) -> (i32, u64) {
        match self {
            Self::Now => (ConsistencyLevel::Strong as i32, 0),
            Self::Recent => (ConsistencyLevel::Bounded as i32, 2),
            Self::Since(since) => (ConsistencyLevel::Session as i32, since),
        }
    }
}

/// A question about rows.
pub(super) struct Rows<'a> {
    pub(super) collection: &'a str,
    /// The condition.
    pub(super) which: String,
    /// The columns.
    pub(super) columns: &'a [&'a str],
    /// At most so many, those with the smallest keys; `None` for all.
    pub(super) most: Option<usize>,
    pub(super) fresh: Fresh,
}

/// A question about neighbours.
pub(super) struct Neighbours<'a> {
    pub(super) collection: &'a str,
    pub(super) field: &'a str,
    pub(super) which: &'a str,
    pub(super) columns: &'a [&'a str],
    pub(super) query: &'a [f32],
    pub(super) count: usize,
    /// Candidates kept on the way; `None` where the index knows no such thing.
    pub(super) expansion: Option<usize>,
    pub(super) fresh: Fresh,
}

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}

impl Wire {
    pub(super) fn has_collection(&self, name: &str) -> Result<bool> {
        let request = rpc::HasCollectionRequest { collection_name: name.to_owned(), ..Default::default() };
        let answer: rpc::BoolResponse = self.call(|mut client| {
            let request = request.clone();
            async move { client.has_collection(request).await }
        })?;
        Ok(answer.value)
    }

    /// The description that a collection was made with; `None` when it is not there.
    pub(super) fn description(&self, name: &str) -> Result<Option<String>> {
        if !self.has_collection(name)? {
            return Ok(None);
        }
        let request = rpc::DescribeCollectionRequest { collection_name: name.to_owned(), ..Default::default() };
        let answer: rpc::DescribeCollectionResponse = self.call(|mut client| {
            let request = request.clone();
            async move { client.describe_collection(request).await }
        })?;
        Ok(answer.schema.map(|schema| schema.description))
    }

    /// Makes a collection; with partitions when a field asks for them.
    pub(super) fn create_collection(&self, schema: &CollectionSchema, shards: u8) -> Result<()> {
        let partitioned = schema.fields.iter().any(|field| field.is_partition_key);
        let request = rpc::CreateCollectionRequest {
            collection_name: schema.name.clone(),
            schema: schema.encode_to_vec(),
            shards_num: i32::from(shards),
            consistency_level: ConsistencyLevel::Bounded as i32,
            num_partitions: if partitioned { PARTITIONS } else { 0 },
            ..Default::default()
        };
        self.call(|mut client| {
            let request = request.clone();
            async move { client.create_collection(request).await }
        })
        .map(drop)
    }

    pub(super) fn drop_collection(&self, name: &str) -> Result<()> {
        let request = rpc::DropCollectionRequest { collection_name: name.to_owned(), ..Default::default() };
        self.call(|mut client| {
            let request = request.clone();
            async move { client.drop_collection(request).await }
        })
        .map(drop)
    }

    /// Sees to it that a collection has its index and is in memory.
    pub(super) fn make_ready(&self, name: &str, field: &str, index: VectorIndex) -> Result<()> {
        if self.load_state(name)? == LoadState::Loaded as i32 {
            return Ok(());
        }
        let request = rpc::CreateIndexRequest {
            collection_name: name.to_owned(),
            field_name: field.to_owned(),
            extra_params: index_parameters(index),
            index_name: field.to_owned(),
            ..Default::default()
        };
        self.call(|mut client| {
            let request = request.clone();
            async move { client.create_index(request).await }
        })?;
        let request =
            rpc::LoadCollectionRequest { collection_name: name.to_owned(), replica_number: 1, ..Default::default() };
        self.call(|mut client| {
            let request = request.clone();
            async move { client.load_collection(request).await }
        })?;
        self.wait(&format!("loading `{name}`"), || Ok(self.load_state(name)? == LoadState::Loaded as i32))
    }

    fn load_state(&self, name: &str) -> Result<i32> {
        let request = rpc::GetLoadStateRequest { collection_name: name.to_owned(), ..Default::default() };
        let answer: rpc::GetLoadStateResponse = self.call(|mut client| {
            let request = request.clone();
            async move { client.get_load_state(request).await }
        })?;
        Ok(answer.state)
    }

    /// Throws a collection's index away; it is out of memory then.
    pub(super) fn drop_index(&self, name: &str, field: &str) -> Result<()> {
        let request = rpc::ReleaseCollectionRequest { collection_name: name.to_owned(), ..Default::default() };
        self.call(|mut client| {
            let request = request.clone();
            async move { client.release_collection(request).await }
        })?;
        let request = rpc::DropIndexRequest {
            collection_name: name.to_owned(),
            index_name: field.to_owned(),
            field_name: field.to_owned(),
            ..Default::default()
        };
        self.call(|mut client| {
            let request = request.clone();
            async move { client.drop_index(request).await }
        })
        .map(drop)
    }

    /// Adds rows, trying once: a second try could add them twice. Answers with the server's time.
    pub(super) fn insert(&self, name: &str, columns: Vec<FieldData>, rows: usize) -> Result<u64, Failure> {
        let request = rpc::InsertRequest {
            collection_name: name.to_owned(),
            fields_data: columns,
            num_rows: rows as u32,
            ..Default::default()
        };
        let answer: rpc::MutationResult = self.attempt(|mut client| async move { client.insert(request).await })?;
        if answer.insert_cnt != rows as i64 {
            let problem = format!("{} of {rows} rows were inserted", answer.insert_cnt);
            return Err(Failure { transient: true, problem });
        }
        Ok(answer.timestamp)
    }

    /// Adds rows in the place of those with the same keys. Answers with the server's time.
    pub(super) fn upsert(&self, name: &str, columns: &[FieldData], rows: usize) -> Result<u64> {
        let request = rpc::UpsertRequest {
            collection_name: name.to_owned(),
            fields_data: columns.to_vec(),
            num_rows: rows as u32,
            ..Default::default()
        };
        let answer: rpc::MutationResult = self.call(|mut client| {
            let request = request.clone();
            async move { client.upsert(request).await }
        })?;
        Ok(answer.timestamp)
    }

    /// Removes the rows that fulfil a condition; they are gone for this and every later question.
    pub(super) fn delete(&self, name: &str, which: &str) -> Result<()> {
        let request =
            rpc::DeleteRequest { collection_name: name.to_owned(), expr: which.to_owned(), ..Default::default() };
        self.call(|mut client| {
            let request = request.clone();
            async move { client.delete(request).await }
        })?;
        // The server does not say when it did so: a look that waits for its clock does.
        self.count(name, which, Fresh::Now).map(drop)
    }

    pub(super) fn rows(&self, ask: &Rows) -> Result<Columns> {
        let (consistency_level, guarantee_timestamp) = ask.fresh.level();
        let request = rpc::QueryRequest {
            collection_name: ask.collection.to_owned(),
            expr: ask.which.clone(),
            output_fields: names(ask.columns),
            query_params: ask.most.map(|most| pair("limit", &most)).into_iter().collect(),
            guarantee_timestamp,
            consistency_level,
            ..Default::default()
        };
        let answer: rpc::QueryResults = self.call(|mut client| {
            let request = request.clone();
            async move { client.query(request).await }
        })?;
        Ok(Columns(answer.fields_data))
    }

    /// How many rows fulfil a condition.
    pub(super) fn count(&self, name: &str, which: &str, fresh: Fresh) -> Result<usize> {
        let ask = Rows { collection: name, which: which.to_owned(), columns: &["count(*)"], most: None, fresh };
        let columns = self.rows(&ask)?;
        let counted = columns.longs("count(*)").map_err(|problem| self.malformed(problem))?;
        Ok(counted.first().map_or(0, |count| usize::try_from(*count).unwrap_or(0)))
    }

    pub(super) fn neighbours(&self, ask: &Neighbours) -> Result<SearchResultData> {
        let value = PlaceholderValue {
            tag: "$0".to_owned(),
            r#type: PlaceholderType::FloatVector as i32,
            values: vec![ask.query.iter().flat_map(|x| x.to_le_bytes()).collect()],
            ..Default::default()
        };
        let group = PlaceholderGroup { placeholders: vec![value] };
        let parameters = ask.expansion.map_or_else(|| "{}".to_owned(), |expansion| format!("{{\"ef\":{expansion}}}"));
        let (consistency_level, guarantee_timestamp) = ask.fresh.level();
        let request = rpc::SearchRequest {
            collection_name: ask.collection.to_owned(),
            dsl: ask.which.to_owned(),
            dsl_type: DslType::BoolExprV1 as i32,
            search_input: Some(SearchInput::PlaceholderGroup(group.encode_to_vec())),
            output_fields: names(ask.columns),
            search_params: vec![
                pair("anns_field", &ask.field),
                pair("topk", &ask.count),
                pair("metric_type", &"IP"),
                pair("params", &parameters),
                pair("round_decimal", &-1),
            ],
            nq: 1,
            guarantee_timestamp,
            consistency_level,
            ..Default::default()
        };
        let answer: rpc::SearchResults = self.call(|mut client| {
            let request = request.clone();
            async move { client.search(request).await }
        })?;
        Ok(answer.results.unwrap_or_default())
    }

    /// Waits until everything written so far lies in the server's storage.
    pub(super) fn flush(&self, collections: &[&str]) -> Result<()> {
        let request = rpc::FlushRequest { collection_names: names(collections), ..Default::default() };
        let answer: rpc::FlushResponse = self.call(|mut client| {
            let request = request.clone();
            async move { client.flush(request).await }
        })?;
        for name in collections {
            let Some(segments) = answer.coll_seg_i_ds.get(*name) else { continue };
            let request = rpc::GetFlushStateRequest {
                segment_i_ds: segments.data.clone(),
                flush_ts: answer.coll_flush_ts.get(*name).copied().unwrap_or(0),
                collection_name: (*name).to_owned(),
                ..Default::default()
            };
            self.wait(&format!("flushing `{name}`"), || {
                let answer: rpc::GetFlushStateResponse = self.call(|mut client| {
                    let request = request.clone();
                    async move { client.get_flush_state(request).await }
                })?;
                Ok(answer.flushed)
            })?;
        }
        Ok(())
    }

    /// Rows that the index covers, rows that it should, and whether it is finished with those.
    pub(super) fn indexed(&self, name: &str, field: &str) -> Result<(usize, usize, bool)> {
        let request = rpc::DescribeIndexRequest {
            collection_name: name.to_owned(),
            field_name: field.to_owned(),
            ..Default::default()
        };
        let answer: rpc::DescribeIndexResponse = self.call(|mut client| {
            let request = request.clone();
            async move { client.describe_index(request).await }
        })?;
        let rows = |count: i64| usize::try_from(count).unwrap_or(0);
        Ok(answer.index_descriptions.first().map_or((0, 0, true), |index| {
            let finished = index.state == IndexState::Finished as i32 && index.pending_index_rows <= 0;
            (rows(index.indexed_rows), rows(index.total_rows), finished)
        }))
    }

    /// Looks again and again until something is so.
    pub(super) fn wait(&self, what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let began = Instant::now();
        while !is_so()? {
            if began.elapsed() > LONGEST_WAIT {
                let problem = format!("{what} has not ended after {} s", LONGEST_WAIT.as_secs());
                return Err(self.failed(Failure { transient: true, problem }));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}
