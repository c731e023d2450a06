//! Records to transposed chunks.

use super::super::Group;
use super::super::chunk::{Header, Kind};
use super::super::coding::{Compression, Encoder};
use super::bytecode::Bytecode;
use super::columns::{Buffer, Columns};
use super::state::tag;
use crate::format::Violation;
use crate::format::varint;

/// Encodes records; returns the chunk's header and appends its data to `out`. Buffers are
/// compressed together in buckets of about `bucket_len` bytes.
pub fn encode(
    group: &Group,
    encoder: &mut Encoder,
    bucket_len: u64,
    out: &mut Vec<u8>,
) -> Result<Header, Violation> {
    let start = out.len();
    let columns = Columns::of(group)?;
    let bytecode = Bytecode::of(&columns.path, columns.steps.len());
    let mut stored = Vec::new();
    let mut bucket_lens = Vec::new();
    for bucket in fill_buckets(&columns.buffers, encoder.compression(), bucket_len) {
        let before = stored.len();
        encoder.encode(&bucket, &mut stored)?;
        bucket_lens.push(stored.len() - before);
    }
    let mut layout = Vec::new();
    encoder.encode(&lay_out(&columns, &bytecode, &bucket_lens), &mut layout)?;
    out.push(encoder.compression().letter());
    varint::put(out, layout.len() as u64);
    out.extend_from_slice(&layout);
    out.extend_from_slice(&stored);
    encoder.encode(&bytecode.transitions, out)?;
    let (records, decoded) = (group.len() as u64, group.bytes.len() as u64);
    Ok(Header::new(Kind::TRANSPOSED, records, decoded, &out[start..]))
}

/// Returns the buffers in buckets, those of different kinds apart if that helps to
/// compress them.
fn fill_buckets(buffers: &[Buffer], compression: Compression, bucket_len: u64) -> Vec<Vec<u8>> {
    let mut buckets: Vec<Vec<u8>> = Vec::new();
    let mut before = None;
    for Buffer { kind, bytes } in buffers {
        let is_full = |bucket: &Vec<u8>| {
            let len = (bucket.len() + bytes.len() / 2) as u64;
            compression != Compression::None && (before != Some(*kind) || len >= bucket_len)
        };
        match buckets.last_mut() {
            Some(bucket) if !is_full(bucket) => bucket.extend_from_slice(bytes),
            _ => buckets.push(bytes.clone()),
        }
        before = Some(*kind);
    }
    buckets
}

fn lay_out(columns: &Columns, bytecode: &Bytecode, bucket_lens: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |value: usize| varint::put(&mut out, value as u64);
    put(bucket_lens.len());
    put(columns.buffers.len());
    bucket_lens.iter().for_each(|&len| put(len));
    columns.buffers.iter().for_each(|buffer| put(buffer.bytes.len()));
    let entries = &bytecode.entries;
    let steps = || entries.iter().filter_map(|entry| entry.step.map(|k| columns.steps[k as usize]));
    put(entries.len());
    for entry in entries {
        put(entry.step.map_or(tag::NOTHING, |step| columns.steps[step as usize].tag) as usize);
    }
    entries.iter().for_each(|entry| put(entry.next));
    out.extend(steps().filter_map(|step| step.subtype));
    let mut put = |value: usize| varint::put(&mut out, value as u64);
    steps().filter_map(|step| step.buffer).for_each(&mut put);
    put(bytecode.first);
    out
}
