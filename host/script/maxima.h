/* L5 script. The largest values that a script may pass to the host. No normal script comes near any
 * of these limits: they bound the work of the host, and an error names each. There are also budgets
 * (script.h) and sizes of work buffers (internal.h). */
#pragma once

#define SCRIPT_PATTERN_MAX       16384 /* bytes of a pattern of string.find, match, gmatch, gsub */
#define SCRIPT_CONDITIONS_MAX    256   /* in one status; Kubernetes' own kinds have below 10 */
#define SCRIPT_OWNERS_MAX        64    /* metadata.ownerReferences of an object that is written */
#define SCRIPT_FILTER_LABELS_MAX 64    /* in one call of ctx.list */
#define SCRIPT_FILTER_FIELDS_MAX 8     /* likewise */
#define SCRIPT_FIELD_PATH_MAX    253   /* bytes of one of them: "spec.nodeName" */
#define SCRIPT_INDEXES_MAX       8     /* of moonloop.index, in one script */
#define SCRIPT_INDEX_KEYS_MAX    64    /* that an index has for one object */
#define SCRIPT_INDEX_KEY_MAX     253   /* bytes of each; a name has no more */
#define SCRIPT_PASSWORD_MAX      1024  /* characters of crypto.password */
#define SCRIPT_RANDOM_MAX        65536 /* bytes of crypto.random */
#define SCRIPT_SELECTOR_MAX      4096  /* bytes of a selector of labels.match */
#define SCRIPT_REGEX_BYTES       (512 * 1024)  /* of a compiled pattern of moonloop.regex */
#define SCRIPT_YAML_MAX          (1024 * 1024) /* bytes that yaml.decode reads */
#define SCRIPT_ZONE_NAME_MAX     64            /* bytes; the longest name that there is has 32 */
#define SCRIPT_ORIGIN_MAX        256           /* bytes of an origin in `http` */
#define SCRIPT_URL_MAX           8192 /* bytes; the limit of proxies in front of an API server */
