//! Finding what is committed in a file that was not closed, and closing it.

use std::sync::Arc;

use memchr::memmem;

use super::super::source::{Source, Watch};
use super::super::verification::Damage;
use super::chain::{self, Chain};
use super::front::{self, Front};
use super::reader::Reader;
use super::tail::{Beginning, Tail};
use super::writer::{self, Options, Writer};
use crate::error::{Error, Result};
use crate::format::checksum::FileId;
use crate::format::ingot::{
    BlockKind, HEADER_LEN, HEADER_MAX, Header, PAGE_MAGIC, Page, PageEntry, Schema, TRAILER_LEN,
    TRAILER_MAGIC, Trailer,
};
use crate::storage::{Append, ReadAt};

/// How far behind the last trailer a page is looked for: four times what its cells take,
/// but for a row that is longer alone.
const SALVAGE: u64 = 256 << 20;

/// What was found in a file, and what was done to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Rows in the file now.
    pub rows: u64,
    /// Whether the file was whole and nothing was done.
    pub was_whole: bool,
    /// Bytes behind the last commit that were cut off: rows that were never committed.
    pub cut_bytes: u64,
    /// Damage that was found on the way; these rows cannot be read. Not a full
    /// verification: rows that a flush had secured are not looked at.
    pub damaged: Vec<Damage>,
}

impl Recovery {
    fn of_nothing(cut_bytes: u64) -> Self {
        Recovery { rows: 0, was_whole: false, cut_bytes, damaged: Vec::new() }
    }
}

/// Cuts a file back to its last commit and closes it. Everything that was committed
/// stays. A file that is whole already is left alone.
///
/// `storage` reads what `target` writes to. `watch` may stop the search, which changes nothing.
pub fn recover(
    storage: &Arc<dyn ReadAt>,
    target: Box<dyn Append>,
    name: &str,
    options: Options,
    watch: &mut Watch<'_>,
) -> Result<Recovery> {
    let (mut tail, recovery) = settle(storage, target, name, options, watch)?;
    if !recovery.was_whole {
        tail.close()?;
    }
    Ok(recovery)
}

/// Appends to a file, closed or not; see [`recover`].
pub fn append(
    storage: &Arc<dyn ReadAt>,
    target: Box<dyn Append>,
    name: &str,
    options: Options,
    watch: &mut Watch<'_>,
) -> Result<(Writer, Recovery)> {
    let (tail, recovery) = settle(storage, target, name, options, watch)?;
    let (id, schema) = (tail.id(), tail.schema().clone());
    Ok((Writer::start(tail, name, id, schema, options)?, recovery))
}

/// Brings a file into a state in which rows can be added, and returns its end.
fn settle(
    storage: &Arc<dyn ReadAt>,
    mut target: Box<dyn Append>,
    name: &str,
    options: Options,
    watch: &mut Watch<'_>,
) -> Result<(Tail, Recovery)> {
    let source = Source { storage: &**storage, name };
    let size = source.size()?;
    let fail = |source| Error::storage(name, "repair", source);
    let Some((header, repaired)) = find_header(source, size)? else {
        target.truncate(0).map_err(fail)?;
        return Ok((begin(target, name, options)?, Recovery::of_nothing(size)));
    };
    let found = find_end(storage, name, &header, size, watch)?;
    if repaired {
        target.rewrite(0, &header.bytes).map_err(fail)?;
    }
    let was_whole = found.closed && !repaired;
    let position = found.beginning.position;
    let cut_bytes = size - position;
    if cut_bytes > 0 {
        target.truncate(position).map_err(fail)?;
        if options.sync {
            // Were the cut lost and what follows not, old bytes would show through.
            target.sync().map_err(fail)?;
        }
    }
    let rows = found.beginning.rows + found.salvaged.map_or(0, |page| u64::from(page.rows));
    let mut tail = Tail::new(target, name, header, options, found.beginning);
    if let Some(page) = found.salvaged {
        tail.adopt_page(page)?;
    }
    Ok((tail, Recovery { rows, was_whole, cut_bytes, damaged: found.damaged }))
}

/// Starts a record file over, in place of one whose writer died inside the header.
fn begin(target: Box<dyn Append>, name: &str, options: Options) -> Result<Tail> {
    let header = Header::new(writer::random_id()?, Schema::records(), "{}")
        .map_err(|why| Error::Invalid(why.0))?;
    let mut tail = Tail::new(target, name, header, options, Beginning::default());
    tail.write_header()?;
    Ok(tail)
}

/// Reads the header, or the copy of it that a directory at the end holds, and says
/// whether it is the copy. `None` for a file that ends inside its header.
fn find_header(source: Source<'_>, size: u64) -> Result<Option<(Header, bool)>> {
    let why = match front::read_header(source, size) {
        Ok(Front::Header(header)) => return Ok(Some((header, false))),
        Ok(Front::Torn) if is_header_alone(source, size)? => return Ok(None),
        Ok(Front::Torn) => source.corrupt(0, "header: its length is damaged"),
        Err(error @ Error::Storage { .. }) => return Err(error),
        Err(error) => error,
    };
    copy_of_header(source, size).map(|header| Some((header, true))).ok_or(why)
}

/// Whether nothing was ever committed: the file could be a part of a header, and holds
/// no trailer.
fn is_header_alone(source: Source<'_>, size: u64) -> Result<bool> {
    if size > (HEADER_LEN + HEADER_MAX) as u64 {
        return Ok(false);
    }
    Ok(memmem::find(&source.read(0, size)?, &TRAILER_MAGIC).is_none())
}

