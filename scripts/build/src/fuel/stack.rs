//! Frames on the stack in memory that are as large as those on the machine's own stack.
//!
//! A module keeps a stack of its own in its memory, and QuickJS bounds its recursion by how much of that is used. What ends
//! first is the machine's stack, though, which the module cannot see: functions that recurse with small frames in memory and
//! large ones there (a parser, a comparison) would run into it, and nothing can catch that. So each frame in memory is made
//! larger by what the function may take there. The prologue and the epilogues say the size, and only they.

use anyhow::Result;
use wasmparser::{FunctionBody, Operator};

/// Bytes of a local where nothing is optimized.
const LOCAL_BYTES: u32 = 8;
/// Bytes that every call takes beside its locals: return address, registers, values in between.
const CALL_BYTES: u32 = 128;
/// A byte there counts for so much here: one half.
const SHARE_SHIFT: u32 = 1;
/// Frames are aligned to so many bytes.
const ALIGNED: u32 = 16;

/// The size that a function's frame is to have, and the instructions that say the one it has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Deepened {
    pub(super) bytes: i32,
    pub(super) at: Vec<usize>,
}

/// What is to be written in a function with so many locals; nothing in one without a frame in memory. `stack_pointer` is the
/// global that says where the stack ends.
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
            // It is given back in a way that is not known: better to leave it.
            _ => return Ok(Deepened::default()),
        }
    }
    let more = ((LOCAL_BYTES * locals + CALL_BYTES) >> SHARE_SHIFT).next_multiple_of(ALIGNED);
    Ok(Deepened { bytes: bytes.saturating_add_unsigned(more), at })
}
