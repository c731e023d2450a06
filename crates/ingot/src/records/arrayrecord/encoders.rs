//! Records to chunks, on several threads.

use std::ops::Range;
use std::sync::Mutex;

use super::options::Options;
use crate::format::riegeli::chunk::{self, Header};
use crate::format::riegeli::{Encoder, simple, transposed};
use crate::format::{Group, Violation};
use crate::pool::Pool;

/// Groups that a thread takes at a time have about this many bytes.
const SHARE_BYTES: usize = 64 << 10;

/// Consecutive groups that one thread has encoded.
#[derive(Default)]
pub struct Share {
    /// The headers of their chunks.
    pub headers: Vec<Header>,
    data: Vec<u8>,
}

impl Share {
    /// Returns the chunks as they stand in a file at `position`.
    fn frame(&self, mut position: u64, pad: bool, out: &mut Vec<u8>) {
        let mut data = &self.data[..];
        for header in &self.headers {
            let (now, later) = data.split_at(header.data_len as usize);
            position = chunk::append(out, position, header, now);
            data = later;
            if pad {
                position = chunk::pad(out, position);
            }
        }
    }
}

/// Encodes groups of records on several threads. Keeps its encoders and buffers between batches.
pub struct Encoders {
    options: Options,
    idle: Mutex<Vec<Encoder>>,
    spares: Mutex<Vec<Vec<u8>>>,
}

/// Spare buffers that are kept, and the most that one may hold: fresh memory costs a page
/// fault for every 4 KB.
const KEPT: (usize, usize) = (64, 1 << 20);

impl Encoders {
    /// Returns encoders for a file.
    pub fn new(options: Options) -> Encoders {
        Encoders { options, idle: Mutex::default(), spares: Mutex::default() }
    }

    /// Returns an empty buffer.
    fn spare(&self) -> Vec<u8> {
        self.spares.lock().expect("no panics under this lock").pop().unwrap_or_default()
    }

    /// Takes back buffers that were used.
    pub fn put_back(&self, buffers: impl IntoIterator<Item = Vec<u8>>) {
        let mut spares = self.spares.lock().expect("no panics under this lock");
        for mut buffer in buffers {
            if spares.len() < KEPT.0 && buffer.capacity() <= KEPT.1 {
                buffer.clear();
                spares.push(buffer);
            }
        }
    }

    /// Encodes groups of records.
    pub fn encode(
        &self,
        records: &Group,
        groups: &[Range<usize>],
    ) -> Result<Vec<Share>, Violation> {
        let mean = records.bytes.len() / groups.len().max(1) + 1;
        let shares: Vec<&[Range<usize>]> = groups.chunks((SHARE_BYTES / mean).max(1)).collect();
        let done = Pool::compute().map(shares.len(), &|k| {
            let idle = self.idle.lock().expect("no panics under this lock").pop();
            let mut encoder = idle.unwrap_or_else(|| Encoder::new(self.options.compression()));
            let share = self.encode_share(records, shares[k], &mut encoder);
            self.idle.lock().expect("no panics under this lock").push(encoder);
            share
        });
        done.into_iter().collect()
    }

    /// Returns the bytes of each share in the file, where it begins at a position.
    pub fn frame(&self, shares: Vec<Share>, positions: &[u64]) -> Vec<Vec<u8>> {
        let framed = Pool::compute().map(shares.len(), &|k| {
            let mut out = self.spare();
            shares[k].frame(positions[k], self.options.pad_to_block, &mut out);
            out
        });
        self.put_back(shares.into_iter().map(|share| share.data));
        framed
    }

    fn encode_share(
        &self,
        records: &Group,
        groups: &[Range<usize>],
        encoder: &mut Encoder,
    ) -> Result<Share, Violation> {
        let mut share = Share { headers: Vec::with_capacity(groups.len()), data: self.spare() };
        for group in groups {
            let group = records.view(group.clone());
            share.headers.push(match self.options.transpose {
                Some(bucket) => {
                    transposed::encode(&group.to_group(), encoder, bucket, &mut share.data)?
                }
                None => simple::encode(group, encoder, &mut share.data)?,
            });
        }
        Ok(share)
    }
}
