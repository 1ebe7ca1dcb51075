-- attack: texts with escapes that are none, too large, unfinished.
-- expect: refused /escape|UTF-8|decimal/
return "\u{7FFFFFFFFFF}\xzz\999\z
  \q"
