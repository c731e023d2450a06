//! Stored values as arrays of Arrow.

use crate::format::array::Array;

use super::kind::{Kind, Number};
use super::layout::{Cell, Layout, Refusal, Repeat, num_elements, sizes};
use super::node::{Data, Node};
use super::text::{check_text, views};

const OTHERS: &str = "leave the field out with names=";

type Made = Result<Node, Refusal>;

/// The stored values of a field.
pub struct Stored {
    /// The bytes of all values, one after another.
    pub data: Data,
    /// Where each value begins, and where the last one ends.
    pub offsets: Vec<i64>,
    /// How many values each row has, if these are cells.
    pub counts: Option<Vec<u64>>,
    /// Which rows have a value; none if all.
    pub present: Option<Vec<bool>>,
}

/// What a column is made of.
pub enum Column {
    /// Stored values.
    Stored(Layout, Stored),
    /// The parts of a struct.
    Struct(Vec<Column>),
    /// Nulls alone.
    Missing,
    /// An array of the column's type.
    Array(Node),
}

impl Column {
    /// Makes the column that has a full name.
    fn made(self, kind: &Kind, rows: usize, name: &str) -> Result<Node, Refusal> {
        let made = match self {
            Column::Stored(layout, stored) => {
                column(kind, &layout, stored).map_err(|why| why.of_field(name))
            }
            Column::Struct(parts) => {
                let parts = kind.children.iter().zip(parts);
                let parts =
                    parts.map(|(kind, one)| one.made(kind, rows, &format!("{name}.{}", kind.name)));
                Ok(structure(rows, parts.collect::<Result<_, _>>()?))
            }
            Column::Missing => missing(kind, rows),
            Column::Array(node) => Ok(node),
        }?;
        if made.len == rows {
            return Ok(made);
        }
        Err(format!("field '{name}' has {} values for {rows} rows", made.len).into())
    }
}

/// Makes a struct of columns.
pub fn table(kind: &Kind, columns: Vec<Column>, rows: usize) -> Made {
    let parts = kind.children.iter().zip(columns);
    let parts = parts.map(|(kind, one)| one.made(kind, rows, &kind.name));
    Ok(Node::new(rows, vec![None], parts.collect::<Result<_, _>>()?))
}

/// Makes a column of a type that fits.
fn column(kind: &Kind, layout: &Layout, stored: Stored) -> Made {
    let Stored { data, offsets, counts, present } = stored;
    let ends_well = offsets.first() == Some(&0)
        && offsets.is_sorted()
        && *offsets.last().unwrap_or(&0) <= data.bytes().len() as i64;
    if !ends_well || !layout.fits(kind) {
        return Err(format!("stored values cannot be a column of type {:?}", kind.format).into());
    }
    let present = present.filter(|all| !all.iter().all(|&there| there));
    match layout.repeat {
        Repeat::One => cells(kind, &layout.cell, data, &offsets, present.as_deref()),
        Repeat::Run => {
            let Cell::Numbers(number, _) = layout.cell else { unreachable!("runs of numbers") };
            let width = number.width() as i64;
            if let Some(row) = offsets.windows(2).position(|one| (one[1] - one[0]) % width != 0) {
                return Err(Refusal::at(
                    format!("its size is not a multiple of {width} bytes"),
                    row,
                ));
            }
            let ends: Vec<i64> = offsets.iter().map(|end| end / width).collect();
            let count = *ends.last().unwrap_or(&0) as usize;
            let inner = numbers(number, data, count, None);
            lists(kind, &ends, present.as_deref(), inner)
        }
        Repeat::Many => {
            let mut end = 0;
            let each = counts.iter().flatten().map(|&count| {
                end += count as i64;
                end
            });
            let ends: Vec<i64> = [0].into_iter().chain(each).collect();
            if end != offsets.len() as i64 - 1 {
                return Err("the numbers of elements do not add up".to_owned().into());
            }
            let inner = cells(&kind.children[0], &layout.cell, data, &offsets, None);
            let row = |place: usize| ends.partition_point(|&end| end <= place as i64) - 1;
            let inner = inner.map_err(|why| why.moved(row))?;
            lists(kind, &ends, present.as_deref(), inner)
        }
    }
}

/// Makes a struct, which is null where all its parts are.
fn structure(len: usize, parts: Vec<Node>) -> Node {
    let is_there = |row: usize| parts.iter().any(|one| one.is_valid(row) && !is_empty(one));
    let present: Vec<bool> = if parts.iter().all(|one| one.may_be_null() || is_empty(one)) {
        (0..len).map(is_there).collect()
    } else {
        vec![true; len]
    };
    let validity = (!present.iter().all(|&there| there)).then(|| bits(&present));
    Node::new(len, vec![validity], parts)
}

/// Returns whether an array is one of nulls alone.
fn is_empty(node: &Node) -> bool {
    node.num_buffers() == 0
}

