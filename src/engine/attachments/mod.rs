//! Attachments of messages (spec §16.4): files of the thread that a message shows. A file that is sent with
//! the message is written to `/attachments/`. An existing file is named by its path. A model with vision gets
//! the newest images; every other attachment becomes a line with its type and path.
//!
//! * `store`: attachments become files and rows, and are deleted with them. `picture`: checks of image bytes.
//!   `images`: the images in a request to a model.

pub(crate) mod images;
mod picture;
pub(super) mod store;
