//! The entries of the wasm. All that is unsafe in this crate is here.
#![allow(unsafe_code)]

use std::alloc::Layout;

/// Reserves `length` bytes for a request; 0 when there is no room. Every reservation is given back by [`dealloc`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn alloc(length: u32) -> u32 {
    let Some(layout) = layout(length) else { return 0 };
    // SAFETY: the layout is not empty.
    unsafe { std::alloc::alloc(layout) as usize as u32 }
}

/// Gives a reservation back: a request's, or an answer's.
///
/// # Safety
/// `at` and `length` are those of an [`alloc`], or of an answer, and are given back once.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dealloc(at: u32, length: u32) {
    if let Some(layout) = layout(length) {
        // SAFETY: the caller's promise; alloc and answer use the same layout.
        unsafe { std::alloc::dealloc(at as usize as *mut u8, layout) };
    }
}

/// [`crate::compile_json`] over a request at `at`. The answer's address is in the upper half of the result, its
/// length in the lower.
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
