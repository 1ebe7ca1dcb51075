/* L5 script. The largest values that a script may pass to the host. No normal script comes near any
 * of these limits: they bound the work of the host, and an error names each. There are also budgets
 * (script.h) and sizes of work buffers (internal.h). */
#pragma once

#define SCRIPT_PATTERN_MAX       16384 /* bytes of a pattern of string.find, match, gmatch, gsub */
#define SCRIPT_CONDITIONS_MAX    256   /* in one status; Kubernetes' own kinds have below 10 */
#define SCRIPT_OWNERS_MAX        64    /* metadata.ownerReferences of an object that is written */
#define SCRIPT_FILTER_LABELS_MAX 64    /* in one call of ctx.list */
#define SCRIPT_URL_MAX           8192  /* bytes; the limit of proxies in front of an API server */
