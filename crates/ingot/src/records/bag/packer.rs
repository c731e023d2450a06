//! Records to frames, on several threads.

use std::sync::Mutex;

use crate::compression::frame::Compressor;
use crate::format::Group;
use crate::pool::Pool;

/// Records that a thread takes at a time have about this many bytes.
const SHARE_BYTES: usize = 64 << 10;

/// Compresses each record of a bag by itself. Keeps its compressors between batches.
pub struct Packer {
    level: i32,
    dictionary: Vec<u8>,
    idle: Mutex<Vec<Compressor>>,
}

impl Packer {
    /// Returns a packer that compresses at a level, with a dictionary or without.
    pub fn new(level: i32, dictionary: &[u8]) -> Result<Packer, String> {
        let first = Compressor::new(level, dictionary)?;
        Ok(Packer { level, dictionary: dictionary.to_vec(), idle: Mutex::new(vec![first]) })
    }

    /// Compresses records; empty ones stay empty. Returns them in groups, in order.
    pub fn pack(&self, records: &Group) -> Result<Vec<Group>, String> {
        let mean = records.bytes.len() / records.len().max(1) + 1;
        let count = (SHARE_BYTES / mean).max(1);
        let shares = records.len().div_ceil(count);
        let packed = Pool::compute().map(shares, &|k| {
            let rows = k * count..records.len().min((k + 1) * count);
            self.pack_share(rows.map(|row| records.record(row)))
        });
        packed.into_iter().collect()
    }

    fn pack_share<'a>(&self, records: impl Iterator<Item = &'a [u8]>) -> Result<Group, String> {
        let idle = self.idle.lock().expect("no panics under this lock").pop();
        let mut compressor = match idle {
            Some(compressor) => compressor,
            None => Compressor::new(self.level, &self.dictionary)?,
        };
        let mut packed = Group::default();
        for record in records {
            if !record.is_empty() {
                compressor.compress(record, &mut packed.bytes)?;
            }
            packed.ends.push(packed.bytes.len());
        }
        self.idle.lock().expect("no panics under this lock").push(compressor);
        Ok(packed)
    }
}
