//! Index pages of several schemas: any bytes under a checksum that is right.

#![no_main]

use ingot::format::checksum::Seed;
use ingot::format::ingot::{FieldKind, Page};
use ingot_fuzz::{ID, bounded, schemas};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    let schema = &schemas()[usize::from(choice % 4)];
    let seed = Seed::new(&ID);
    // A page says where it stands; nearly always it is read from there.
    let own = body.get(8..16).map_or(0, |own| u64::from_le_bytes(own.try_into().unwrap()));
    let offset = if *choice < 0x80 { own } else { 4096 };
    let mut bytes = body.to_vec();
    seed.seal(&mut bytes);
    let measured = Page::measure(&bytes, schema);
    bounded((1 << 20) + 2 * bytes.len(), || {
        let Ok((page, _)) = Page::decode(bytes.clone(), offset, schema, seed) else { return };
        assert_eq!(measured, Some(bytes.len()));
        for cell in 0..page.cells {
            if let Ok(entry) = page.cell(cell) {
                assert!(entry.offset + entry.stored <= offset);
                assert!(entry.raw >= entry.stored);
            }
        }
        assert!(page.cell(page.cells).is_err());
        for (field, declared) in schema.fields().iter().enumerate() {
            let _ = page.encoding(field);
            if declared.kind == FieldKind::Column {
                let values = page.column(schema, field);
                assert_eq!(values.len(), page.rows as usize * declared.width.unwrap() as usize);
            }
            for row in 0..page.rows {
                if let Ok(cells) = page.cells_of(schema, row, field) {
                    assert!(cells.start <= cells.end && cells.end <= page.cells);
                }
            }
        }
    });
});
