//! The exports of the wasm. All unsafe code of this crate is in this file.
#![allow(unsafe_code)]

use std::alloc::Layout;

/// Reserves `length` bytes for a request. Returns 0 if there is no memory. [`dealloc`] frees every
/// reservation.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn alloc(length: u32) -> u32 {
    let Some(layout) = layout(length) else { return 0 };
    // SAFETY: the layout is not empty.
    unsafe { std::alloc::alloc(layout) as usize as u32 }
}

/// Frees the memory of a request or an answer.
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

/// Runs [`crate::compile_json`] on the request at `at`. The upper half of the result is the answer's address,
/// the lower half its length.
///
/// # Safety
/// `at` and `length` are those of an [`alloc`] whose bytes have all been written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn compile(at: u32, length: u32) -> u64 {
    // SAFETY: the caller's promise.
    let request = unsafe { std::slice::from_raw_parts(at as usize as *const u8, length as usize) };
    let text = crate::compile_json(request).into_boxed_str();
    let length = text.len() as u32;
    let at = Box::into_raw(text) as *mut u8 as usize as u32;
    (u64::from(at) << 32) | u64::from(length)
}

fn layout(length: u32) -> Option<Layout> {
    Layout::array::<u8>(length as usize).ok().filter(|layout| layout.size() > 0)
}
