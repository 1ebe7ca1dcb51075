-- attack: many gotos that all wait for a label which never comes.
-- expect: refused
do @x50000{goto nowhere }@ end
