/* L6 operator. What a script's webhook may make of an object: default other fields than those that
 * identify it, convert the same object in another version. JSON that was checked, in and out. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* The JSON patch that turns `original` into what `default` made of it, appended to `patch`; "[]"
 * when nothing changed. `what` names the function in messages: "cnat.lua: default". ML_ESCRIPT: it
 * is another object. */
ML_NODISCARD int ml_webhook_defaulted(const char *what, struct ml_str original,
                                      struct ml_str changed, struct ml_buf *patch,
                                      struct ml_err *err);

/* The converted object with the apiVersion that was asked for, appended to `out`. Of its metadata
 * labels and annotations are those of `converted`, as kube-apiserver has it
 * (apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go), and the rest is the
 * original's. ML_ESCRIPT: it is another object. */
ML_NODISCARD int ml_webhook_converted(const char *what, struct ml_str original,
                                      struct ml_str converted, struct ml_str api_version,
                                      struct ml_buf *out, struct ml_err *err);