fn copy_of_header(source: Source<'_>, size: u64) -> Option<Header> {
    let offset = size.checked_sub(TRAILER_LEN as u64)?;
    let bytes = source.read(offset, TRAILER_LEN as u64).ok()?;
    let id: FileId = bytes[8..24].try_into().ok()?;
    let (trailer, _) = Trailer::decode(&bytes, offset, &id).ok()?;
    let seed = crate::format::checksum::Seed::new(&id);
    let directory = source.directory(&trailer, seed).ok()?;
    Header::decode(&directory.header).ok().filter(|header| header.id == id)
}

/// Where a file ends for good.
struct End {
    closed: bool,
    beginning: Beginning,
    /// A page behind the last trailer that is complete but for its trailer.
    salvaged: Option<PageEntry>,
    damaged: Vec<Damage>,
}

fn find_end(
    storage: &Arc<dyn ReadAt>,
    name: &str,
    header: &Header,
    size: u64,
    watch: &mut Watch<'_>,
) -> Result<End> {
    let source = Source { storage: &**storage, name };
    let Some(last) = chain::last_trailer(source, header, size, watch)? else {
        let position = header.bytes.len() as u64;
        let beginning = Beginning { position, ..Beginning::default() };
        return salvage(storage, name, header, size, beginning, Vec::new());
    };
    let mut chain = chain::walk(source, header, last, false, watch)?;
    let mut damaged: Vec<Damage> = chain.damage.drain(..).map(Damage::elsewhere).collect();
    let closed = last.0.offset + TRAILER_LEN as u64 == size
        && last.0.block.kind == BlockKind::Directory
        && damaged.is_empty();
    let reader = Reader::over(storage, name, header, &chain.contents, false);
    let dropped = if closed { 0 } else { unfit(&reader, &chain, &mut damaged, watch)? };
    for _ in 0..dropped {
        match chain.segments.pop().map(|segment| segment.trailer.block.kind) {
            Some(BlockKind::Page) => drop(chain.contents.pages.pop()),
            Some(BlockKind::Dictionary) => drop(chain.contents.dictionaries.pop()),
            _ => {}
        }
    }
    let end = chain.segments.last();
    let position =
        end.map_or(header.bytes.len() as u64, |end| end.trailer.offset + TRAILER_LEN as u64);
    damaged.retain(|damage| damage.offset < position);
    let beginning = Beginning {
        position,
        previous: end.map_or((0, 0), |end| (end.trailer.offset, end.crc)),
        rows: end.map_or(0, |end| end.trailer.rows),
        cells: end.map_or(0, |end| end.trailer.cells),
        durable: end.map_or(0, |end| end.trailer.durable),
        contents: chain.contents,
    };
    if closed || dropped > 0 {
        return Ok(End { closed, beginning, salvaged: None, damaged });
    }
    salvage(storage, name, header, size, beginning, damaged)
}

/// Counts the segments at the end that a power failure left incomplete: not yet
/// secured by a flush, and with a block or a cell that does not verify.
fn unfit(
    reader: &Reader,
    chain: &Chain,
    damaged: &mut Vec<Damage>,
    watch: &mut Watch<'_>,
) -> Result<usize> {
    let durable = chain.segments.last().map_or(0, |last| last.trailer.durable);
    let (mut page, mut dropped, mut pending) = (chain.contents.pages.len(), 0, 0);
    let mut kept = false;
    for segment in chain.segments.iter().rev() {
        if segment.trailer.offset < durable {
            break;
        }
        pending += 1;
        let block = segment.trailer.block;
        if block.kind != BlockKind::Page {
            // The walk along the chain has read these, and noted those that it could not.
            if !kept && damaged.iter().any(|damage| damage.offset == block.offset) {
                dropped = pending;
            }
            continue;
        }
        watch()?;
        page -= 1;
        let found = reader.verify_page(page);
        kept |= found.is_empty();
        if kept {
            damaged.extend(found);
        } else {
            dropped = pending;
        }
    }
    Ok(dropped)
}

/// Looks after the last trailer for a page that lacks only its trailer.
fn salvage(
    storage: &Arc<dyn ReadAt>,
    name: &str,
    header: &Header,
    size: u64,
    beginning: Beginning,
    damaged: Vec<Damage>,
) -> Result<End> {
    let mut end = End { closed: false, beginning, salvaged: None, damaged };
    let start = end.beginning.position;
    let source = Source { storage: &**storage, name };
    let bytes = source.read(start, (size - start).min(SALVAGE))?;
    let mut checked = 0;
    for at in memmem::find_iter(&bytes, &PAGE_MAGIC) {
        let Some(len) = Page::measure(&bytes[at..], &header.schema) else { continue };
        let Some(block) = bytes[at..].get(..len) else { continue };
        checked += len;
        if checked > chain::CANDIDATES * bytes.len() {
            break;
        }
        let offset = start + at as u64;
        let Ok((page, crc)) = Page::decode(block.to_vec(), offset, &header.schema, header.seed())
        else {
            continue;
        };
        let fits = page.base() == start
            && page.first_row == end.beginning.rows
            && page.first_cell == end.beginning.cells;
        let entry = PageEntry { offset, len: len as u32, crc, rows: page.rows, cells: page.cells };
        let mut contents = end.beginning.contents.clone();
        contents.pages.push(entry);
        let last = contents.pages.len() - 1;
        let reader = Reader::over(storage, name, header, &contents, false);
        if fits && reader.verify_page(last).is_empty() {
            end.beginning.position = offset + len as u64;
            end.salvaged = Some(entry);
            break;
        }
    }
    Ok(end)
}
