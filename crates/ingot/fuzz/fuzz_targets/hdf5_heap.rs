//! Values of HDF5 files that vary in length: references and heaps of any bytes.

#![no_main]

use std::sync::Arc;

use ingot::records::{ColumnLayout, Hdf5};
use ingot::storage::Memory;
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Memory that a read may cost beyond a few times the length of the file and of the values.
const LIMIT: usize = 16 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&[rows, item], bytes)) = data.split_first_chunk() else { return };
    let (rows, item) = (u64::from(rows % 32), u64::from(item % 9));
    // A heap has 4096 bytes or more; what is behind the input are zeros.
    let mut whole = bytes.to_vec();
    whole.resize(bytes.len() + 8192, 0);
    bounded(LIMIT + 64 * whole.len(), || {
        let file = Hdf5::new(Arc::new(Memory::from(whole.clone())), "fuzzed.h5").unwrap();
        let (block, offsets) = (vec![rows.max(1)], vec![0; rows.min(1) as usize]);
        let layout = ColumnLayout { rows, item, varies: true, shape: vec![], block, offsets };
        let Ok(column) = file.column(layout) else { return };
        for row in 0..rows {
            let rows = [row];
            let Ok(shares) = file.plan(&[&column], &rows) else { continue };
            let len = shares[0].lens().sum::<u64>();
            assert!(len <= whole.len() as u64);
            let mut value = vec![0; len as usize];
            if file.fill(&shares, &mut [&mut value]).is_ok() && len > 0 {
                assert!(whole.windows(value.len()).any(|window| window == value));
            }
        }
    });
});