/// Makes an array that is null everywhere.
fn missing(kind: &Kind, len: usize) -> Made {
    let nothing = Stored {
        data: Data::Own(Vec::new()),
        offsets: vec![0; len + 1],
        counts: None,
        present: Some(vec![false; len]),
    };
    match kind.format.as_str() {
        "n" => Ok(Node::nulls(len)),
        "u" | "U" | "vu" => {
            column(kind, &Layout { cell: Cell::Text, repeat: Repeat::One }, nothing)
        }
        _ => column(kind, &Layout { cell: Cell::Bytes, repeat: Repeat::One }, nothing),
    }
}

fn cells(kind: &Kind, cell: &Cell, data: Data, offsets: &[i64], present: Option<&[bool]>) -> Made {
    let count = offsets.len() - 1;
    match cell {
        Cell::Numbers(number, shape) if shape.is_empty() => {
            check_sizes(offsets, number.width(), None)?;
            Ok(numbers(*number, data, count, present))
        }
        Cell::Numbers(number, shape) => fixed(kind, *number, shape, data, offsets, present),
        Cell::Array if kind.format == "n" => match arrays(data.bytes(), offsets, present).next() {
            Some((row, _)) => {
                let message = format!("there is an array, but none in the first rows; {OTHERS}");
                Err(Refusal::at(message, row))
            }
            None => Ok(Node::nulls(count)),
        },
        Cell::Array => ragged(kind, data.bytes(), offsets, present),
        Cell::Text | Cell::Bytes => text(kind, data, offsets, present, *cell == Cell::Text),
    }
}

fn check_sizes(offsets: &[i64], width: usize, present: Option<&[bool]>) -> Result<(), Refusal> {
    let is_off = |(row, one): (usize, &[i64])| {
        one[1] - one[0] != width as i64 && present.is_none_or(|present| present[row])
    };
    match offsets.windows(2).enumerate().position(is_off) {
        Some(row) => Err(Refusal::at(format!("it does not have {width} bytes"), row)),
        None => Ok(()),
    }
}

fn numbers(number: Number, data: Data, count: usize, present: Option<&[bool]>) -> Node {
    let values = match number {
        Number::Bool => {
            let truths: Vec<bool> = data.bytes()[..count].iter().map(|&byte| byte != 0).collect();
            bits(&truths)
        }
        _ => data.aligned(number.width()),
    };
    Node::new(count, vec![present.map(bits), Some(values)], Vec::new())
}

fn bits(truths: &[bool]) -> Data {
    let byte = |some: &[bool]| {
        some.iter().enumerate().fold(0, |byte, (k, &truth)| byte | (u8::from(truth) << k))
    };
    Data::Own(truths.chunks(8).map(byte).collect())
}

/// Returns offsets with as many bits as a type has.
fn offsets_of(ends: &[i64], is_large: bool) -> Result<Data, Refusal> {
    if is_large {
        return Ok(Data::Own(ends.iter().flat_map(|end| end.to_ne_bytes()).collect()));
    }
    if let Some(place) = ends.iter().position(|&end| i32::try_from(end).is_err()) {
        let message = "the values of one batch take more than 2 GB; request a type with offsets \
                       of 64 bits";
        return Err(Refusal::at(message.to_owned(), place.saturating_sub(1)));
    }
    Ok(Data::Own(ends.iter().flat_map(|&end| (end as i32).to_ne_bytes()).collect()))
}

fn lists(kind: &Kind, ends: &[i64], present: Option<&[bool]>, inner: Node) -> Made {
    let offsets = offsets_of(ends, kind.format == "+L")?;
    Ok(Node::new(ends.len() - 1, vec![present.map(bits), Some(offsets)], vec![inner]))
}

/// Returns values of one size, with zeros where none is present.
fn spread(data: Data, size: usize, offsets: &[i64], present: Option<&[bool]>) -> Data {
    let Some(present) = present else { return data };
    let mut wide = vec![0; size * present.len()];
    for (row, room) in wide.chunks_exact_mut(size.max(1)).enumerate() {
        if present[row] {
            let start = offsets[row] as usize;
            room.copy_from_slice(&data.bytes()[start..start + size]);
        }
    }
    Data::Own(wide)
}

fn fixed(
    kind: &Kind,
    number: Number,
    shape: &[usize],
    data: Data,
    offsets: &[i64],
    present: Option<&[bool]>,
) -> Made {
    let (sizes, _) = sizes(kind, shape).ok_or_else(|| "no list for a shape".to_owned())?;
    let count = offsets.len() - 1;
    let each = num_elements(shape).ok_or_else(|| "no list for a shape".to_owned())?;
    check_sizes(offsets, each * number.width(), present)?;
    let data = spread(data, each * number.width(), offsets, present);
    let mut levels = vec![kind];
    for _ in 1..sizes.len() {
        levels.push(&levels[levels.len() - 1].children[0]);
    }
    let mut made = numbers(number, data, count * each, None);
    for (depth, (&size, level)) in sizes.iter().zip(levels).enumerate().rev() {
        let len = count * sizes[..depth].iter().product::<usize>();
        let present = present.filter(|_| depth == 0);
        made = if level.is_list() {
            let ends: Vec<i64> = (0..=len).map(|k| (k * size) as i64).collect();
            lists(level, &ends, present, made)?
        } else {
            Node::new(len, vec![present.map(bits)], vec![made])
        };
    }
    Ok(made)
}

