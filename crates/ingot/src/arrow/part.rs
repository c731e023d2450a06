//! Values in an array of Arrow, and where they are.

use super::kind::{Kind, Number};
use super::layout::{Refusal, append, collected, reserve};
use super::node::Node;
use super::take::Picks;

/// How many rows are looked at together for nulls.
const ROWS: usize = 1 << 16;

const NULL_ELEMENT: &str = "an element of the list is null, which no sequence can have";

/// An array, or an array inside of another, with the type that it was made or taken with.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The type of the array.
    pub kind: &'a Kind,
    /// The array.
    pub node: &'a Node,
}

/// Which rows have a value; none if all.
pub type Present = Option<Vec<bool>>;

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
}

impl<'a> Part<'a> {
    fn child(self, number: usize) -> Part<'a> {
        Part { kind: &self.kind.children[number], node: &self.node.children[number] }
    }

    /// Returns the structs that lead to values, and these, each with the position of the first.
    fn walk(self, path: &[String]) -> Result<Vec<(Part<'a>, usize)>, Refusal> {
        let (mut part, mut start) = (self, 0);
        let mut found = vec![(part, start)];
        for name in path {
            let number = part.kind.children.iter().position(|one| one.name == *name);
            let (Some(number), "+s") = (number, part.kind.format.as_str()) else {
                return Err(format!("there is no column {name:?}").into());
            };
            start += part.node.offset;
            part = part.child(number);
            part.check(start + self.node.len)?;
            found.push((part, start));
        }
        Ok(found)
    }

    /// Returns values inside of structs, and their positions; none of what is null in a struct.
    pub fn descend(self, path: &[String]) -> Result<(Part<'a>, Places, Present), Refusal> {
        let (mut part, mut places, mut present) = (self, Places::Range(0, self.node.len), None);
        for (one, start) in self.walk(path)? {
            (part, places) = (one, Places::Range(start, self.node.len));
            part.mark(&places, &mut present)?;
        }
        if part.kind.dictionary.is_some() {
            return part.decoded(&places, present);
        }
        Ok((part, places, present))
    }

    /// Returns whether there are nulls among the values at a path, and whether there are others.
    pub fn nulls_and_values(self, path: &[String]) -> Result<(bool, bool), Refusal> {
        let found = self.walk(path)?;
        let (len, is_any) = (self.node.len, self.node.len > 0);
        if found.iter().any(|(one, _)| one.kind.format == "n") {
            return Ok((is_any, false));
        }
        if !found.iter().any(|(one, _)| one.node.may_be_null() || one.kind.dictionary.is_some()) {
            return Ok((false, is_any));
        }
        let (mut has_nulls, mut has_values) = (false, false);
        for start in (0..len).step_by(ROWS) {
            let node = self.node.slice(start, ROWS.min(len - start));
            let (_, _, present) = Part { kind: self.kind, node: &node }.descend(path)?;
            has_nulls |= present.as_ref().is_some_and(|all| all.contains(&false));
            has_values |= present.is_none_or(|all| all.contains(&true));
            if has_nulls && has_values {
                break;
            }
        }
        Ok((has_nulls, has_values))
    }

    /// Returns the values inside at a position.
    pub fn inside(self, number: usize, place: usize) -> Result<Part<'a>, Refusal> {
        let part = self.child(number);
        part.check(place.saturating_add(1))?;
        Ok(part)
    }

    /// Refuses positions past the end.
    fn check(self, end: usize) -> Result<(), String> {
        if end <= self.node.len {
            return Ok(());
        }
        Err(format!("an Arrow array has {} values, but {end} are used", self.node.len))
    }

    /// Returns whether there is a value at a position that is not null.
    pub fn is_valid(self, place: usize) -> bool {
        self.kind.format != "n" && place < self.node.len && self.node.is_valid(place)
    }

    fn mark(self, places: &Places, present: &mut Present) -> Result<(), Refusal> {
        if self.kind.format != "n" && !self.node.may_be_null() {
            return Ok(());
        }
        let mut all = match present.take() {
            Some(all) => all,
            None => collected(places.len(), std::iter::repeat(true))?,
        };
        if self.kind.format == "n" {
            all.fill(false);
        } else {
            for (there, place) in all.iter_mut().zip(places.iter()) {
                *there &= self.node.is_valid(place);
            }
        }
        *present = Some(all);
        Ok(())
    }

    /// Returns the dictionary, which of its values each position has, and which are present.
    pub fn decoded(
        self,
        places: &Places,
        mut present: Present,
    ) -> Result<(Part<'a>, Places, Present), Refusal> {
        let (Some(kind), Some(node)) = (&self.kind.dictionary, &self.node.dictionary) else {
            return Err("a dictionary is missing".to_owned().into());
        };
        let inner = Part { kind, node };
        let plain = Kind { dictionary: None, ..self.kind.clone() };
        let number = plain.number().ok_or_else(|| "indices of a dictionary".to_owned())?;
        let indices = self.numbers(number, places)?;
        let width = number.width();
        let mut found = Vec::new();
        reserve(&mut found, places.len())?;
        for (row, bytes) in indices.chunks_exact(width).enumerate() {
            if present.as_ref().is_some_and(|all| !all[row]) {
                found.push(0);
                continue;
            }
            let index = integer(bytes, matches!(number, Number::Signed(_)));
            match usize::try_from(index) {
                Ok(index) if index < node.len => found.push(index),
                _ => {
                    let message = format!("index {index} of a dictionary of {}", node.len);
                    return Err(Refusal::at(message, row));
                }
            }
        }
        let found = Places::List(found);
        inner.mark(&found, &mut present)?;
        Ok((inner, found, present))
    }

    /// Returns numbers; booleans are bytes.
    pub fn numbers(self, number: Number, places: &Places) -> Result<Vec<u8>, Refusal> {
        let offset = self.node.offset;
        if number == Number::Bool {
            let bits = self.node.buffer(1, (offset + self.node.len).div_ceil(8))?;
            let bit = |place: usize| bits[(offset + place) / 8] >> ((offset + place) % 8) & 1;
            return collected(places.len(), places.iter().map(bit));
        }
        let width = number.width();
        let all = self.node.buffer(1, (offset + self.node.len) * width)?;
        let all = all.get(offset * width..).unwrap_or_default();
        let mut found = Vec::new();
        match places {
            Places::Range(start, len) => {
                append(&mut found, &all[start * width..(start + len) * width])?;
            }
            Places::List(list) => {
                reserve(&mut found, list.len().saturating_mul(width))?;
                list.iter().for_each(|at| found.extend(&all[at * width..(at + 1) * width]));
            }
        }
        Ok(found)
    }

    /// Returns where lists, texts or bytes begin and end, with positions of a range as offsets.
    pub(super) fn spans(self, places: &Places) -> Result<Vec<(usize, usize)>, Refusal> {
        let mut spans = Vec::new();
        if self.node.len == 0 {
            return Ok(spans);
        }
        reserve(&mut spans, places.len())?;
        let width = self.kind.memory_width();
        let offset = self.node.offset;
        let ends = self.node.buffer(1, (offset + self.node.len + 1) * width)?;
        let end = |place: usize| {
            let at = (offset + place) * width;
            usize::try_from(integer(&ends[at..at + width], true))
        };
        for (row, place) in places.iter().enumerate() {
            match (end(place), end(place + 1)) {
                (Ok(start), Ok(stop)) if start <= stop => spans.push((start, stop)),
                _ => return Err(Refusal::at("the offsets go down", row)),
            }
        }
        Ok(spans)
    }

    /// Returns where the elements of lists of one length begin and end.
    fn fixed_span(self, size: usize, start: usize, len: usize) -> (usize, usize) {
        let first = self.node.offset + start;
        (first.saturating_mul(size), (first + len).saturating_mul(size))
    }

    /// Returns where the elements of lists are, for each list.
    pub fn elements(self, places: &Places) -> Result<Vec<(usize, usize)>, Refusal> {
        let spans = if let Some(size) = self.kind.list_size() {
            let span = |place: usize| self.fixed_span(size, place, 1);
            collected(places.len(), places.iter().map(span))?
        } else if self.kind.is_list() || self.kind.format == "+m" {
            self.spans(places)?
        } else {
            return Err(format!("values of type {:?} are not lists", self.kind.format).into());
        };
        let end = spans.iter().map(|one| one.1).max().unwrap_or(0);
        self.child(0).check(end)?;
        Ok(spans)
    }

    /// Returns the elements of lists, which must not be null, and how many each list has.
    pub(super) fn opened(
        self,
        places: &Places,
        picks: Option<&Picks>,
    ) -> Result<(Part<'a>, Places, Vec<usize>), Refusal> {
        let spans = self.elements(places)?;
        let mut counts = collected(spans.len(), spans.iter().map(|(start, stop)| stop - start))?;
        let is_one_piece = spans.windows(2).all(|one| one[0].1 == one[1].0);
        let inner = match picks {
            Some(picks) => {
                let mut list = Vec::new();
                for (k, (&(start, stop), &(first, last, step))) in
                    spans.iter().zip(picks).enumerate()
                {
                    let before = list.len();
                    let last = last.min(stop - start);
                    reserve(&mut list, last.saturating_sub(first).div_ceil(step.max(1)))?;
                    list.extend((first.min(last)..last).step_by(step.max(1)).map(|at| start + at));
                    counts[k] = list.len() - before;
                }
                Places::List(list)
            }
            None if is_one_piece => {
                let start = spans.first().map_or(0, |one| one.0);
                Places::Range(start, spans.last().map_or(start, |one| one.1) - start)
            }
            None => {
                let total = counts.iter().fold(0, |sum: usize, &count| sum.saturating_add(count));
                Places::List(collected(total, spans.iter().flat_map(|&(start, stop)| start..stop))?)
            }
        };
        let (mut part, mut found, mut present) = (self.child(0), inner, None);
        part.mark(&found, &mut present)?;
        if part.kind.dictionary.is_some() {
            (part, found, present) = part.decoded(&found, present)?;
        }
        if let Some(element) = present.and_then(|all| all.iter().position(|&there| !there)) {
            return Err(Refusal::at(NULL_ELEMENT, row_of(&counts, element)));
        }
        Ok((part, found, counts))
    }

    /// Returns about how many bytes the values take.
    pub fn num_bytes(self) -> Result<usize, String> {
        self.num_bytes_in(0, self.node.len)
    }

    fn num_bytes_in(self, start: usize, len: usize) -> Result<usize, String> {
        let (kind, node) = (self.kind, self.node);
        self.check(start.saturating_add(len))?;
        if len == 0 {
            return Ok(0);
        }
        let inside = |span: (usize, usize)| self.child(0).num_bytes_in(span.0, span.1 - span.0);
        match kind.format.as_str() {
            "+s" => (0..kind.children.len()).try_fold(0, |sum: usize, one| {
                let bytes = self.child(one).num_bytes_in(node.offset + start, len)?;
                Ok(sum.saturating_add(bytes))
            }),
            "u" | "z" | "U" | "Z" => {
                node.span(kind.memory_width(), start, len).map(|(first, last)| last - first)
            }
            "+l" | "+L" | "+m" => inside(node.span(kind.memory_width(), start, len)?),
            "b" => Ok(len),
            _ => match (kind.list_size(), kind.memory_width()) {
                (Some(size), _) => inside(self.fixed_span(size, start, len)),
                (None, width) if kind.number().is_some() || kind.byte_width().is_some() => {
                    Ok(width.saturating_mul(len))
                }
                _ => Ok(len.saturating_mul(16)),
            },
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
pub(super) fn ends_of(sizes: impl ExactSizeIterator<Item = usize>) -> Result<Vec<i64>, Refusal> {
    let mut end = 0;
    let count = sizes.len().saturating_add(1);
    let ends = sizes.map(|size| {
        end += size as i64;
        end
    });
    collected(count, [0].into_iter().chain(ends))
}
