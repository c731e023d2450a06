//! Text and bytes in arrays of Arrow.

use super::layout::{Refusal, append, reserve};
use super::node::Node;
use super::part::{Part, Places, ends_of, integer};

/// How many bytes the view of a value takes.
const VIEW: usize = 16;

/// How many bytes a value may have to be in its view.
const SHORT: usize = VIEW - 4;

/// Refuses values that are not UTF-8.
pub(super) fn check_text(data: &[u8], offsets: &[i64]) -> Result<(), Refusal> {
    let is_whole = std::str::from_utf8(data).is_ok_and(|text| {
        data.is_ascii() || offsets.iter().all(|&end| text.is_char_boundary(end as usize))
    });
    if is_whole {
        return Ok(());
    }
    let is_bad =
        |one: &[i64]| std::str::from_utf8(&data[one[0] as usize..one[1] as usize]).is_err();
    match offsets.windows(2).position(is_bad) {
        Some(row) => Err(Refusal::at("the text is not UTF-8", row)),
        None => Ok(()),
    }
}

/// Returns text or bytes, one after another; decimals are text.
pub fn texts(part: Part<'_>, places: &Places) -> Result<(Vec<u8>, Vec<i64>), Refusal> {
    let node = part.node;
    match part.kind.format.as_str() {
        "u" | "z" | "U" | "Z" => {
            let spans = part.spans(places)?;
            let end = spans.iter().map(|one| one.1).max().unwrap_or(0);
            let all = node.buffer(2, end)?;
            let mut data = Vec::new();
            if spans.windows(2).all(|one| one[0].1 == one[1].0) {
                append(&mut data, &all[spans.first().map_or(0, |one| one.0)..end])?;
            } else {
                let each = spans.iter().map(|(start, stop)| stop - start);
                reserve(&mut data, each.fold(0, usize::saturating_add))?;
                spans.iter().for_each(|&(start, stop)| data.extend(&all[start..stop]));
            }
            Ok((data, ends_of(spans.iter().map(|(start, stop)| stop - start))?))
        }
        "vu" | "vz" => joined(places, |place, data| append(data, view(node, place)?)),
        _ if part.kind.decimal().is_some() => {
            joined(places, |place, data| append(data, decimal(part, place)?.as_bytes()))
        }
        _ => match part.kind.byte_width() {
            Some(width) => {
                let len = (node.offset + node.len).checked_mul(width);
                let all =
                    node.buffer(1, len.ok_or_else(|| "its values are too large".to_owned())?)?;
                let at = |place: usize| (node.offset + place) * width;
                joined(places, |place, data| append(data, &all[at(place)..at(place) + width]))
            }
            None => Err(format!("expected text or bytes, got type {:?}", part.kind.format).into()),
        },
    }
}

fn joined(
    places: &Places,
    mut add: impl FnMut(usize, &mut Vec<u8>) -> Result<(), Refusal>,
) -> Result<(Vec<u8>, Vec<i64>), Refusal> {
    let (mut data, mut offsets) = (Vec::new(), Vec::new());
    reserve(&mut offsets, places.len().saturating_add(1))?;
    offsets.push(0);
    for (row, place) in places.iter().enumerate() {
        add(place, &mut data).map_err(|why| why.somewhere().moved(|_| row))?;
        offsets.push(data.len() as i64);
    }
    Ok((data, offsets))
}

/// Returns a value of an array of views.
fn view(node: &Node, place: usize) -> Result<&[u8], String> {
    let at = (node.offset + place) * VIEW;
    let view = &node.buffer(1, at + VIEW)?[at..];
    let word = |at: usize| integer(&view[at..at + 4], true);
    let wrong = || "the view is not valid".to_owned();
    let len = usize::try_from(word(0)).map_err(|_| wrong())?;
    if len <= SHORT {
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

/// Returns for each value its length, and itself if it is short, or its start and where it is.
pub(super) fn views(data: &[u8], offsets: &[i64]) -> Vec<u8> {
    let mut views = Vec::with_capacity(VIEW * (offsets.len() - 1));
    for one in offsets.windows(2) {
        let value = &data[one[0] as usize..one[1] as usize];
        views.extend((value.len() as u32).to_ne_bytes());
        if value.len() <= SHORT {
            views.extend(value);
            views.resize(views.len() + SHORT - value.len(), 0);
        } else {
            views.extend(&value[..4]);
            views.extend(0_u32.to_ne_bytes());
            views.extend((one[0] as u32).to_ne_bytes());
        }
    }
    views
}
