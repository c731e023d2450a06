//! Values of other formats: any bytes, by any recipe, and the parsers they stand on.

#![no_main]

use ingot::format::foreign::litdata::{Framed, unpacked_items};
use ingot::format::foreign::npy::Head;
use ingot::format::foreign::{Coding, csv, example, json, tar};
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Memory that a value may cost beyond a few times its length.
const LIMIT: usize = 512 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&code, stored)) = data.split_first_chunk::<2>() else { return };
    bounded(LIMIT + 64 * stored.len(), || {
        if let Some(coding) = Coding::of_code(code)
            && let Ok(value) = coding.value(stored)
        {
            let mut again = vec![0; value.len()];
            coding.decode(stored, &mut again).expect("a value comes out again");
            assert_eq!(again, value);
        }
        let _ = example::entries(stored, |_, _| Ok(()));
        let _ = json::members(stored, |_, _| Ok(()));
        let _ = csv::fields(stored, b',');
        let _ = tar::pax(stored);
        let _ = tar::split(stored);
        let _ = Head::decode(stored);
        let _ = Framed::decode(stored).and_then(|framed| framed.unpacked());
        let _ = unpacked_items(stored);
        if let Some(block) = stored.first_chunk() {
            let _ = tar::Header::decode(block);
        }
    });
});
