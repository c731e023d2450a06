//! Pixels as the values of a batch: each byte is looked up in a table of its colour, and goes to
//! its place in the layout.

/// A number for each of the 256 values of each colour, as the bytes that are written.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    bytes: Vec<u8>,
    width: usize,
}

impl Table {
    /// Takes the numbers, of 1, 2 or 4 bytes each, colour after colour. None if their count is
    /// wrong.
    pub fn new(bytes: Vec<u8>, width: usize, colours: u8) -> Option<Table> {
        let is_whole = bytes.len() == 256 * width * usize::from(colours);
        ([1, 2, 4].contains(&width) && is_whole).then_some(Table { bytes, width })
    }

    /// Returns the table in which each byte is itself.
    pub fn identity(colours: u8) -> Table {
        let bytes = (0..colours).flat_map(|_| 0..=u8::MAX).collect();
        Table { bytes, width: 1 }
    }

    /// Number of bytes of a value.
    pub fn width(&self) -> usize {
        self.width
    }
}

/// Where the values of one picture go, and how.
pub struct Place<'a> {
    /// What values there are.
    pub table: &'a Table,
    /// Number of colours, 1 or 3.
    pub colours: usize,
    /// Whether all values of a colour are together.
    pub is_planar: bool,
    /// Whether left and right are exchanged.
    pub is_mirrored: bool,
    /// The values of the picture.
    pub values: &'a mut [u8],
}

impl Place<'_> {
    /// Writes row `k` of the picture.
    pub fn write(&mut self, k: usize, row: &[u8]) {
        match self.table.width {
            1 => self.write_as::<1>(k, row),
            2 => self.write_as::<2>(k, row),
            _ => self.write_as::<4>(k, row),
        }
    }

    fn write_as<const N: usize>(&mut self, k: usize, row: &[u8]) {
        let (numbers, _) = self.table.bytes.as_chunks::<N>();
        let (values, _) = self.values.as_chunks_mut::<N>();
        if self.colours == 1 {
            let (table, _) = numbers.split_first_chunk::<256>().expect("a table for a colour");
            let to = &mut values[k * row.len()..(k + 1) * row.len()];
            look_up(row.as_chunks::<1>().0, to, self.is_mirrored, |pixel, to| {
                *to = table[usize::from(pixel[0])]
            });
            return;
        }
        let (tables, _) = numbers.as_chunks::<256>();
        let [red, green, blue] = tables else { unreachable!("a table for each colour") };
        let (pixels, _) = row.as_chunks::<3>();
        if !self.is_planar {
            let (to, _) = values[k * row.len()..(k + 1) * row.len()].as_chunks_mut::<3>();
            look_up(pixels, to, self.is_mirrored, |pixel, to| {
                to[0] = red[usize::from(pixel[0])];
                to[1] = green[usize::from(pixel[1])];
                to[2] = blue[usize::from(pixel[2])];
            });
            return;
        }
        let plane = values.len() / 3;
        for (colour, (table, values)) in
            tables.iter().zip(values.chunks_exact_mut(plane)).enumerate()
        {
            let to = &mut values[k * pixels.len()..(k + 1) * pixels.len()];
            look_up(pixels, to, self.is_mirrored, |pixel, to| {
                *to = table[usize::from(pixel[colour])]
            });
        }
    }
}

/// Calls `each` with every pixel and its place.
#[inline(always)]
fn look_up<P, T>(pixels: &[P], to: &mut [T], is_mirrored: bool, each: impl Fn(&P, &mut T)) {
    if is_mirrored {
        pixels.iter().rev().zip(to).for_each(|(pixel, to)| each(pixel, to));
    } else {
        pixels.iter().zip(to).for_each(|(pixel, to)| each(pixel, to));
    }
}
