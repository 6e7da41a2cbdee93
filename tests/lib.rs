//! Empty: cargo wants a library of each package, and this one has the tests of the core only, a folder for each
//! ([docs/testing.md](../docs/testing.md)).
