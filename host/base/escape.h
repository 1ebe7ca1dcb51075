/* L0 base. JSON string escaping, in one place for log lines and for the codec. */
#pragma once

#include "base/buf.h"

/* Appends `text` as a quoted JSON string. What server-side apply's YAML 1.1 reader refuses or
 * changes when it stands raw (DEL, C1 controls, U+2028/9, U+FEFF, U+FFFE/F) is written as
 * \uXXXX, "/" is not escaped, and the rest stays raw UTF-8: the form every Kubernetes decoder
 * reads back unchanged. Bytes that are not UTF-8 become U+FFFD. False when the buffer is full. */
bool ml_escape_json(struct ml_buf *buf, struct ml_str text);
