//! Fields of CSV files: RFC 4180, with quoted fields that may hold line breaks.

use crate::format::{Violation, bail};

/// A field of a row: where it is in the row, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Whether it was quoted.
    pub is_quoted: bool,
    /// Whether quotes in it are doubled.
    pub is_escaped: bool,
}

/// Returns the text of a quoted field with doubled quotes.
pub fn text(inside: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(inside.len());
    let mut quoted = false;
    for &byte in inside {
        let is_second = byte == b'"' && quoted;
        if !is_second {
            out.push(byte);
        }
        quoted = byte == b'"' && !is_second;
    }
    out
}

/// Finds the end of the row at the front of `bytes`: where it ends, and where the next begins.
/// None if it may go on behind them; with `is_last` the end of the bytes is its end.
pub fn row_end(bytes: &[u8], is_last: bool) -> Result<Option<(usize, usize)>, Violation> {
    let mut inside = false;
    for (k, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => inside = !inside,
            b'\n' if !inside => {
                let end = if k > 0 && bytes[k - 1] == b'\r' { k - 1 } else { k };
                return Ok(Some((end, k + 1)));
            }
            _ => {}
        }
    }
    match (is_last, inside) {
        (true, true) => Err(Violation::new("a quoted field does not end")),
        (true, false) => Ok(Some((bytes.len(), bytes.len()))),
        _ => Ok(None),
    }
}

/// Returns the fields of a row.
pub fn fields(row: &[u8], separator: u8) -> Result<Vec<Span>, Violation> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let (span, next) = if row.get(at) == Some(&b'"') {
            quoted(row, at + 1)?
        } else {
            let len = row[at..].iter().position(|&byte| byte == separator);
            let end = len.map_or(row.len(), |len| at + len);
            (Span { start: at, end, is_quoted: false, is_escaped: false }, end)
        };
        found.push(span);
        match row.get(next) {
            None => return Ok(found),
            Some(&byte) if byte == separator => at = next + 1,
            Some(_) => bail!("text follows a quoted field"),
        }
    }
}

fn quoted(row: &[u8], start: usize) -> Result<(Span, usize), Violation> {
    let (mut end, mut is_escaped) = (start, false);
    loop {
        match (row.get(end), row.get(end + 1)) {
            (None, _) => bail!("a quoted field does not end"),
            (Some(b'"'), Some(b'"')) => {
                is_escaped = true;
                end += 2;
            }
            (Some(b'"'), _) => {
                return Ok((Span { start, end, is_quoted: true, is_escaped }, end + 1));
            }
            _ => end += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_separators_and_line_breaks() {
        let row = b"a,\"b,\"\"c\"\"\nd\",,\"\"\r\nnext";
        let (end, next) = row_end(row, false).unwrap().unwrap();
        assert_eq!(&row[next..], b"next");
        let spans = fields(&row[..end], b',').unwrap();
        let texts: Vec<Vec<u8>> =
            spans.iter().map(|span| text_of(&row[span.start..span.end], span)).collect();
        assert_eq!(texts, [&b"a"[..], b"b,\"c\"\nd", b"", b""]);
        assert!(spans[3].is_quoted && !spans[2].is_quoted);
    }

    fn text_of(bytes: &[u8], span: &Span) -> Vec<u8> {
        if span.is_escaped { text(bytes) } else { bytes.to_vec() }
    }

    #[test]
    fn unterminated_input_is_rejected() {
        assert!(row_end(b"\"a", true).is_err());
        assert_eq!(row_end(b"\"a\nb", false).unwrap(), None);
        assert!(fields(b"\"a\"b", b',').is_err());
    }
}
