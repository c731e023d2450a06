//! Rows on their way to the file, as they were appended.

use crate::error::{Error, Result};
use crate::format::ingot::{FieldKind, PAGE_CELLS, Schema};

/// The value of one field of a row.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// For a field of kind cell.
    Cell(&'a [u8]),
    /// For a field of kind sequence: its elements.
    Sequence(&'a [&'a [u8]]),
    /// For a field of kind column: exactly as many bytes as the column is wide.
    Column(&'a [u8]),
}

impl Value<'_> {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Value::Cell(bytes) | Value::Column(bytes) => bytes.len(),
            Value::Sequence(elements) => elements.iter().map(|element| element.len()).sum(),
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What many rows have of a field: its values, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    /// The bytes of all values.
    pub bytes: &'a [u8],
    /// Where each value ends in them; the first begins at 0.
    pub ends: &'a [usize],
    /// Of a sequence, how many of the values each row has.
    pub counts: Option<&'a [u64]>,
}

impl<'a> Packed<'a> {
    /// Returns value `k`, if there is one.
    pub(super) fn value(&self, k: usize) -> Option<&'a [u8]> {
        let start = if k == 0 { 0 } else { *self.ends.get(k - 1)? };
        self.bytes.get(start..*self.ends.get(k)?)
    }
}

/// A run of rows, cell after cell.
#[derive(Debug, Default)]
pub struct Pending {
    pub bytes: Vec<u8>,
    /// End of each cell in `bytes`.
    pub ends: Vec<usize>,
    /// For each sequence the number of elements of each row.
    pub counts: Vec<Vec<u32>>,
    /// For each column its values.
    pub columns: Vec<Vec<u8>>,
    pub rows: u32,
}

impl Pending {
    pub fn new(schema: &Schema) -> Self {
        Pending {
            counts: vec![Vec::new(); schema.num_sequences()],
            columns: vec![Vec::new(); schema.of_kind(FieldKind::Column).count()],
            ..Pending::default()
        }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.counts.iter_mut().for_each(Vec::clear);
        self.columns.iter_mut().for_each(Vec::clear);
        self.rows = 0;
    }

    /// Whether the batch should go to the file before more is added. Rows of columns alone
    /// have no cells; as many of them as cells are a page.
    pub fn is_full(&self, bytes: usize) -> bool {
        let cells = self.ends.len().max(self.rows as usize);
        self.bytes.len() >= bytes || cells >= PAGE_CELLS as usize
    }

    /// Whether a record of this many bytes would fill it.
    pub fn is_full_with(&self, record: usize, bytes: usize) -> bool {
        self.bytes.len() + record >= bytes || self.ends.len() + 1 >= PAGE_CELLS as usize
    }

    /// Returns cell `k`.
    pub fn cell(&self, k: usize) -> &[u8] {
        let start = k.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[k]]
    }

    /// Returns the field of each cell.
    pub fn fields(&self, schema: &Schema) -> Vec<u16> {
        if schema.is_records() {
            return vec![0; self.ends.len()];
        }
        let mut fields = Vec::with_capacity(self.ends.len());
        for row in 0..self.rows as usize {
            let mut sequence = 0;
            for (k, field) in schema.fields().iter().enumerate() {
                let cells = match field.kind {
                    FieldKind::Cell => 1,
                    FieldKind::Column => 0,
                    FieldKind::Sequence => {
                        sequence += 1;
                        self.counts[sequence - 1][row] as usize
                    }
                };
                fields.resize(fields.len() + cells, k as u16);
            }
        }
        fields
    }

    /// Adds a row of one cell.
    pub fn push_record(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
        self.rows += 1;
    }

    /// Adds a row; on an error nothing of it is added.
    pub fn push(&mut self, schema: &Schema, row: u64, values: &[Value<'_>]) -> Result<()> {
        check(schema, row, values)?;
        let (mut sequence, mut column) = (0, 0);
        for value in values {
            match value {
                Value::Cell(bytes) => self.push_cell(bytes),
                Value::Sequence(elements) => {
                    elements.iter().for_each(|element| self.push_cell(element));
                    self.counts[sequence].push(elements.len() as u32);
                    sequence += 1;
                }
                Value::Column(bytes) => {
                    self.columns[column].extend_from_slice(bytes);
                    column += 1;
                }
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn push_cell(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }
}

/// Most cells of one row, so that a page that holds it alone stays addressable.
const ROW_CELLS_MAX: usize = 100 << 20;

fn check(schema: &Schema, row: u64, values: &[Value<'_>]) -> Result<()> {
    if values.len() != schema.fields().len() {
        return Err(Error::Invalid(format!(
            "row {row} has {} values for {} fields",
            values.len(),
            schema.fields().len()
        )));
    }
    for (field, value) in schema.fields().iter().zip(values) {
        let fits = match (field.kind, value) {
            (FieldKind::Cell, Value::Cell(_)) => true,
            (FieldKind::Sequence, Value::Sequence(elements)) => elements.len() <= ROW_CELLS_MAX,
            (FieldKind::Column, Value::Column(bytes)) => {
                Some(bytes.len() as u64) == field.width.map(u64::from)
            }
            _ => false,
        };
        if !fits {
            return Err(Error::Invalid(format!(
                "row {row}: the value does not fit field {:?} of kind {:?}",
                field.name, field.kind
            )));
        }
    }
    Ok(())
}
