#!/bin/sh
# What cargo runs in place of rustc for the crates of the checkout when tests are compiled: clippy, which looks at a crate while it is
# compiled. Those that are optimised, the core and what runs the sweeps, have the few passes of LLVM that rust.mjs names.
case "${BOBBIN_PASSES:+light} $* " in
  light*" opt-level=1 "*) exec clippy-driver "$@" -C no-prepopulate-passes -C "passes=$BOBBIN_PASSES" ;;
  *) exec clippy-driver "$@" ;;
esac
