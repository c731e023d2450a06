//! Arrays of Arrow as stored values.

use std::collections::BTreeSet;

use super::kind::{Kind, Number};
use super::layout::{Cell, Layout, Refusal, Repeat, append, collected, num_elements, reserve};
use super::part::{Part, Places, ends_of, row_of};
use super::text::{check_text, texts};

const NULL: &str = "the value is null, which the type of the field does not allow";

/// Stored values.
#[derive(Debug, Default)]
pub struct Taken {
    /// The bytes of all values, one after another.
    pub data: Vec<u8>,
    /// Where each value begins and the last ends; none if all are numbers.
    pub offsets: Option<Vec<i64>>,
    /// How many values each row has, if these are cells.
    pub counts: Option<Vec<u64>>,
    /// Which rows have a value; none if all.
    pub present: Option<Vec<u8>>,
}

/// Which elements of each list are wanted: from a start to a stop by a step.
pub type Picks = Vec<(usize, usize, usize)>;

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
    let (part, places, present) = part.descend(path).map_err(Refusal::somewhere)?;
    let rows = places.len();
    let present = present.filter(|all| all.contains(&false));
    let mut found = match &present {
        None => taken(part, &places, layout, picks.as_ref(), check).map_err(Refusal::somewhere)?,
        Some(present) => {
            if !is_optional {
                let row = present.iter().position(|&there| !there).unwrap_or(0);
                return Err(Refusal::at(NULL, row));
            }
            some_taken(part, &places, present, layout, picks, check)?
        }
    };
    if is_optional {
        found.present = Some(match present {
            Some(present) => collected(rows, present.iter().map(|&there| u8::from(there)))?,
            None => collected(rows, std::iter::repeat(1))?,
        });
    }
    Ok(found)
}

/// Returns values, and the stored form of a missing one where there is none.
fn some_taken(
    part: Part<'_>,
    places: &Places,
    present: &[bool],
    layout: &Layout,
    mut picks: Option<Picks>,
    check: bool,
) -> Result<Taken, Refusal> {
    let each = places.iter().zip(present).filter(|(_, there)| **there);
    let only = Places::List(collected(places.len(), each.map(|(place, _)| place))?);
    if let Some(picks) = &mut picks {
        let mut there = present.iter();
        picks.retain(|_| there.next().copied().unwrap_or(false));
    }
    let row = |place: usize| {
        let mut rows = present.iter().enumerate().filter(|(_, there)| **there);
        rows.nth(place).map_or(0, |(row, _)| row)
    };
    let found = taken(part, &only, layout, picks.as_ref(), check);
    let mut found = found.map_err(|why| why.somewhere().moved(row))?;
    spread(&mut found, present, layout)?;
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
    if places.is_empty() {
        let is_many = layout.repeat == Repeat::Many;
        let counts = is_many.then(Vec::new);
        return Ok(Taken { offsets: Some(vec![0]), counts, ..Taken::default() });
    }
    let is_run = layout.repeat == Repeat::Run;
    let (inner, elements, counts) = part.opened(places, picks.filter(|_| !is_run))?;
    let found = cells(inner, &elements, &layout.cell, check);
    let (data, offsets) = found.map_err(|why| why.moved(|place| row_of(&counts, place)))?;
    if !is_run {
        let counts = collected(counts.len(), counts.iter().map(|&count| count as u64))?;
        return Ok(Taken { data, offsets, counts: Some(counts), present: None });
    }
    let Cell::Numbers(number, _) = &layout.cell else { unreachable!("runs of numbers") };
    let offsets = ends_of(counts.iter().map(|count| count * number.width()))?;
    Ok(Taken { data, offsets: Some(offsets), ..Taken::default() })
}

/// Puts the stored form of a missing value between the values that are present.
fn spread(taken: &mut Taken, present: &[bool], layout: &Layout) -> Result<(), Refusal> {
    if let Some(counts) = &mut taken.counts {
        let mut each = std::mem::take(counts).into_iter();
        let count = |&there: &bool| if there { each.next().unwrap_or(0) } else { 0 };
        *counts = collected(present.len(), present.iter().map(count))?;
    } else if let Some(offsets) = &mut taken.offsets {
        let mut each = std::mem::take(offsets).into_iter();
        let mut end = each.next().unwrap_or(0);
        reserve(offsets, present.len() + 1)?;
        offsets.push(end);
        for &there in present {
            if there {
                end = each.next().unwrap_or(end);
            }
            offsets.push(end);
        }
    } else if let Cell::Numbers(number, _) = &layout.cell {
        let width = number.width();
        let mut wide = collected(width.saturating_mul(present.len()), std::iter::repeat(0))?;
        let mut each = taken.data.chunks_exact(width);
        for (room, _) in wide.chunks_exact_mut(width).zip(present).filter(|(_, there)| **there) {
            room.copy_from_slice(each.next().unwrap_or_default());
        }
        taken.data = wide;
    }
    Ok(())
}

