/* L0 base. The hash of tables whose keys others choose: it differs from process to process, so
 * that nobody can choose keys that meet in one place. Never stored, sent or logged; nothing may
 * depend on an order that comes from it. For a hash that stays the same: ml_str_hash. */
#pragma once

#include "base/str.h"

uint64_t ml_hash(struct ml_str key);

/* For tests: this seed instead of the kernel's. Before any table has an entry. */
void ml_hash_seed(uint64_t low, uint64_t high);
