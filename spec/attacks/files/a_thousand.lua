-- attack: more scripts than a source may have.
-- expect: held
-- copies: 1100
-- entry: fifo pipe.txt
-- memory: 600
return 1
