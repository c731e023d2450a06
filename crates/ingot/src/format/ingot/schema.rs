//! Which cells and columns a row has.

use serde::{Deserialize, Serialize};

use crate::format::{Violation, bail};

/// What a field contributes to each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// One cell.
    Cell,
    /// Any number of cells.
    Sequence,
    /// A value of fixed width in the index page.
    Column,
}

/// One field of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Unique in its schema.
    pub name: String,
    /// What the field contributes to a row.
    pub kind: FieldKind,
    /// Bytes of a column's value; absent for the other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// How a value becomes bytes; the container passes it on unread.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
}

impl Field {
    /// Returns the name of the field that this one says the presence of, if it is named and
    /// stored as the column of an optional field is.
    pub fn optional(&self) -> Option<&str> {
        let is_flag = self.kind == FieldKind::Column && self.width == Some(1);
        self.name.strip_suffix('?').filter(|_| is_flag)
    }
}

/// The fields of a file and where each stands in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    fields: Vec<Field>,
    /// Fields of kind cell.
    pub(super) num_scalars: usize,
    /// For each field, how many fields of kind cell come before it.
    pub(super) scalars_before: Vec<usize>,
    /// For each field, how many fields of kind sequence come before it.
    pub(super) sequences_before: Vec<usize>,
}

impl Schema {
    /// Most fields a file can have.
    pub const FIELDS_MAX: usize = 4096;
    /// Widest column.
    pub const WIDTH_MAX: u32 = 1 << 16;

    /// Checks the fields and returns their schema.
    pub fn new(fields: Vec<Field>) -> Result<Self, Violation> {
        if fields.is_empty() || fields.len() > Self::FIELDS_MAX {
            bail!("schema has {} fields, 1 to {} are allowed", fields.len(), Self::FIELDS_MAX);
        }
        let mut names = std::collections::HashSet::new();
        for field in &fields {
            if !names.insert(&field.name) {
                bail!("field {:?} appears twice", field.name);
            }
            let fits = match field.kind {
                FieldKind::Column => {
                    field.width.is_some_and(|width| (1..=Self::WIDTH_MAX).contains(&width))
                }
                FieldKind::Cell | FieldKind::Sequence => field.width.is_none(),
            };
            if !fits {
                bail!(
                    "field {:?} of kind {:?} has width {:?}",
                    field.name,
                    field.kind,
                    field.width
                );
            }
        }
        let before = |kind: FieldKind| -> Vec<usize> {
            (0..fields.len())
                .map(|k| fields[..k].iter().filter(|field| field.kind == kind).count())
                .collect()
        };
        let (scalars_before, sequences_before) =
            (before(FieldKind::Cell), before(FieldKind::Sequence));
        let num_scalars = fields.iter().filter(|field| field.kind == FieldKind::Cell).count();
        Ok(Schema { fields, num_scalars, scalars_before, sequences_before })
    }

    /// Returns the schema of a plain record file: one cell a row.
    pub fn records() -> Self {
        let record = Field {
            name: "record".to_owned(),
            kind: FieldKind::Cell,
            width: None,
            type_name: None,
        };
        Schema::new(vec![record]).expect("one field of kind cell is legal")
    }

    /// Whether a row is one cell and nothing else.
    pub fn is_records(&self) -> bool {
        self.fields.len() == 1 && self.num_scalars == 1
    }

    /// Whether rows are more than records: they have several fields, or fields with types.
    pub fn is_typed(&self) -> bool {
        !self.is_records() || self.fields.iter().any(|field| field.type_name.is_some())
    }

    /// Returns the fields in the order in which they stand in a row.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the fields of one kind with their positions.
    pub fn of_kind(&self, kind: FieldKind) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().enumerate().filter(move |(_, field)| field.kind == kind)
    }

    /// Bytes that the columns of one row take.
    pub fn column_width(&self) -> usize {
        self.of_kind(FieldKind::Column).map(|(_, field)| field.width.unwrap_or(0) as usize).sum()
    }

    /// Number of fields of kind sequence.
    pub fn num_sequences(&self) -> usize {
        self.of_kind(FieldKind::Sequence).count()
    }
}
