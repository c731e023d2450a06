//! Tests of the engine that can share a process; those that cannot, since they limit, count or
//! change something of the whole process, are the files beside this folder.

mod arrayrecord;
mod bag;
mod compatibility;
mod corruption;
mod crash_consistency;
mod decisions;
mod ffrecord;
mod hdf5;
mod layers;
mod many_files;
mod picture;
mod rows;
mod specification;
#[path = "../support/mod.rs"]
mod support;
