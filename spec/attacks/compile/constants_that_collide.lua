-- attack: sixty-five thousand constants that fall into one place of the compiler's hash.
-- expect: held
return {
@x60000{@I@131071,}@
}