/// Returns the type and the number of dimensions that all arrays have; none without arrays.
pub fn common_array<'a>(
    data: &'a [u8],
    offsets: &[i64],
    present: Option<&[bool]>,
) -> Result<Option<(&'a str, usize)>, Refusal> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for (_, array) in arrays(data, offsets, present) {
        let array = array?;
        let one = (array.kind, array.shape.len());
        if !found.contains(&one) {
            found.push(one);
        }
    }
    if found.len() > 1 || found.iter().any(|&(_, dimensions)| dimensions == 0) {
        found.sort_unstable();
        let each: Vec<String> =
            found.iter().map(|(kind, dims)| format!("{dims} dimensions of {kind}")).collect();
        let each = each.join(", ");
        return Err(format!("the arrays differ in type: {each}; {OTHERS}").into());
    }
    Ok(found.pop())
}

fn arrays<'a: 'b, 'b>(
    data: &'a [u8],
    offsets: &'b [i64],
    present: Option<&'b [bool]>,
) -> impl Iterator<Item = (usize, Result<Array<'a>, Refusal>)> + 'b {
    let is_there = move |&(row, _): &(usize, &[i64])| present.is_none_or(|present| present[row]);
    offsets.windows(2).enumerate().filter(is_there).map(|(row, one)| {
        let cell = &data[one[0] as usize..one[1] as usize];
        (row, Array::decode(cell).map_err(|why| Refusal::at(why.to_string(), row)))
    })
}

/// Makes lists of lists of arrays, each with its own shape.
fn ragged(kind: &Kind, data: &[u8], offsets: &[i64], present: Option<&[bool]>) -> Made {
    let mut levels = Vec::new();
    let mut inner = kind;
    while inner.is_list() {
        levels.push(inner);
        inner = &inner.children[0];
    }
    let number = inner.number().ok_or_else(|| "no numbers in lists".to_owned())?;
    let mut ends: Vec<Vec<i64>> = vec![vec![0]; levels.len()];
    let mut elements = Vec::new();
    let mut next = 0;
    for (row, array) in arrays(data, offsets, present) {
        let array = array?;
        if array.shape.len() != levels.len() || Number::of_dtype(array.kind) != Some(number) {
            let (dims, found) = (array.shape.len(), array.kind);
            let message = format!(
                "the arrays differ in type: {dims} dimensions of {found}, but {} dimensions of \
                 {} in the first rows; {OTHERS}",
                levels.len(),
                number.dtype()
            );
            return Err(Refusal::at(message, row));
        }
        ends[0].resize(row + 1, next);
        let mut count = 1_u64;
        for (ends, &size) in ends.iter_mut().zip(&array.shape) {
            for _ in 0..count {
                let last = ends[ends.len() - 1];
                ends.push(last + size as i64);
            }
            count = count.saturating_mul(size);
            if count > elements.len() as u64 + array.elements.len() as u64 + (1 << 24) {
                return Err(Refusal::at(format!("an array of shape {:?}", array.shape), row));
            }
        }
        next = ends[0][ends[0].len() - 1];
        elements.extend_from_slice(array.elements);
    }
    ends[0].resize(offsets.len(), next);
    let count = elements.len() / number.width();
    let mut made = numbers(number, Data::Own(elements), count, None);
    for (depth, level) in levels.iter().enumerate().rev() {
        made = lists(level, &ends[depth], present.filter(|_| depth == 0), made)?;
    }
    Ok(made)
}

fn text(kind: &Kind, data: Data, offsets: &[i64], present: Option<&[bool]>, is_text: bool) -> Made {
    let count = offsets.len() - 1;
    let len = offsets[count] as usize;
    if is_text {
        check_text(&data.bytes()[..len], offsets)?;
    }
    let validity = present.map(bits);
    if let Some(width) = kind.byte_width() {
        check_sizes(offsets, width, present)?;
        let data = spread(data, width, offsets, present);
        return Ok(Node::new(count, vec![validity, Some(data)], Vec::new()));
    }
    if kind.format.starts_with('v') {
        offsets_of(&offsets[count..], false)?;
        let views = Data::Own(views(data.bytes(), offsets));
        let sizes = Data::Own((len as i64).to_ne_bytes().to_vec());
        return Ok(Node::new(
            count,
            vec![validity, Some(views), Some(data), Some(sizes)],
            Vec::new(),
        ));
    }
    let is_large = matches!(kind.format.as_str(), "U" | "Z");
    let offsets = offsets_of(offsets, is_large)?;
    Ok(Node::new(count, vec![validity, Some(offsets), Some(data)], Vec::new()))
}
