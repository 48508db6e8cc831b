#pragma once

// Before a function whose loops are worth vectors of the machine that runs it: compiled once for
// each of three levels of x86-64, chosen when the program is loaded. Contraction is off everywhere
// (docs/decisions/0006-no-contraction.md), so every level gives the same bits. Not under
// sanitisers, which are not up yet when the choice is made.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MOEGAUGE_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MOEGAUGE_CLONES
#endif