type Cells = (Vec<u8>, Option<Vec<i64>>);

fn cells(part: Part<'_>, places: &Places, cell: &Cell, check: bool) -> Result<Cells, Refusal> {
    match cell {
        _ if places.is_empty() => {
            let is_number = matches!(cell, Cell::Numbers(_, shape) if shape.is_empty());
            Ok((Vec::new(), (!is_number).then(|| vec![0])))
        }
        Cell::Numbers(number, shape) if shape.is_empty() => {
            check_number(part.kind, *number)?;
            Ok((part.numbers(*number, places)?, None))
        }
        Cell::Numbers(number, shape) => {
            let data = block(part, places, *number, shape)?;
            let size = data.len() / places.len();
            Ok((data, Some(ends_of((0..places.len()).map(|_| size))?)))
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
    let other = || format!("expected lists of shape {shape:?}, but they have other lengths");
    let each = num_elements(shape).ok_or_else(other)?;
    let (mut part, mut places, mut per_row, mut depth) = (part, places.clone(), 1, 0);
    while part.kind.number().is_none() {
        let is_fixed = part.kind.list_size().is_some();
        let row = |place: usize| place / per_row.max(1);
        let (inner, found, counts) = part.opened(&places, None).map_err(|why| why.moved(row))?;
        let expected = if is_fixed { None } else { shape.get(depth).copied() };
        let is_off = |&count: &usize| !is_fixed && Some(count) != expected;
        if let Some(list) = counts.iter().position(is_off) {
            return Err(Refusal::at(other(), row(list)));
        }
        per_row = per_row.saturating_mul(counts.first().copied().unwrap_or(1));
        (part, places, depth) = (inner, found, depth + 1);
    }
    check_number(part.kind, number)?;
    if per_row != each {
        return Err(other().into());
    }
    part.numbers(number, &places)
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
        let (inner, found, counts) = part.opened(&places, None).map_err(|why| why.moved(top))?;
        levels.push(counts);
        (part, places) = (inner, found);
    }
    let number = part.kind.number().ok_or_else(|| "numbers in lists".to_owned())?;
    let elements = part.numbers(number, &places)?;
    let rows = levels.first().ok_or_else(|| "expected lists".to_owned())?;
    let (mut at, mut data, mut offsets) = (0, Vec::new(), Vec::new());
    let mut next = vec![0; levels.len()];
    let name = number.dtype();
    reserve(&mut offsets, rows.len() + 1)?;
    offsets.push(0);
    for (row, &length) in rows.iter().enumerate() {
        let mut shape = vec![length];
        for depth in 1..levels.len() {
            let count: usize = shape.iter().product();
            let lengths = &levels[depth][next[depth]..next[depth] + count];
            next[depth] += count;
            if lengths.windows(2).any(|one| one[0] != one[1]) {
                let message = "the lists in an array have several lengths".to_owned();
                return Err(Refusal::at(message, row));
            }
            shape.push(lengths.first().copied().unwrap_or(0));
        }
        let size = shape.iter().product::<usize>() * number.width();
        reserve(&mut data, 2 + name.len() + 8 * shape.len())?;
        data.push(name.len() as u8);
        data.extend(name.as_bytes());
        data.push(shape.len() as u8);
        data.extend(shape.iter().flat_map(|&length| (length as u64).to_le_bytes()));
        append(&mut data, &elements[at..at + size])?;
        at += size;
        offsets.push(data.len() as i64);
    }
    Ok((data, Some(offsets)))
}

/// Returns how values of bytes at a path begin: at most `size` bytes of each.
pub fn heads(part: Part<'_>, path: &[String], size: usize) -> Result<BTreeSet<Vec<u8>>, Refusal> {
    let (part, places, present) = part.descend(path)?;
    let mut found = BTreeSet::new();
    let is_there = |row: usize| present.as_ref().is_none_or(|all| all[row]);
    for (_, place) in places.iter().enumerate().filter(|&(row, _)| is_there(row)) {
        let (mut data, _) = texts(part, &Places::Range(place, 1))?;
        data.truncate(size);
        found.insert(data);
    }
    Ok(found)
}
