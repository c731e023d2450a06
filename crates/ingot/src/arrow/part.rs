//! Values in an array of Arrow, and where they are.

use super::kind::{Kind, Number};
use super::layout::Refusal;
use super::node::Node;
use super::take::Picks;

const NULL_ELEMENT: &str = "an element of the list is null, which no sequence can have";

/// An array, or an array inside of another, with the type that it was made or taken with.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The type of the array.
    pub kind: &'a Kind,
    /// The array.
    pub node: &'a Node,
}

/// Positions in an array.
#[derive(Clone, Debug)]
pub enum Places {
    /// A start, and how many from there on.
    Range(usize, usize),
    /// Each by itself.
    List(Vec<usize>),
}

impl Places {
    /// Returns how many there are.
    pub fn len(&self) -> usize {
        match self {
            Places::Range(_, len) => *len,
            Places::List(list) => list.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns each position.
    pub fn iter(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Places::Range(start, len) => Box::new(*start..*start + *len),
            Places::List(list) => Box::new(list.iter().copied()),
        }
    }

    fn map(&self, shift: usize) -> Places {
        match self {
            Places::Range(start, len) => Places::Range(start + shift, *len),
            Places::List(list) => Places::List(list.iter().map(|place| place + shift).collect()),
        }
    }
}

impl<'a> Part<'a> {
    fn child(self, number: usize) -> Part<'a> {
        Part { kind: &self.kind.children[number], node: &self.node.children[number] }
    }

    /// Returns values inside of structs, and their positions; none of what is null in a struct.
    pub fn descend(self, path: &[String]) -> Result<(Part<'a>, Places, Vec<bool>), Refusal> {
        let mut part = self;
        let mut places = Places::Range(0, self.node.len);
        let mut present = vec![true; self.node.len];
        for name in path {
            part.mark(&places, &mut present);
            let found = part.kind.children.iter().position(|one| one.name == *name);
            let (Some(number), "+s") = (found, part.kind.format.as_str()) else {
                return Err(format!("there is no column {name:?}").into());
            };
            places = places.map(part.node.offset);
            part = part.child(number);
            part.check(&places)?;
        }
        part.mark(&places, &mut present);
        if part.kind.dictionary.is_some() {
            (part, places) = part.decoded(&places, &mut present)?;
        }
        Ok((part, places, present))
    }

