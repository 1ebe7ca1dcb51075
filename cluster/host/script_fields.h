/* cluster. Reads of fields that a kind does not have, in the texts of scripts:
 * cluster/analysis/fields finds them. Used by `moonloop check`, `dev` and `types`. */
#pragma once

#include "cluster/host/server_lua.h"
#include "codec/json.h"
#include "operator/files.h"

/* Appends { name =, text = } of the files whose place in `is_selected` is true (NULL: of those that
 * were asked for) to the array that is being written. */
void ml_script_fields_put(struct ml_json_writer *writer, const struct ml_files *files,
                          const bool *is_selected);

/* Calls a function of Lua whose result is a list of { file =, text = }, and `each` for each; its
 * arguments live during that call. ML_ESCRIPT. */
ML_NODISCARD int
ml_script_fields_ask(struct ml_server_lua *lua, const char *module, struct ml_str request,
                     void (*each)(void *context, const char *file, const char *text), void *context,
                     struct ml_err *err);
