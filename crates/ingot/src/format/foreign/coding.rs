//! How a value comes out of bytes that another format has stored.

use super::number::Number;
use super::{csv, example, json, litdata, mds, npy, tar};
use crate::format::{Violation, bail};

/// How a value comes out of its stored bytes. An index has two bytes for it: what to do, and
/// the type of the numbers that it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coding {
    /// What to do.
    pub recipe: Recipe,
    /// The type of the numbers that come out, where they do.
    pub number: Option<Number>,
}

/// What to do with stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Recipe {
    /// Nothing: they are the value.
    Raw = 0,
    /// They are a `tf.train.Feature`: its numbers.
    Feature = 1,
    /// They are a `tf.train.FeatureList`: the numbers of all its steps.
    FeatureList = 2,
    /// They are the inside of a JSON string with escapes: the text.
    JsonText = 3,
    /// They are a JSON array of numbers.
    JsonNumbers = 4,
    /// They are the inside of a quoted CSV field with doubled quotes: the text.
    CsvText = 5,
    /// They are an `ndarray` of MDS without a fixed shape: an array.
    MdsArray = 6,
    /// They are a `numpy` of LitData: an array.
    LitNumpy = 7,
    /// They are a `tensor` of LitData: an array.
    LitTensor = 8,
    /// They are an `.npy` file: an array.
    Npy = 9,
    /// They are a tar header: the key, which the name begins with.
    TarKey = 10,
    /// They are the pixels of a Pillow image behind its size and mode: an array.
    Pixels = 11,
}

const RECIPES: [Recipe; 12] = [
    Recipe::Raw,
    Recipe::Feature,
    Recipe::FeatureList,
    Recipe::JsonText,
    Recipe::JsonNumbers,
    Recipe::CsvText,
    Recipe::MdsArray,
    Recipe::LitNumpy,
    Recipe::LitTensor,
    Recipe::Npy,
    Recipe::TarKey,
    Recipe::Pixels,
];

impl Coding {
    /// The value is the stored bytes.
    pub const RAW: Coding = Coding { recipe: Recipe::Raw, number: None };

    /// Returns a coding that gives no numbers of a chosen type.
    pub const fn plain(recipe: Recipe) -> Coding {
        Coding { recipe, number: None }
    }

    /// Returns a coding that gives numbers of a type.
    pub const fn numbers(recipe: Recipe, number: Option<Number>) -> Coding {
        Coding { recipe, number }
    }

    /// The two bytes of an index.
    pub fn code(self) -> [u8; 2] {
        [self.recipe as u8, self.number.map_or(0, Number::code)]
    }

    /// Returns the coding with these two bytes in an index.
    pub fn of_code([recipe, number]: [u8; 2]) -> Option<Coding> {
        let recipe = *RECIPES.get(usize::from(recipe))?;
        let number = if number == 0 { None } else { Some(Number::of_code(number)?) };
        Some(Coding { recipe, number })
    }

    /// Returns the value.
    pub fn value(self, stored: &[u8]) -> Result<Vec<u8>, Violation> {
        let number =
            || self.number.ok_or_else(|| Violation::new("the type of the numbers is missing"));
        match self.recipe {
            Recipe::Raw => Ok(stored.to_vec()),
            Recipe::Feature => example::feature_numbers(stored, number()?),
            Recipe::FeatureList => example::list_numbers(stored, number()?),
            Recipe::JsonText => json::text(stored),
            Recipe::JsonNumbers => json::numbers(stored, number()?),
            Recipe::CsvText => Ok(csv::text(stored)),
            Recipe::MdsArray => mds::array(stored, self.number),
            Recipe::LitNumpy => litdata::numpy(stored),
            Recipe::LitTensor => litdata::tensor(stored),
            Recipe::Npy => npy::array(stored),
            Recipe::TarKey => tar::key_in(stored),
            Recipe::Pixels => mds::pixels(stored),
        }
    }

    /// Fills `value`, whose length an index tells.
    pub fn decode(self, stored: &[u8], value: &mut [u8]) -> Result<(), Violation> {
        let found = self.value(stored)?;
        if found.len() != value.len() {
            let (found, expected) = (found.len(), value.len());
            let why = format!("the value has {found} bytes, but its index says {expected}");
            return Err(Violation::new(why));
        }
        value.copy_from_slice(&found);
        Ok(())
    }
}

/// Appends the head of an array of format.md, "Data sets".
pub(super) fn put_array_head(kind: &str, shape: &[u64], out: &mut Vec<u8>) {
    out.push(kind.len() as u8);
    out.extend_from_slice(kind.as_bytes());
    out.push(shape.len() as u8);
    shape.iter().for_each(|length| out.extend_from_slice(&length.to_le_bytes()));
}

/// Returns an array of format.md, if the elements are as many as its shape says.
pub(super) fn array_of(kind: &str, shape: &[u64], elements: &[u8]) -> Result<Vec<u8>, Violation> {
    if shape.len() > DIMENSIONS_MAX {
        bail!("an array has {} dimensions", shape.len());
    }
    let mut cell = Vec::with_capacity(2 + kind.len() + 8 * shape.len() + elements.len());
    put_array_head(kind, shape, &mut cell);
    cell.extend_from_slice(elements);
    crate::format::array::Array::decode(&cell)?;
    Ok(cell)
}

/// As many as numpy allows.
const DIMENSIONS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for (k, recipe) in RECIPES.into_iter().enumerate() {
            assert_eq!(recipe as usize, k);
            let coding = Coding::numbers(recipe, Some(Number::Float(4)));
            assert_eq!(Coding::of_code(coding.code()), Some(coding));
        }
        assert_eq!(Coding::of_code([12, 0]), None);
        assert_eq!(Coding::of_code([0, 3]), None);
    }
}
