//! The compile step from outside: a request in, modules or a mistake out.

mod classes;
mod enums;
mod erase;
mod globals;
mod imports;
mod links;
mod mistakes;
mod namespaces;
mod options;
mod places;
mod resolution;
mod robust;
mod separation;
mod support;
