//! Records that are decoded together.

/// Records one behind the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// Where each of them ends.
    pub ends: Vec<usize>,
}

impl Group {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns where record `k`, which must exist, begins and ends.
    pub fn range(&self, k: usize) -> std::ops::Range<usize> {
        k.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[k]
    }

    /// Returns record `k`, which must exist.
    pub fn record(&self, k: usize) -> &[u8] {
        &self.bytes[self.range(k)]
    }

    /// Returns a copy of some records, which must exist.
    pub fn slice(&self, records: std::ops::Range<usize>) -> Group {
        let start = records.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let ends: Vec<usize> = self.ends[records].iter().map(|end| end - start).collect();
        let end = start + ends.last().copied().unwrap_or(0);
        Group { bytes: self.bytes[start..end].to_vec(), ends }
    }

    /// Adds a record at the end.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// Removes all records and keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
