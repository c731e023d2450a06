//! Reading ahead along a stream of rows.

use std::collections::VecDeque;
use std::sync::Arc;

use super::container::Cell;
use super::contents::Source;
use super::fetch::Files;
use super::sequence::Sequence;
use crate::errand::Errand;
use crate::error::Result;

/// Windows that are under way at a time.
const DEPTH: usize = 4;

/// Bytes that a window aims at.
const WINDOW: u64 = 1 << 20;

/// Rows of the first window, when the size of a record is not known yet, and of the largest.
const ROWS: (usize, usize) = (64, 1024);

/// Records that are next in a stream, on their way into memory.
pub struct Window {
    /// Where each value is, in stream order.
    pub cells: Vec<Cell>,
    values: Option<Errand<Result<Vec<u8>>>>,
}

impl Window {
    /// Returns the values one behind the other if they were read already; else they
    /// are to be fetched by [`Files::fetch`], which finds them in memory.
    pub fn values(self) -> Result<Option<Vec<u8>>> {
        self.values.map(Errand::wait).transpose()
    }
}

/// A queue of windows: rows go in ahead of time, values come out in the same order.
pub struct Ahead {
    files: Arc<Sequence>,
    windows: VecDeque<Window>,
    rows: usize,
}

impl Ahead {
    /// Returns an empty queue.
    pub fn new(files: Arc<Sequence>) -> Self {
        Ahead { files, windows: VecDeque::new(), rows: ROWS.0 }
    }

    /// Returns how many rows to push next; 0 while enough is under way.
    pub fn wanted(&self) -> usize {
        if self.windows.len() < DEPTH { self.rows } else { 0 }
    }

    /// Starts to bring `rows` into memory.
    pub fn push(&mut self, rows: &[u64]) -> Result<()> {
        let mut cells = Vec::new();
        self.files.locate_many(rows, &mut cells)?;
        let bytes: u64 = cells.iter().map(|cell| cell.raw).sum();
        let mean = bytes / cells.len().max(1) as u64 + 1;
        self.rows = ((WINDOW / mean) as usize).clamp(1, ROWS.1);
        let values = if self.files.announce(&cells) { None } else { self.start(&cells) };
        self.windows.push_back(Window { cells, values });
        Ok(())
    }

    /// Returns the oldest window.
    pub fn pop(&mut self) -> Option<Window> {
        self.windows.pop_front()
    }

    /// Reads a window while others are used. `None` if the system has no thread to spare:
    /// the window is then read when its turn comes.
    fn start(&self, cells: &[Cell]) -> Option<Errand<Result<Vec<u8>>>> {
        let (files, cells) = (Arc::clone(&self.files), cells.to_vec());
        Errand::send(move || read(&files, &cells))
    }
}

fn read(files: &Sequence, cells: &[Cell]) -> Result<Vec<u8>> {
    let bytes: u64 = cells.iter().map(|cell| cell.raw).sum();
    let mut values = Vec::new();
    if let Some(first) = cells.first() {
        Source::of(files.file(first.file)).make_room(&mut values, bytes)?;
    }
    let mut rest = &mut values[..];
    let mut bufs: Vec<&mut [u8]> = cells
        .iter()
        .map(|cell| rest.split_off_mut(..cell.raw as usize).expect("sized for all"))
        .collect();
    files.fetch(cells, &mut bufs)?;
    Ok(values)
}
