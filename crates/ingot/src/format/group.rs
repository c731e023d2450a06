//! Records that are decoded together.

/// Records one after the other.
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

    /// Returns some records, which must exist, without copying them.
    pub fn view(&self, records: std::ops::Range<usize>) -> View<'_> {
        let start = records.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let ends = &self.ends[records];
        View { bytes: &self.bytes[start..ends.last().copied().unwrap_or(start)], ends, start }
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

/// Some records of a group.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Their bytes.
    pub bytes: &'a [u8],
    /// Where each of them ends in the group.
    ends: &'a [usize],
    /// Where the first of them begins in the group.
    start: usize,
}

impl View<'_> {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns how long each record is.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        let starts = std::iter::once(&self.start).chain(self.ends);
        self.ends.iter().zip(starts).map(|(end, start)| end - start)
    }

    /// Returns a copy of the records.
    pub fn to_group(&self) -> Group {
        let ends = self.ends.iter().map(|end| end - self.start).collect();
        Group { bytes: self.bytes.to_vec(), ends }
    }
}

impl<'a> From<&'a Group> for View<'a> {
    fn from(group: &'a Group) -> Self {
        group.view(0..group.len())
    }
}
