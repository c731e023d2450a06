//! Arrays of Arrow as stored values.

use super::ffi::Node;
use super::kind::{Kind, Number};
use super::layout::{Cell, Layout, Refusal, Repeat};
use super::make::check_text;

const NULL: &str = "the value is null, which the type of the field does not allow";
const NULL_ELEMENT: &str = "an element of the list is null, which no sequence can have";

/// Stored values: the bytes, where each begins and the last ends unless they are numbers, how
/// many each row has, and which rows have one.
#[derive(Default)]
pub struct Taken {
    pub data: Vec<u8>,
    pub offsets: Option<Vec<i64>>,
    pub counts: Option<Vec<u64>>,
    pub present: Option<Vec<u8>>,
}

/// Which elements of each list are wanted: from a start to a stop by a step.
pub type Picks = Vec<(usize, usize, usize)>;

/// Some values of an array.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    pub kind: &'a Kind,
    pub node: &'a Node,
}

/// Positions in an array.
#[derive(Clone, Debug)]
pub enum Places {
    Range(usize, usize),
    List(Vec<usize>),
}

impl Places {
    pub fn len(&self) -> usize {
        match self {
            Places::Range(_, len) => *len,
            Places::List(list) => list.len(),
        }
    }

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
    pub fn spans(self, places: &Places, is_large: bool) -> Result<Vec<(usize, usize)>, String> {
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
    fn opened(
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
}

/// Returns which list an element is in.
fn row_of(counts: &[usize], element: usize) -> usize {
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

/// Returns the values at a path as a data set stores them.
///
/// `is_optional` says whether nulls are missing values; otherwise they are refused.
pub fn take(
    part: Part<'_>,
    path: &[String],
    layout: &Layout,
    is_optional: bool,
    picks: Option<Picks>,
    check: bool,
) -> Result<Taken, Refusal> {
    let (part, places, present) = part.descend(path)?;
    let gap = present.iter().position(|&there| !there);
    if let (Some(row), false) = (gap, is_optional) {
        return Err(Refusal(NULL.to_owned(), row));
    }
    let only = |all: Places| match gap {
        None => all,
        Some(_) => {
            let each = all.iter().zip(&present).filter(|(_, there)| **there);
            Places::List(each.map(|(place, _)| place).collect())
        }
    };
    let row = |Refusal(message, place): Refusal| {
        let mut rows = present.iter().enumerate().filter(|(_, there)| **there);
        Refusal(message, rows.nth(place).map_or(0, |(row, _)| row))
    };
    let mut picks = picks;
    if let (Some(picks), Some(_)) = (&mut picks, gap) {
        let mut there = present.iter();
        picks.retain(|_| there.next().copied().unwrap_or(false));
    }
    let places = only(places);
    let mut found = taken(part, &places, layout, picks.as_ref(), check).map_err(row)?;
    if gap.is_some() {
        spread(&mut found, &present, layout);
    }
    found.present = is_optional.then(|| present.iter().map(|&there| u8::from(there)).collect());
    Ok(found)
}

fn taken(
    part: Part<'_>,
    places: &Places,
    layout: &Layout,
    picks: Option<&Picks>,
    check: bool,
) -> Result<Taken, Refusal> {
    if layout.repeat == Repeat::One {
        let (data, offsets) = cells(part, places, &layout.cell, check)?;
        return Ok(Taken { data, offsets, ..Taken::default() });
    }
    if places.len() == 0 {
        let is_many = layout.repeat == Repeat::Many;
        let counts = is_many.then(Vec::new);
        return Ok(Taken { offsets: Some(vec![0]), counts, ..Taken::default() });
    }
    let is_run = layout.repeat == Repeat::Run;
    let (inner, elements, counts) = part.opened(places, picks.filter(|_| !is_run))?;
    let found = cells(inner, &elements, &layout.cell, check);
    let (data, offsets) =
        found.map_err(|Refusal(message, place)| Refusal(message, row_of(&counts, place)))?;
    if !is_run {
        let counts = counts.into_iter().map(|count| count as u64).collect();
        return Ok(Taken { data, offsets, counts: Some(counts), present: None });
    }
    let Cell::Numbers(number, _) = &layout.cell else { unreachable!("runs of numbers") };
    let offsets = ends_of(counts.iter().map(|count| count * number.width()));
    Ok(Taken { data, offsets: Some(offsets), ..Taken::default() })
}

fn ends_of(sizes: impl Iterator<Item = usize>) -> Vec<i64> {
    let mut end = 0;
    let ends = sizes.map(|size| {
        end += size as i64;
        end
    });
    [0].into_iter().chain(ends.collect::<Vec<_>>()).collect()
}

/// Puts the stored form of a missing value between the values that are present.
fn spread(taken: &mut Taken, present: &[bool], layout: &Layout) {
    if let Some(counts) = &mut taken.counts {
        let mut each = std::mem::take(counts).into_iter();
        *counts =
            present.iter().map(|&there| if there { each.next().unwrap_or(0) } else { 0 }).collect();
    } else if let Some(offsets) = &mut taken.offsets {
        let mut each = std::mem::take(offsets).into_iter();
        let mut end = each.next().unwrap_or(0);
        offsets.push(end);
        for &there in present {
            if there {
                end = each.next().unwrap_or(end);
            }
            offsets.push(end);
        }
    } else if let Cell::Numbers(number, _) = &layout.cell {
        let width = number.width();
        let mut wide = vec![0; width * present.len()];
        let mut each = taken.data.chunks_exact(width);
        for (room, _) in wide.chunks_exact_mut(width).zip(present).filter(|(_, there)| **there) {
            room.copy_from_slice(each.next().unwrap_or_default());
        }
        taken.data = wide;
    }
}

type Cells = (Vec<u8>, Option<Vec<i64>>);

fn cells(part: Part<'_>, places: &Places, cell: &Cell, check: bool) -> Result<Cells, Refusal> {
    match cell {
        _ if places.len() == 0 => {
            let is_number = matches!(cell, Cell::Numbers(_, shape) if shape.is_empty());
            Ok((Vec::new(), (!is_number).then(|| vec![0])))
        }
        Cell::Numbers(number, shape) if shape.is_empty() => {
            check_number(part.kind, *number)?;
            Ok((part.numbers(*number, places)?, None))
        }
        Cell::Numbers(number, shape) => {
            let data = block(part, places, *number, shape)?;
            let size = number.width() * shape.iter().product::<usize>();
            Ok((data, Some(ends_of((0..places.len()).map(|_| size)))))
        }
        Cell::Array => arrays(part, places),
        Cell::Text | Cell::Bytes => {
            let (data, offsets) = texts(part, places)?;
            if check && *cell == Cell::Text {
                check_text(&data, &offsets)?;
            }
            Ok((data, Some(offsets)))
        }
    }
}

fn check_number(kind: &Kind, number: Number) -> Result<(), String> {
    if kind.number() == Some(number) {
        return Ok(());
    }
    Err(format!("expected {}, got a column of type {:?}", number.dtype(), kind.format))
}

/// Returns lists of lists as numbers of one shape.
fn block(
    part: Part<'_>,
    places: &Places,
    number: Number,
    shape: &[usize],
) -> Result<Vec<u8>, Refusal> {
    let each: usize = shape.iter().product();
    let (mut part, mut places, mut per_row, mut depth) = (part, places.clone(), 1, 0);
    while part.kind.number().is_none() {
        let is_fixed = part.kind.list_size().is_some();
        let (inner, found, counts) = part
            .opened(&places, None)
            .map_err(|Refusal(message, place)| Refusal(message, place / per_row.max(1)))?;
        let expected = if is_fixed { None } else { shape.get(depth).copied() };
        let is_off = |&count: &usize| !is_fixed && Some(count) != expected;
        if let Some(list) = counts.iter().position(is_off) {
            let message = format!("expected lists of shape {shape:?}, but they have other lengths");
            return Err(Refusal(message, list / per_row.max(1)));
        }
        per_row *= counts.first().copied().unwrap_or(1);
        (part, places, depth) = (inner, found, depth + 1);
    }
    check_number(part.kind, number)?;
    if per_row != each {
        return Err(
            format!("expected lists of shape {shape:?}, but they have other lengths").into()
        );
    }
    Ok(part.numbers(number, &places)?)
}

/// Returns lists of lists as arrays, each with its own shape.
fn arrays(part: Part<'_>, places: &Places) -> Result<Cells, Refusal> {
    let mut levels: Vec<Vec<usize>> = Vec::new();
    let (mut part, mut places) = (part, places.clone());
    while part.kind.number().is_none() {
        let top = |mut place: usize| {
            for counts in levels.iter().rev() {
                place = row_of(counts, place);
            }
            place
        };
        let (inner, found, counts) = part
            .opened(&places, None)
            .map_err(|Refusal(message, place)| Refusal(message, top(place)))?;
        levels.push(counts);
        (part, places) = (inner, found);
    }
    let number = part.kind.number().ok_or_else(|| "numbers in lists".to_owned())?;
    let elements = part.numbers(number, &places)?;
    let (mut at, mut data, mut offsets) = (0, Vec::new(), vec![0]);
    let mut next = vec![0; levels.len()];
    let name = number.dtype();
    for row in 0..levels[0].len() {
        let mut shape = vec![levels[0][row]];
        for depth in 1..levels.len() {
            let count: usize = shape.iter().product();
            let lengths = &levels[depth][next[depth]..next[depth] + count];
            next[depth] += count;
            if lengths.windows(2).any(|one| one[0] != one[1]) {
                let message = "the lists in an array have several lengths".to_owned();
                return Err(Refusal(message, row));
            }
            shape.push(lengths.first().copied().unwrap_or(0));
        }
        let size = shape.iter().product::<usize>() * number.width();
        data.push(name.len() as u8);
        data.extend(name.as_bytes());
        data.push(shape.len() as u8);
        data.extend(shape.iter().flat_map(|&length| (length as u64).to_le_bytes()));
        data.extend(&elements[at..at + size]);
        at += size;
        offsets.push(data.len() as i64);
    }
    Ok((data, Some(offsets)))
}

/// Returns text or bytes, one after another; decimals are text.
pub fn texts(part: Part<'_>, places: &Places) -> Result<(Vec<u8>, Vec<i64>), Refusal> {
    let node = part.node;
    match part.kind.format.as_str() {
        "u" | "z" | "U" | "Z" => {
            let spans = part.spans(places, matches!(part.kind.format.as_str(), "U" | "Z"))?;
            let end = spans.iter().map(|one| one.1).max().unwrap_or(0);
            let all = node.buffer(2, end)?;
            let offsets = ends_of(spans.iter().map(|(start, stop)| stop - start));
            let data = if spans.windows(2).all(|one| one[0].1 == one[1].0) {
                all[spans.first().map_or(0, |one| one.0)..end].to_vec()
            } else {
                spans.iter().flat_map(|&(start, stop)| &all[start..stop]).copied().collect()
            };
            Ok((data, offsets))
        }
        "vu" | "vz" => Ok(joined(places, |place, data| {
            data.extend_from_slice(view(node, place)?);
            Ok(())
        })?),
        _ if part.kind.decimal().is_some() => Ok(joined(places, |place, data| {
            data.extend(decimal(part, place)?.into_bytes());
            Ok(())
        })?),
        _ => match part.kind.byte_width() {
            Some(width) => {
                let len = (node.offset + node.len).checked_mul(width);
                let all =
                    node.buffer(1, len.ok_or_else(|| "its values are too large".to_owned())?)?;
                let at = |place: usize| (node.offset + place) * width;
                Ok(joined(places, |place, data| {
                    data.extend_from_slice(&all[at(place)..at(place) + width]);
                    Ok(())
                })?)
            }
            None => Err(format!("expected text or bytes, got type {:?}", part.kind.format).into()),
        },
    }
}

fn joined(
    places: &Places,
    mut add: impl FnMut(usize, &mut Vec<u8>) -> Result<(), String>,
) -> Result<(Vec<u8>, Vec<i64>), String> {
    let (mut data, mut offsets) = (Vec::new(), vec![0]);
    for place in places.iter() {
        add(place, &mut data)?;
        offsets.push(data.len() as i64);
    }
    Ok((data, offsets))
}

/// Returns a value of an array of views.
fn view(node: &Node, place: usize) -> Result<&[u8], String> {
    const VIEW: usize = 16;
    let at = (node.offset + place) * VIEW;
    let view = &node.buffer(1, at + VIEW)?[at..];
    let word = |at: usize| integer(&view[at..at + 4], true);
    let wrong = || format!("value {place} is not a valid view");
    let len = usize::try_from(word(0)).map_err(|_| wrong())?;
    if len <= VIEW - 4 {
        return Ok(&view[4..4 + len]);
    }
    let (number, start) = (usize::try_from(word(8)), usize::try_from(word(12)));
    let (Ok(number), Ok(start)) = (number, start) else { return Err(wrong()) };
    let count = node.num_buffers().saturating_sub(3); // Validity, views, and the sizes at the end.
    let sizes = node.buffer(node.num_buffers().saturating_sub(1), 8 * count)?;
    if number >= count || (start + len) as i64 > integer(&sizes[8 * number..8 * number + 8], true) {
        return Err(wrong());
    }
    Ok(&node.buffer(2 + number, start + len)?[start..])
}

/// Returns a decimal as text, as Arrow's own library writes it.
fn decimal(part: Part<'_>, place: usize) -> Result<String, String> {
    let (bits, scale) = part.kind.decimal().unwrap_or((128, 0));
    let width = bits / 8;
    let at = (part.node.offset + place) * width;
    let mut bytes = part.node.buffer(1, at + width)?[at..].to_vec();
    let is_negative = bytes.last().is_some_and(|&last| last > 127);
    if is_negative {
        let mut carry = true;
        for byte in &mut bytes {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    while bytes.iter().any(|&byte| byte != 0) {
        let mut rest = 0_u16;
        for byte in bytes.iter_mut().rev() {
            let whole = rest << 8 | u16::from(*byte);
            (*byte, rest) = ((whole / 10) as u8, whole % 10);
        }
        digits.push(b'0' + rest as u8);
    }
    if digits.is_empty() {
        digits.push(b'0');
    }
    digits.reverse();
    let digits = String::from_utf8(digits).expect("digits");
    let exponent = digits.len() as i64 - 1 - scale;
    let text = if scale < 0 || exponent < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{first}{point}{rest}E{exponent:+}")
    } else if scale == 0 {
        digits
    } else if digits.len() as i64 > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        format!("{whole}.{fraction}")
    } else {
        format!("0.{digits:0>width$}", width = scale as usize)
    };
    Ok(format!("{}{text}", if is_negative { "-" } else { "" }))
}
