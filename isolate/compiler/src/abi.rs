//! The entries of the wasm. All unsafe code of this crate is here.
#![allow(unsafe_code)]

use std::alloc::Layout;

/// Allocates `length` bytes for a request; returns 0 if there is no room. [`dealloc`] frees every allocation.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn alloc(length: u32) -> u32 {
    let Some(layout) = layout(length) else { return 0 };
    // SAFETY: the layout is not empty.
    unsafe { std::alloc::alloc(layout) as usize as u32 }
}

/// Frees the memory of a request or of an answer.
///
/// # Safety
/// `at` and `length` are those of an [`alloc`] or of an answer, and are freed once.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dealloc(at: u32, length: u32) {
    if let Some(layout) = layout(length) {
        // SAFETY: the caller's promise; alloc and answer use the same layout.
        unsafe { std::alloc::dealloc(at as usize as *mut u8, layout) };
    }
}

/// [`crate::compile_json`] for the request at `at`. The upper half of the result is the answer's address, the
/// lower half its length.
///
/// # Safety
/// `at` and `length` are those of an [`alloc`] whose bytes have all been written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn compile(at: u32, length: u32) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { answer(at, length, crate::compile_json) }
}

/// [`crate::resolve_json`], in the same format.
///
/// # Safety
/// Same as [`compile`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn resolve(at: u32, length: u32) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { answer(at, length, crate::resolve_json) }
}

/// # Safety
/// Same as [`compile`].
unsafe fn answer(at: u32, length: u32, entry: fn(&[u8]) -> String) -> u64 {
    // SAFETY: the caller's promise.
    let request = unsafe { std::slice::from_raw_parts(at as usize as *const u8, length as usize) };
    let text = entry(request).into_boxed_str();
    let length = text.len() as u32;
    let at = Box::into_raw(text) as *mut u8 as usize as u32;
    (u64::from(at) << 32) | u64::from(length)
}

fn layout(length: u32) -> Option<Layout> {
    Layout::array::<u8>(length as usize).ok().filter(|layout| layout.size() > 0)
}
