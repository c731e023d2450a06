//! Reading ahead along a stream of rows.

use std::collections::VecDeque;
use std::sync::Arc;

use super::container::Cell;
use super::fetch::{Files, check_growth};
use super::sequence::Sequence;
use crate::background::Task;
use crate::error::Result;

/// Windows that are under way at a time, unless their records are large.
const DEPTH: usize = 4;

/// Bytes that a window aims at. All that are under way have at most [`DEPTH`] times as many,
/// or one record.
const WINDOW: u64 = 1 << 20;

/// Rows of the first window, when the size of a record is not known yet, and of the largest.
const ROWS: (usize, usize) = (64, 1024);

/// Records that are next in a stream, on their way into memory.
pub struct Window {
    /// Where each value is, in stream order.
    pub cells: Vec<Cell>,
    values: Option<Task<Result<Vec<u8>>>>,
    bytes: u64,
}

impl Window {
    /// Returns the values one after the other if they were read already; else they
    /// are to be fetched by [`Files::fetch`], which finds them in memory.
    pub fn values(self) -> Result<Option<Vec<u8>>> {
        self.values.map(Task::wait).transpose()
    }
}

/// A queue of windows: rows go in ahead of time, values come out in the same order.
pub struct ReadAhead {
    files: Arc<Sequence>,
    windows: VecDeque<Window>,
    /// How many of the windows are under way.
    begun: usize,
    /// Bytes of these.
    bytes: u64,
    rows: usize,
}

impl ReadAhead {
    /// Returns an empty queue.
    pub fn new(files: Arc<Sequence>) -> Self {
        ReadAhead { files, windows: VecDeque::new(), begun: 0, bytes: 0, rows: ROWS.0 }
    }

    /// Returns how many rows to push next; 0 while enough is there.
    pub fn wanted(&self) -> usize {
        if self.windows.len() < DEPTH { self.rows } else { 0 }
    }

    /// Takes the next rows, and starts to bring them into memory as far as there is room.
    pub fn push(&mut self, rows: &[u64]) -> Result<()> {
        let mut cells = Vec::new();
        self.files.locate_many(rows, &mut cells)?;
        let bytes: u64 = cells.iter().map(|cell| cell.raw).sum();
        let mean = bytes / cells.len().max(1) as u64 + 1;
        self.rows = ((WINDOW / mean) as usize).clamp(1, ROWS.1);
        let mut rest = &cells[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let end = rest.iter().position(|cell| {
                bytes += cell.raw;
                bytes > WINDOW
            });
            let (window, behind) = rest.split_at(end.unwrap_or(rest.len()).max(1));
            let bytes = window.iter().map(|cell| cell.raw).sum();
            self.windows.push_back(Window { cells: window.to_vec(), values: None, bytes });
            rest = behind;
        }
        self.begin();
        Ok(())
    }

    /// Starts as many windows as there is room for, one at least.
    fn begin(&mut self) {
        while let Some(window) = self.windows.get(self.begun) {
            let bytes = self.bytes + window.bytes;
            if self.begun > 0 && bytes > DEPTH as u64 * WINDOW {
                return;
            }
            let is_there = self.files.is_ready(&window.cells);
            self.windows[self.begun].values =
                if is_there { None } else { self.start(&self.windows[self.begun].cells) };
            self.begun += 1;
            self.bytes = bytes;
        }
    }

    /// Empties the queue, and returns the rows that were in it.
    pub fn drain(&mut self) -> Vec<u64> {
        let windows = std::mem::take(&mut self.windows);
        (self.begun, self.bytes) = (0, 0);
        windows.iter().flat_map(|window| &window.cells).map(|cell| cell.row).collect()
    }

    /// Returns the oldest window.
    pub fn pop(&mut self) -> Option<Window> {
        let window = self.windows.pop_front()?;
        self.begun -= 1;
        self.bytes -= window.bytes;
        self.begin();
        Some(window)
    }

    /// Reads a window while others are used. `None` if the system has no thread to spare:
    /// the window is then read when its turn comes.
    fn start(&self, cells: &[Cell]) -> Option<Task<Result<Vec<u8>>>> {
        let (files, cells) = (Arc::clone(&self.files), cells.to_vec());
        Task::spawn(move || read(&files, &cells))
    }
}

fn read(files: &Sequence, cells: &[Cell]) -> Result<Vec<u8>> {
    check_growth(files, cells)?;
    let bytes: u64 = cells.iter().map(|cell| cell.raw).sum();
    let mut values = Vec::new();
    if let Some(first) = cells.first() {
        files.file(first.file).source().make_room(&mut values, bytes)?;
    }
    let mut rest = &mut values[..];
    let mut bufs: Vec<&mut [u8]> = cells
        .iter()
        .map(|cell| rest.split_off_mut(..cell.raw as usize).expect("sized for all"))
        .collect();
    files.fetch(cells, &mut bufs)?;
    Ok(values)
}
