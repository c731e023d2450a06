//! What every storage promises, tried on each of them, and what each promises besides.

#![allow(unsafe_code)]

mod append;
mod doubles;
mod fixture;
mod local;
mod process;
mod reading;
mod sigbus;
