-- attack: fifty thousand labels, and a goto to each, which the compiler compares with each other.
-- expect: held
@x20000{goto l@I@ ::l@I@::
}@
