#!/bin/sh
# Replaces rustc for the crates of the checkout when cargo compiles tests: clippy checks a crate while it compiles it.
# Optimized crates (the core and the one that runs the sweeps) use only the LLVM passes of rust.mjs.
case "${BOBBIN_PASSES:+light} $* " in
  light*" opt-level=1 "*) exec clippy-driver "$@" -C no-prepopulate-passes -C "passes=$BOBBIN_PASSES" ;;
  *) exec clippy-driver "$@" ;;
esac
