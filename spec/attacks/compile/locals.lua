-- attack: more locals than a function may have.
-- expect: refused /local/
@x300{local a@I@ = @I@
}@
