//! A writer whose thread panics: no call that follows may say that all is well.

use std::io;
use std::panic;

use ingot::Error;
use ingot::format::ingot::Schema;
use ingot::records::{Options, Writer};
use ingot::storage::Append;

/// A storage that takes the header and panics at what comes later.
struct Panicking {
    has_header: bool,
}

impl Append for Panicking {
    fn append(&mut self, _bytes: &[u8]) -> io::Result<()> {
        assert!(!std::mem::replace(&mut self.has_header, true), "as asked");
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn rewrite(&mut self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

fn writer() -> Writer {
    panic::set_hook(Box::new(|_| {}));
    let storage = Panicking { has_header: false };
    let schema = Schema::records();
    let mut writer =
        Writer::create(Box::new(storage), "x", schema, "{}", Options::default()).unwrap();
    for _ in 0..100 {
        writer.append(b"record").unwrap();
    }
    writer
}

fn is_panic(error: &Error) -> bool {
    matches!(error, Error::Storage { source, .. } if source.to_string().contains("panicked"))
}

#[test]
fn a_flush_fails_and_so_does_all_that_follows() {
    let mut writer = writer();
    assert!(is_panic(&writer.flush().unwrap_err()));
    assert!(writer.close().is_err());
    assert!(writer.close().is_err());
    assert_eq!(writer.num_committed(), 0);
}

#[test]
fn a_close_fails_twice() {
    let mut writer = writer();
    assert!(is_panic(&writer.close().unwrap_err()));
    assert!(is_panic(&writer.close().unwrap_err()));
    assert_eq!(writer.num_committed(), 0);
}
