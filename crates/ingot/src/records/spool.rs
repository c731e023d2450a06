//! Bytes that wait in a file of their own until their place is known.

use std::io;
use std::sync::Arc;

use crate::storage::{Append, Read, ReadAt};

/// Bytes are brought to their place in parts of this size.
const PART: usize = 1 << 20;

/// A file that grows at one end and is read at the other.
pub struct Spool {
    /// Takes the bytes.
    pub append: Box<dyn Append>,
    /// Gives them back.
    pub read: Arc<dyn ReadAt>,
}

impl Spool {
    /// Appends all that is in the spool to `target`.
    pub fn pour(&self, target: &mut dyn Append) -> io::Result<()> {
        self.append.check()?;
        let size = self.read.size()?;
        let mut bytes = vec![0; size.min(PART as u64) as usize];
        for offset in (0..size).step_by(PART) {
            let part = &mut bytes[..(size - offset).min(PART as u64) as usize];
            let mut found = Ok(());
            self.read
                .read_many(&mut [Read::new(offset, part)], &mut |_, _, outcome| found = outcome);
            found?;
            target.append(part)?;
        }
        Ok(())
    }
}
