//! Where the values that vary in length are: an index of the heaps that were looked into.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::super::source::Source;
use super::file::read_ranges;
use crate::error::Result;
use crate::format::hdf5::{COLLECTION_HEAD, Objects, Reference, collection_len};

/// Bytes of a heap that are read together; most have no more.
const WINDOW: u64 = 64 << 10;

/// Memory for the index of all heaps of a file.
const MEMORY: usize = 128 << 20;

/// The heaps of a file that are known, by their addresses.
#[derive(Default)]
pub struct Heaps {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    heaps: HashMap<u64, Arc<Objects>>,
    memory: usize,
}

impl Heaps {
    /// Returns the heaps of references, which lie in a file of `size` bytes and have values;
    /// those that were not known are read in one go.
    pub fn find(
        &self,
        source: Source<'_>,
        size: u64,
        references: &[Reference],
    ) -> HashMap<u64, Result<Arc<Objects>>> {
        let mut found = HashMap::new();
        let mut missing = Vec::new();
        {
            let known = self.known.lock().expect("no panics under this lock");
            for &Reference { address, .. } in references {
                found.entry(address).or_insert_with(|| match known.heaps.get(&address) {
                    Some(objects) => Ok(Arc::clone(objects)),
                    None => {
                        missing.push(address);
                        Ok(Arc::default())
                    }
                });
            }
        }
        if !missing.is_empty() {
            found.extend(missing.iter().copied().zip(self.load(source, size, &missing)));
        }
        found
    }

    fn load(&self, source: Source<'_>, size: u64, addresses: &[u64]) -> Vec<Result<Arc<Objects>>> {
        let heads = addresses.iter().map(|&at| at..at + COLLECTION_HEAD).collect();
        let lens: Vec<Result<u64>> = read_ranges(source, heads)
            .into_iter()
            .zip(addresses)
            .map(|(head, &at)| {
                collection_len(&head?, size - at).map_err(|why| source.corrupt(at, why))
            })
            .collect();
        let windows = lens.iter().zip(addresses).map(|(len, &at)| {
            let len = len.as_ref().map_or(COLLECTION_HEAD, |&len| len.min(WINDOW));
            at + COLLECTION_HEAD..at + len
        });
        let windows = read_ranges(source, windows.collect());
        let scanned: Vec<Result<Arc<Objects>>> = lens
            .into_iter()
            .zip(windows)
            .zip(addresses)
            .map(|((len, window), &at)| scan(source, at, len?, window?).map(Arc::new))
            .collect();
        self.keep(addresses, &scanned);
        scanned
    }

    fn keep(&self, addresses: &[u64], scanned: &[Result<Arc<Objects>>]) {
        let mut known = self.known.lock().expect("no panics under this lock");
        for (&address, objects) in addresses.iter().zip(scanned) {
            let Ok(objects) = objects else { continue };
            if known.memory > MEMORY {
                *known = Known::default();
            }
            known.memory += objects.memory() + size_of::<(u64, Arc<Objects>)>();
            known.heaps.insert(address, Arc::clone(objects));
        }
    }
}

fn scan(source: Source<'_>, address: u64, len: u64, window: Vec<u8>) -> Result<Objects> {
    let mut objects = Objects::default();
    let mut next = objects.scan(&window, COLLECTION_HEAD, len);
    while let Some(at) = next {
        let window = source.read(address + at, WINDOW.min(len - at))?;
        next = objects.scan(&window, at, len);
        if next == Some(at) {
            return Err(source.corrupt(address + at, "a heap has no end"));
        }
    }
    Ok(objects)
}