    /// Returns the values inside at a position.
    pub fn inside(self, number: usize, place: usize) -> Result<Part<'a>, Refusal> {
        let part = self.child(number);
        part.check(&Places::Range(place, 1))?;
        Ok(part)
    }

    /// Refuses positions past the end.
    fn check(self, places: &Places) -> Result<(), String> {
        let end = match places {
            Places::Range(start, len) => start + len,
            Places::List(list) => list.iter().max().map_or(0, |place| place + 1),
        };
        if end <= self.node.len {
            return Ok(());
        }
        Err(format!("an Arrow array has {} values, but {end} are used", self.node.len))
    }

    /// Returns whether there is a value at a position that is not null.
    pub fn is_valid(self, place: usize) -> bool {
        self.kind.format != "n" && place < self.node.len && self.node.is_valid(place)
    }

    fn mark(self, places: &Places, present: &mut [bool]) {
        if self.kind.format == "n" {
            present.fill(false);
        } else if self.node.may_be_null() {
            for (there, place) in present.iter_mut().zip(places.iter()) {
                *there &= self.node.is_valid(place);
            }
        }
    }

    /// Returns the dictionary, and which of its values each position has.
    pub fn decoded(
        self,
        places: &Places,
        present: &mut [bool],
    ) -> Result<(Part<'a>, Places), Refusal> {
        let (Some(kind), Some(node)) = (&self.kind.dictionary, &self.node.dictionary) else {
            return Err("a dictionary is missing".to_owned().into());
        };
        let inner = Part { kind, node };
        let plain = Kind { dictionary: None, ..self.kind.clone() };
        let number = plain.number().ok_or_else(|| "indices of a dictionary".to_owned())?;
        let indices = self.numbers(number, places)?;
        let width = number.width();
        let mut found = Vec::with_capacity(places.len());
        for (row, bytes) in indices.chunks_exact(width).enumerate() {
            if !present[row] {
                found.push(0);
                continue;
            }
            let index = integer(bytes, matches!(number, Number::Signed(_)));
            match usize::try_from(index) {
                Ok(index) if index < node.len => found.push(index),
                _ => {
                    let message = format!("index {index} of a dictionary of {}", node.len);
                    return Err(Refusal(message, row));
                }
            }
        }
        for (there, &place) in present.iter_mut().zip(&found) {
            *there = *there && node.is_valid(place);
        }
        Ok((inner, Places::List(found)))
    }

    /// Returns numbers; booleans are bytes.
    pub fn numbers(self, number: Number, places: &Places) -> Result<Vec<u8>, String> {
        let offset = self.node.offset;
        if number == Number::Bool {
            let bits = self.node.buffer(1, (offset + self.node.len).div_ceil(8))?;
            let bit = |place: usize| bits[(offset + place) / 8] >> ((offset + place) % 8) & 1;
            return Ok(places.iter().map(bit).collect());
        }
        let width = number.width();
        let all = self.node.buffer(1, (offset + self.node.len) * width)?;
        let all = all.get(offset * width..).unwrap_or_default();
        Ok(match places {
            Places::Range(start, len) => all[start * width..(start + len) * width].to_vec(),
            Places::List(list) => {
                list.iter().flat_map(|at| &all[at * width..(at + 1) * width]).copied().collect()
            }
        })
    }

    /// Returns where lists, texts or bytes begin and end, with positions of a range as offsets.
    pub(super) fn spans(
        self,
        places: &Places,
        is_large: bool,
    ) -> Result<Vec<(usize, usize)>, String> {
        if self.node.len == 0 {
            return Ok(Vec::new());
        }
        let width = if is_large { 8 } else { 4 };
        let offset = self.node.offset;
        let ends = self.node.buffer(1, (offset + self.node.len + 1) * width)?;
        let end = |place: usize| {
            let at = (offset + place) * width;
            integer(&ends[at..at + width], true)
        };
        places
            .iter()
            .map(|place| match (usize::try_from(end(place)), usize::try_from(end(place + 1))) {
                (Ok(start), Ok(stop)) if start <= stop => Ok((start, stop)),
                _ => Err(format!("offsets of value {place} go down")),
            })
            .collect()
    }

    /// Returns where the elements of lists are, for each list.
    pub fn elements(self, places: &Places) -> Result<Vec<(usize, usize)>, String> {
        let spans = if let Some(size) = self.kind.list_size() {
            let at = |place: usize| (self.node.offset + place).saturating_mul(size);
            places.iter().map(|place| (at(place), at(place + 1))).collect()
        } else if self.kind.is_list() || self.kind.format == "+m" {
            self.spans(places, self.kind.format == "+L")?
        } else {
            return Err(format!("values of type {:?} are not lists", self.kind.format));
        };
        let end = spans.iter().map(|one| one.1).max().unwrap_or(0);
        self.child(0).check(&Places::Range(0, end))?;
        Ok(spans)
    }

    /// Returns the elements of lists, which must not be null, and how many each list has.
    pub(super) fn opened(
        self,
        places: &Places,
        picks: Option<&Picks>,
    ) -> Result<(Part<'a>, Places, Vec<usize>), Refusal> {
        let spans = self.elements(places)?;
        let mut counts: Vec<usize> = spans.iter().map(|(start, stop)| stop - start).collect();
        let is_one_piece = spans.windows(2).all(|one| one[0].1 == one[1].0);
        let inner = match picks {
            Some(picks) => {
                let mut list = Vec::new();
                for (k, (&(start, stop), &(first, last, step))) in
                    spans.iter().zip(picks).enumerate()
                {
                    let before = list.len();
                    let last = last.min(stop - start);
                    list.extend((first.min(last)..last).step_by(step.max(1)).map(|at| start + at));
                    counts[k] = list.len() - before;
                }
                Places::List(list)
            }
            None if is_one_piece => {
                let start = spans.first().map_or(0, |one| one.0);
                Places::Range(start, spans.last().map_or(start, |one| one.1) - start)
            }
            None => Places::List(spans.iter().flat_map(|&(start, stop)| start..stop).collect()),
        };
        let mut part = self.child(0);
        let mut present = vec![true; inner.len()];
        part.mark(&inner, &mut present);
        let mut found = inner;
        if part.kind.dictionary.is_some() {
            (part, found) = part.decoded(&found, &mut present)?;
        }
        if let Some(element) = present.iter().position(|&there| !there) {
            return Err(Refusal(NULL_ELEMENT.to_owned(), row_of(&counts, element)));
        }
        Ok((part, found, counts))
    }

    /// Returns about how many bytes the values take.
    pub fn num_bytes(self) -> usize {
        self.num_bytes_in(0, self.node.len)
    }

    fn num_bytes_in(self, start: usize, len: usize) -> usize {
        let (kind, node) = (self.kind, self.node);
        let inside =
            |number: usize, start: usize, len: usize| self.child(number).num_bytes_in(start, len);
        if let Some(number) = kind.number() {
            return number.width() * len;
        }
        let spans = || {
            let ends = Places::Range(start, len);
            let spans = if kind.format.starts_with('+') {
                self.elements(&ends)
            } else {
                self.spans(&ends, matches!(kind.format.as_str(), "U" | "Z"))
            };
            spans.ok().and_then(|all| Some((all.first()?.0, all.last()?.1))).unwrap_or((0, 0))
        };
        match kind.format.as_str() {
            "+s" => (0..kind.children.len()).map(|one| inside(one, node.offset + start, len)).sum(),
            "u" | "z" | "U" | "Z" => spans().1.saturating_sub(spans().0),
            format if format.starts_with('+') && !kind.children.is_empty() => {
                let (first, last) = spans();
                inside(0, first, last.saturating_sub(first))
            }
            _ => kind.byte_width().unwrap_or(16).saturating_mul(len),
        }
    }
}

/// Returns which list an element is in.
pub(super) fn row_of(counts: &[usize], element: usize) -> usize {
    let mut end = 0;
    counts
        .iter()
        .position(|count| {
            end += count;
            element < end
        })
        .unwrap_or(0)
}

/// Reads a whole number.
pub fn integer(bytes: &[u8], is_signed: bool) -> i64 {
    let is_negative = is_signed && bytes.last().is_some_and(|&last| last > 127);
    let mut wide = [if is_negative { 255 } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

/// Returns where values of these sizes begin, and where the last one ends.
pub(super) fn ends_of(sizes: impl Iterator<Item = usize>) -> Vec<i64> {
    let mut end = 0;
    let ends = sizes.map(|size| {
        end += size as i64;
        end
    });
    [0].into_iter().chain(ends.collect::<Vec<_>>()).collect()
}
