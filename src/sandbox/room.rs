//! Size limits of a decoded value. A small text can encode a large value, because a part that occurs a
//! hundred times is encoded once.

use std::cell::Cell;

use crate::limits;
use crate::sandbox::value::Exception;

/// The remaining size for values that are read or written together.
#[derive(Clone, Debug)]
pub(crate) struct SizeAllowance {
    left: Cell<usize>,
    raw: Cell<usize>,
}

impl Default for SizeAllowance {
    fn default() -> SizeAllowance {
        SizeAllowance { left: Cell::new(limits::CODE_VALUE_BYTES), raw: Cell::new(limits::CODE_RAW_BYTES) }
    }
}

impl SizeAllowance {
    /// Counts a part of a value, and the bytes of its text.
    ///
    /// # Errors
    /// `SerializationError` when the limit is exceeded.
    pub(super) fn take(&self, text: usize) -> Result<(), Exception> {
        let left = self.left.get().checked_sub(text.saturating_add(limits::CODE_PART_BYTES));
        self.left.set(left.unwrap_or_default());
        left.map(|_| ()).ok_or_else(|| {
            let (limit, part) = (limits::CODE_VALUE_BYTES, limits::CODE_PART_BYTES);
            Exception::unserializable(format!(
                "A value is larger than {limit} bytes, the limit: its texts, and {part} bytes for each of its parts, \
                 those that occur twice counted twice. Give bytes, write a file, or give less."
            ))
        })
    }

    /// Counts the contents of a binary value.
    ///
    /// # Errors
    /// `SerializationError` when the limit is exceeded.
    pub(super) fn take_raw(&self, bytes: usize) -> Result<(), Exception> {
        let left = self.raw.get().checked_sub(bytes);
        self.raw.set(left.unwrap_or_default());
        left.map(|_| ()).ok_or_else(|| {
            let limit = limits::CODE_RAW_BYTES;
            Exception::unserializable(format!(
                "The binary values in a value have more than {limit} bytes, the limit; those that occur twice count twice."
            ))
        })
    }

    /// The size so far, without the contents of binary values.
    pub(super) fn taken(&self) -> usize {
        limits::CODE_VALUE_BYTES.saturating_sub(self.left.get())
    }

    /// Whether nothing is left.
    pub(super) fn spent(&self) -> bool {
        self.left.get() == 0 || self.raw.get() == 0
    }
}
