/* L5 script. What a script may hand over in one piece. No honest script comes near any of them:
 * they are what makes the work of the host bounded by a number, and an error names each. Beside
 * them: budgets (script.h), sizes of work space (internal.h). */
#pragma once

#define SCRIPT_PATTERN_MAX       16384 /* bytes of a pattern of string.find, match, gmatch, gsub */
#define SCRIPT_CONDITIONS_MAX    256   /* in one status; Kubernetes' own kinds have below 10 */
#define SCRIPT_OWNERS_MAX        64    /* metadata.ownerReferences of an object that is written */
#define SCRIPT_FILTER_LABELS_MAX 64    /* that ctx.list is asked for at once */
#define SCRIPT_URL_MAX           8192  /* bytes; proxies before an API server take no more */
