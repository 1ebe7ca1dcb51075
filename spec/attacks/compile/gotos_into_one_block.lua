-- attack: gotos that wait at the end of ever more blocks.
-- expect: refused
@x150{do goto x@I@ }@ @x150{end }@
