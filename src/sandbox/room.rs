//! How much a value may be once it is written out. A small text can stand for a large value: whatever is used a hundred times
//! travels once.

use std::cell::Cell;

use crate::limits;
use crate::sandbox::value::Thrown;

/// What is left for values that are read or written together.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    left: Cell<usize>,
    raw: Cell<usize>,
}

impl Default for Room {
    fn default() -> Room {
        Room { left: Cell::new(limits::CODE_VALUE_BYTES), raw: Cell::new(limits::CODE_RAW_BYTES) }
    }
}

impl Room {
    /// Takes a part of a value and the bytes of its text.
    ///
    /// # Errors
    /// `SerializationError`: there is no room for it.
    pub(crate) fn take(&self, text: usize) -> Result<(), Thrown> {
        let left = self.left.get().checked_sub(text.saturating_add(limits::CODE_PART_BYTES));
        self.left.set(left.unwrap_or_default());
        left.map(|_| ()).ok_or_else(|| {
            let (limit, part) = (limits::CODE_VALUE_BYTES, limits::CODE_PART_BYTES);
            Thrown::unserializable(format!(
                "A value is larger than {limit} bytes, the limit: its texts, and {part} bytes for each of its parts, \
                 those that occur twice counted twice. Give bytes, write a file, or give less."
            ))
        })
    }

    /// Takes the contents of a binary value.
    ///
    /// # Errors
    /// `SerializationError`: there is no room for them.
    pub(crate) fn take_raw(&self, bytes: usize) -> Result<(), Thrown> {
        let left = self.raw.get().checked_sub(bytes);
        self.raw.set(left.unwrap_or_default());
        left.map(|_| ()).ok_or_else(|| {
            let limit = limits::CODE_RAW_BYTES;
            Thrown::unserializable(format!(
                "The binary values in a value have more than {limit} bytes, the limit; those that occur twice count twice."
            ))
        })
    }

    /// How much has been taken, contents of binary values aside.
    pub(crate) fn taken(&self) -> usize {
        limits::CODE_VALUE_BYTES.saturating_sub(self.left.get())
    }

    /// Whether there is none left.
    pub(crate) fn spent(&self) -> bool {
        self.left.get() == 0 || self.raw.get() == 0
    }
}
