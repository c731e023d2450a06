//! An allocator with a reserve, so that small allocations do not abort Python.
//!
//! Rust aborts when an allocation fails that is not fallible. Large allocations are fallible; small
//! ones come from a reserve once the address space is exhausted, as under `ulimit -v`.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

use ingot::reserve::Pieces;

/// Bytes of the reserve: untouched pages, which take no memory until they are used.
const RESERVE: usize = 64 << 20;

/// Larger allocations are never served from the reserve.
const PIECE: usize = 8 << 20;

/// Pieces begin at multiples of this.
const ALIGN: usize = 64;

#[repr(align(64))]
struct Reserve(#[allow(dead_code)] [u8; RESERVE]);

static mut MEMORY: Reserve = Reserve([0; RESERVE]);
static PIECES: Pieces = Pieces::of(RESERVE as u32);

pub struct Reserving;

fn start() -> *mut u8 {
    (&raw mut MEMORY).cast()
}

fn is_reserved(place: *mut u8) -> bool {
    (start() as usize..start() as usize + RESERVE).contains(&(place as usize))
}

/// Returns the bytes that a piece for `layout`, which is not larger than the reserve, takes up.
fn size_of(layout: Layout) -> u32 {
    layout.size().next_multiple_of(ALIGN) as u32
}

/// Takes a piece from the reserve.
#[cold]
fn take(layout: Layout) -> *mut u8 {
    if layout.size() > PIECE || layout.align() > ALIGN {
        return null_mut();
    }
    match PIECES.take(size_of(layout)) {
        // SAFETY: the piece lies inside the reserve and overlaps no other piece.
        Some(at) => unsafe { start().add(at) },
        None => null_mut(),
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, or served from the reserve, whose pieces do not overlap and are aligned to 64 bytes.
unsafe impl GlobalAlloc for Reserving {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised to this call.
        let place = unsafe { System.alloc(layout) };
        if place.is_null() { take(layout) } else { place }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised to this call.
        let place = unsafe { System.alloc_zeroed(layout) };
        if !place.is_null() {
            return place;
        }
        let place = take(layout);
        if !place.is_null() {
            // SAFETY: the piece has this size.
            unsafe { place.write_bytes(0, layout.size()) };
        }
        place
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if is_reserved(place) {
            return PIECES.put_back(place as usize - start() as usize, size_of(layout));
        }
        // SAFETY: as promised to this call.
        unsafe { System.dealloc(place, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_reserved(place) {
            // SAFETY: as promised to this call.
            let moved = unsafe { System.realloc(place, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises that this is a layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: as promised to this call.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both places have this many bytes, and do not overlap.
            unsafe { moved.copy_from_nonoverlapping(place, layout.size().min(size)) };
            // SAFETY: as promised to this call.
            unsafe { self.dealloc(place, layout) };
        }
        moved
    }
}
