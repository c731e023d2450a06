//! The chain of trailers, from the last one in the file back to the header.

use std::ops::Range;

use memchr::memmem;

use super::super::source::{Source, Watch};
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::ingot::{
    Block, BlockKind, Dictionary, DictionaryEntry, Directory, Header, PAGE_MAGIC, Page, PageEntry,
    TRAILER_LEN, TRAILER_MAGIC, Trailer,
};

/// How much of the file is searched at a time.
const STEP: u64 = 1 << 20;

/// A search for a page ends when the candidates that it checked have this many times the length
/// of what it searches: hostile data could hold one every few bytes.
pub const CANDIDATES: usize = 4;

/// One link: a commit and the bytes it covers.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Where the cells of the segment begin: right behind the trailer before.
    pub start: u64,
    pub trailer: Trailer,
    pub crc: u32,
}

/// What the chain says is in the file, in file order.
pub struct Chain {
    pub segments: Vec<Segment>,
    pub contents: Directory,
    /// Damage that was passed over: offset and reason.
    pub damage: Vec<(u64, String)>,
}

/// Returns the last valid trailer that ends at or before `end`.
pub fn last_trailer(
    source: Source<'_>,
    header: &Header,
    end: u64,
    watch: &mut Watch<'_>,
) -> Result<Option<(Trailer, u32)>> {
    let floor = header.bytes.len() as u64;
    // A trailer may lie across the end of a part.
    let more = TRAILER_LEN as u64;
    for part in source.storage.written(floor..end.max(floor)).into_iter().rev() {
        let part = part.start.saturating_sub(more).max(floor)..(part.end + more).min(end);
        let found = last_trailer_in(source, header, part, watch)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn last_trailer_in(
    source: Source<'_>,
    header: &Header,
    part: Range<u64>,
    watch: &mut Watch<'_>,
) -> Result<Option<(Trailer, u32)>> {
    let finder = memmem::FinderRev::new(&TRAILER_MAGIC);
    let Range { start: floor, end: mut high } = part;
    while high >= floor + TRAILER_LEN as u64 {
        watch()?;
        let low = high.saturating_sub(STEP).max(floor);
        let bytes = source.read(low, high - low)?;
        for at in finder.rfind_iter(&bytes) {
            let found = bytes
                .get(at..at + TRAILER_LEN)
                .and_then(|candidate| Trailer::decode(candidate, low + at as u64, &header.id).ok());
            if found.is_some() {
                return Ok(found);
            }
        }
        if low == floor {
            break;
        }
        high = low + TRAILER_LEN as u64 - 1;
    }
    Ok(None)
}

/// Follows the chain back from `last`. It ends at the header, or at a closing
/// trailer with a readable directory unless `whole` asks for every segment.
///
/// Where the chain is broken among segments that no flush has secured, a power failure
/// lost a commit and kept a later one: the file then ends before the break.
pub fn walk(
    source: Source<'_>,
    header: &Header,
    last: (Trailer, u32),
    whole: bool,
    watch: &mut Watch<'_>,
) -> Result<Chain> {
    let floor = header.bytes.len() as u64;
    let mut chain =
        Chain { segments: Vec::new(), contents: Directory::default(), damage: Vec::new() };
    let mut next = Some(last);
    while let Some((trailer, crc)) = next {
        watch()?;
        if trailer.block.kind == BlockKind::Directory {
            match source.directory(&trailer, header.seed()) {
                Ok(directory) if !whole => {
                    chain.contents = directory;
                    chain.push(trailer.block.offset, trailer, crc);
                    break;
                }
                Ok(_) => {}
                Err(error) => chain.damage.push((trailer.block.offset, error.to_string())),
            }
        }
        next = match before(source, header, &trailer, &mut chain.damage, watch)? {
            Link::Sound(previous) => previous,
            Link::Broken(earlier, why) => {
                if trailer.previous.0 < last.0.durable {
                    return Err(why);
                }
                chain.segments.clear();
                next = earlier;
                continue;
            }
        };
        let start = next.map_or(floor, |(previous, _)| previous.offset + TRAILER_LEN as u64);
        chain.push(start, trailer, crc);
    }
    chain.segments.reverse();
    chain.list(source, header)?;
    Ok(chain)
}

/// What stands before a trailer.
enum Link {
    /// The trailer before it; `None` for the first.
    Sound(Option<(Trailer, u32)>),
    /// Unknown; the last valid trailer before the break, and what is wrong.
    Broken(Option<(Trailer, u32)>, Error),
}

/// Returns the trailer before `trailer`, made up from its block if it is damaged itself.
fn before(
    source: Source<'_>,
    header: &Header,
    trailer: &Trailer,
    damage: &mut Vec<(u64, String)>,
    watch: &mut Watch<'_>,
) -> Result<Link> {
    let (offset, crc) = trailer.previous;
    if offset == 0 {
        return Ok(Link::Sound(None));
    }
    let why = match source.trailer(offset, header) {
        Ok((previous, found)) if found == crc && previous.rows <= trailer.rows => {
            return Ok(Link::Sound(Some((previous, crc))));
        }
        Ok(_) => source.corrupt(offset, "trailer is not the one committed"),
        Err(error) => error,
    };
    damage.push((offset, why.to_string()));
    let earlier = last_trailer(source, header, offset, watch)?;
    Ok(match restore(source, header, offset, earlier) {
        Some(restored) => Link::Sound(Some(restored)),
        None => Link::Broken(earlier, why),
    })
}

/// Finds the block that a damaged trailer at `offset` committed: one that ends right there.
fn restore(
    source: Source<'_>,
    header: &Header,
    offset: u64,
    earlier: Option<(Trailer, u32)>,
) -> Option<(Trailer, u32)> {
    let start = earlier
        .map_or(header.bytes.len() as u64, |(trailer, _)| trailer.offset + TRAILER_LEN as u64);
    let (rows, cells) = earlier.map_or((0, 0), |(trailer, _)| (trailer.rows, trailer.cells));
    let made = |kind, block_offset, crc, rows, cells| Trailer {
        offset,
        block: Block { kind, offset: block_offset, len: offset - block_offset, crc },
        previous: earlier.map_or((0, 0), |(trailer, crc)| (trailer.offset, crc)),
        rows,
        cells,
        durable: earlier.map_or(0, |(trailer, _)| trailer.durable),
    };
    let bytes = source.read(start, offset.checked_sub(start)?).ok()?;
    if bytes.is_empty() {
        return Some((made(BlockKind::Mark, offset, 0, rows, cells), 0));
    }
    let mut checked = 0;
    for at in memmem::rfind_iter(&bytes, &PAGE_MAGIC) {
        if Page::measure(&bytes[at..], &header.schema) != Some(bytes.len() - at) {
            continue;
        }
        checked += bytes.len() - at;
        if checked > CANDIDATES * bytes.len() {
            return None;
        }
        let (block, at) = (bytes[at..].to_vec(), start + at as u64);
        if let Ok((page, crc)) = Page::decode(block, at, &header.schema, header.seed())
            && (page.base(), page.first_row, page.first_cell) == (start, rows, cells)
        {
            let rows = rows + u64::from(page.rows);
            let cells = cells + u64::from(page.cells);
            return Some((made(BlockKind::Page, at, crc, rows, cells), 0));
        }
    }
    if let Ok((_, crc)) = Dictionary::decode(&bytes, start, header.seed()) {
        return Some((made(BlockKind::Dictionary, start, crc, rows, cells), 0));
    }
    let (_, crc) = Directory::decode(&bytes, start, header.seed()).ok()?;
    Some((made(BlockKind::Directory, start, crc, rows, cells), 0))
}

impl Chain {
    /// Rows that are committed.
    pub fn rows(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.trailer.rows)
    }

    fn push(&mut self, start: u64, trailer: Trailer, crc: u32) {
        self.segments.push(Segment { start, trailer, crc });
    }

    /// Adds the pages and dictionaries of the segments to the contents.
    fn list(&mut self, source: Source<'_>, header: &Header) -> Result<()> {
        let listed = |directory: &Directory| {
            directory.pages.iter().fold((0, 0), |(rows, cells), page| {
                (rows + u64::from(page.rows), cells + u64::from(page.cells))
            })
        };
        let (mut rows, mut cells) = listed(&self.contents);
        for segment in &self.segments {
            let (trailer, block) = (&segment.trailer, segment.trailer.block);
            let len = u32::try_from(block.len).unwrap_or(0);
            let (new_rows, new_cells) =
                added(trailer, rows, cells).map_err(|why| source.corrupt(trailer.offset, why))?;
            if block.kind == BlockKind::Page {
                self.contents.pages.push(PageEntry {
                    offset: block.offset,
                    len,
                    crc: block.crc,
                    rows: new_rows,
                    cells: new_cells,
                });
            } else if block.kind == BlockKind::Dictionary {
                let read = source.dictionary(block.offset, block.len, header.seed());
                let field = match read {
                    Ok((dictionary, _)) => dictionary.field,
                    Err(error) => {
                        self.damage.push((block.offset, error.to_string()));
                        0
                    }
                };
                self.contents.dictionaries.push(DictionaryEntry {
                    offset: block.offset,
                    len,
                    crc: block.crc,
                    field,
                });
            }
            (rows, cells) = (trailer.rows, trailer.cells);
        }
        Ok(())
    }
}

/// Returns the rows and cells that a trailer adds to those before it: none unless it
/// commits a page.
fn added(trailer: &Trailer, rows: u64, cells: u64) -> Result<(u32, u32), Violation> {
    let new = |now: u64, before: u64| now.checked_sub(before).and_then(|new| new.try_into().ok());
    let is_page = trailer.block.kind == BlockKind::Page;
    match (new(trailer.rows, rows), new(trailer.cells, cells)) {
        (Some(rows), Some(cells)) if is_page == (rows > 0) && (is_page || cells == 0) => {
            Ok((rows, cells))
        }
        _ => Err(Violation("trailer counts its rows or cells wrong".to_owned())),
    }
}
