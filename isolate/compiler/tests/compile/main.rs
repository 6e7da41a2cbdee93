//! The compile step from outside: a request in, modules or a mistake out.

mod erase;
mod support;
