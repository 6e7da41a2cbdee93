//! Attachments of messages (spec §16.4): files of the thread that a message shows. One that comes with the message is written
//! to `/attachments/`; one that is there already is named by its path. A model that sees gets the newest images, and of
//! everything else a line that says what it is and where.
//!
//! * `store`: how attachments become files and rows, and go with them. `picture`: what the bytes of an image say of themselves.
//!   `shown`: which images a request to a model carries.

pub(crate) mod picture;
pub(crate) mod shown;
pub(crate) mod store;
