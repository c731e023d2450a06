//! What is known of fields after a look at some rows.

use std::collections::BTreeMap;

use crate::format::foreign::kind::{field, flags};
use crate::format::ingot::Field;

/// What was seen of fields in rows.
#[derive(Debug)]
pub struct Seen<T> {
    rows: u64,
    fields: BTreeMap<String, Counted<T>>,
    order: Vec<String>,
}

/// What is known of a field, in how many rows it has a value, and which was the last of them.
#[derive(Debug, Default)]
struct Counted<T> {
    rows: u64,
    last: u64,
    known: T,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Seen { rows: 0, fields: BTreeMap::new(), order: Vec::new() }
    }
}

impl<T: Default> Seen<T> {
    /// Begins a row.
    pub fn begin(&mut self) {
        self.rows += 1;
    }

    /// Number of rows.
    pub fn num_rows(&self) -> u64 {
        self.rows
    }

    /// Whether no field was seen.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns what is known of a field that this row has. A field that a row has twice counts
    /// once.
    pub fn note(&mut self, name: &str) -> &mut T {
        let row = self.rows;
        let found = self.entry(name);
        if found.last != row {
            (found.last, found.rows) = (row, found.rows + 1);
        }
        &mut found.known
    }

    /// As [`Seen::note`], of a field that this row has without a value.
    pub fn note_missing(&mut self, name: &str) -> &mut T {
        &mut self.entry(name).known
    }

    /// Counts rows more that have a value: as many as `more` gives for what is known of a field.
    pub fn count_more(&mut self, more: impl Fn(&T) -> u64) {
        self.fields.values_mut().for_each(|found| found.rows += more(&found.known));
    }

    fn entry(&mut self, name: &str) -> &mut Counted<T> {
        if !self.fields.contains_key(name) {
            self.order.push(name.to_owned());
        }
        self.fields.entry(name.to_owned()).or_default()
    }

    /// Returns the fields in the order in which they were seen, with the type that `type_of`
    /// gives them; those that not every row has are optional.
    pub fn fields<E>(
        &self,
        mut type_of: impl FnMut(&str, &T) -> Result<String, E>,
    ) -> Result<Vec<Field>, E> {
        let mut found = Vec::with_capacity(self.fields.len());
        for name in &self.order {
            let Counted { rows, known, .. } = &self.fields[name];
            found.push(field(name, &type_of(name, known)?, *rows < self.rows));
        }
        found.extend(flags(&found));
        Ok(found)
    }

    /// Returns how many rows have a value for a field, and what is known of it.
    pub fn get(&self, name: &str) -> Option<(u64, &T)> {
        self.fields.get(name).map(|found| (found.rows, &found.known))
    }

    /// Returns the names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str)
    }

    /// Sorts the fields by their names.
    pub fn sort(&mut self) {
        self.order.sort();
    }
}
