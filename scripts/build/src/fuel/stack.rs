//! Enlarges frames in memory to match those on the machine's stack.
//!
//! A module keeps a stack of its own in its memory, and QuickJS limits recursion by its usage. But the
//! machine's stack ends first, and the module cannot see it. Functions that recurse with small frames in
//! memory and large ones on the machine's stack (a parser, a comparison) would overflow it, which nothing can
//! catch. So each frame in memory grows by what the function may take on the machine's stack. Only the
//! prologue and the epilogues contain the size.

use anyhow::Result;
use wasmparser::{FunctionBody, Operator};

/// Bytes of a local in unoptimized code.
const LOCAL_BYTES: u32 = 8;
/// Bytes of every call besides its locals: return address, registers, temporaries.
const CALL_BYTES: u32 = 128;
/// The weight of a machine's byte in memory, as a shift: one half.
const SHARE_SHIFT: u32 = 1;
/// The alignment of frames in bytes.
const ALIGNED: u32 = 16;

/// The new size of a function's frame, and the instructions that contain the old one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Deepened {
    pub(super) bytes: i32,
    pub(super) at: Vec<usize>,
}

/// The change for a function with this many locals; nothing for one without a frame in memory.
/// `stack_pointer` is the global that holds the end of the stack.
pub(super) fn deepened(body: &FunctionBody<'_>, locals: u32, stack_pointer: u32) -> Result<Deepened> {
    let operators: Vec<Operator<'_>> = body.get_operators_reader()?.into_iter().collect::<Result<_, _>>()?;
    let sets = |operator: &Operator<'_>| matches!(operator, Operator::GlobalSet { global_index } if *global_index == stack_pointer);
    let [
        Operator::GlobalGet { global_index },
        Operator::I32Const { value: bytes },
        Operator::I32Sub,
        Operator::LocalTee { .. },
        fifth,
        ..,
    ] = operators.as_slice()
    else {
        return Ok(Deepened::default());
    };
    if *global_index != stack_pointer || !sets(fifth) {
        return Ok(Deepened::default());
    }
    let mut at = vec![1];
    for (index, window) in operators.windows(3).enumerate() {
        let [size, Operator::I32Add, set] = window else { continue };
        if !sets(set) {
            continue;
        }
        match size {
            Operator::I32Const { value } if value == bytes => at.push(index),
            // The frame is released in an unknown way: leave it unchanged.
            _ => return Ok(Deepened::default()),
        }
    }
    let more = ((LOCAL_BYTES * locals + CALL_BYTES) >> SHARE_SHIFT).next_multiple_of(ALIGNED);
    Ok(Deepened { bytes: bytes.saturating_add_unsigned(more), at })
}
