-- attack: blocks in blocks.
-- expect: refused
@x50000{do }@ @x50000{end }@
